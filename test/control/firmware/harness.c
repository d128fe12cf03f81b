/* Runs the PID, Mellinger and Brescianini controllers of the Crazyflie's firmware, one call for each
 * run. */
#include "attitude_controller.h"
#include "controller_brescianini.c"
#include "controller_mellinger.h"
#include "physicalConstants.h"
#include "platform_defaults.h"
#include "position_controller.h"
#include "power_distribution.h"
#include "stabilizer_types.h"

#define GROUPS X(pid_attitude) X(pid_rate) X(velCtlPid) X(posCtlPid) X(ctrlAtt)
#define X(group) extern struct entry params_##group[];
GROUPS
#undef X

static struct entry *table(const char *group) {
#define X(name) \
  if (!strcmp(group, #name)) return params_##name;
  GROUPS
  return NULL;
}

/* Set a parameter by group and name; return whether there is one. */
bool set(const char *group, const char *name, double value) {
  for (struct entry *p = table(group); p && p->name; p++) {
    if (strcmp(p->name, name)) continue;
    if (p->type == PARAM_FLOAT) *(double *)p->address = value;
    else if (p->type == PARAM_UINT16) *(uint16_t *)p->address = value;
    else return false;
    return true;
  }
  return false;
}

void start(const double *position, const double *rpy_degrees) {
  attitudeControllerInit(1.0 / 500);
  positionControllerInit();
  positionControllerResetAllPID(position[0], position[1], position[2]);
  attitudeControllerResetAllPID(rpy_degrees[0], rpy_degrees[1], rpy_degrees[2]);
}

static state_t stateOf(const double *pos, const double *vel, double yaw) {
  state_t state = {.position = {.x = pos[0], .y = pos[1], .z = pos[2]},
                   .velocity = {.x = vel[0], .y = vel[1], .z = vel[2]},
                   .attitude = {.yaw = yaw}};
  return state;
}

/* Return a setpoint of modes x, y, z, whether the velocity is that of the body, place, velocity. */
static setpoint_t setpointOf(const double *v) {
  setpoint_t setpoint = {.mode = {.x = v[0], .y = v[1], .z = v[2]},
                         .velocity_body = v[3] != 0,
                         .position = {.x = v[4], .y = v[5], .z = v[6]},
                         .velocity = {.x = v[7], .y = v[8], .z = v[9]}};
  return setpoint;
}

/* Write roll, pitch [degrees] and thrust [PWM] for a setpoint; angles in degrees. */
void position(const double *pos, const double *vel, double yaw, const double *given, double *found) {
  state_t state = stateOf(pos, vel, yaw);
  setpoint_t setpoint = setpointOf(given);
  attitude_t attitude = {0};
  positionController(&found[2], &attitude, &setpoint, &state);
  found[0] = attitude.roll;
  found[1] = attitude.pitch;
}

/* Write desired rates [degrees/s] and the output [PWM]; angles and rates in degrees. */
void attitude(const double *rpy, const double *gyro, const double *goal, double *found) {
  int16_t roll, pitch, yaw;
  attitudeControllerCorrectAttitudePID(rpy[0], rpy[1], rpy[2], goal[0], goal[1], goal[2],
                                       &found[0], &found[1], &found[2]);
  attitudeControllerCorrectRatePID(gyro[0], -gyro[1], gyro[2], found[0], found[1], found[2]);
  attitudeControllerGetActuatorOutput(&roll, &pitch, &yaw);
  found[3] = roll;
  found[4] = pitch;
  found[5] = yaw;
}

/* Write the ratio of each motor [PWM] for thrust, roll, pitch and yaw [PWM]. */
void distribute(const double *wanted, double *found) {
  control_t control = {.controlMode = controlModeLegacy};
  control.thrust = wanted[0];
  control.roll = wanted[1];
  control.pitch = wanted[2];
  control.yaw = wanted[3];
  motors_thrust_uncapped_t uncapped = {0};
  motors_thrust_pwm_t ratios = {0};
  powerDistribution(&control, &uncapped);
  powerDistributionCap(&uncapped, &ratios);
  for (int i = 0; i < 4; i++) found[i] = ratios.list[i];
}

void figures(double *mass, double *inertia) {
  struct mat33 J = CRAZYFLIE_INERTIA;
  *mass = CF_MASS;
  for (int i = 0; i < 9; i++) inertia[i] = J.m[i / 3][i % 3];
}

/* Write thrust [N] and torque [N m]; values are position, velocity, attitude (xyzw), body rates
 * [degrees/s], desired position, velocity, acceleration, yaw [degrees], yaw rate [degrees/s]. */
void brescianini(const double *v, double *found) {
  state_t state = stateOf(v, v + 3, 0);
  state.attitudeQuaternion.x = v[6];
  state.attitudeQuaternion.y = v[7];
  state.attitudeQuaternion.z = v[8];
  state.attitudeQuaternion.w = v[9];
  sensorData_t sensors = {.gyro = {.x = v[10], .y = v[11], .z = v[12]}};
  setpoint_t setpoint = {.mode = {.x = modeAbs, .y = modeAbs, .z = modeAbs},
                         .position = {.x = v[13], .y = v[14], .z = v[15]},
                         .velocity = {.x = v[16], .y = v[17], .z = v[18]},
                         .acceleration = {.x = v[19], .y = v[20], .z = v[21]},
                         .attitude = {.yaw = v[22]},
                         .attitudeRate = {.yaw = v[23]}};
  control_t control = {0};
  controllerBrescianini(&control, &setpoint, &sensors, &state, 0);
  found[0] = control.thrustSi;
  for (int i = 0; i < 3; i++) found[1 + i] = control.torque[i];
}

static controllerMellinger_t mellinger;

void startMellinger() {
  controllerMellingerInit(&mellinger);
  controllerMellingerReset(&mellinger);
}

/* Write thrust, roll, pitch and yaw [PWM]; values are position, velocity, attitude (xyzw), its yaw
 * [degrees], body rates [degrees/s], those of `setpointOf`, roll, pitch [degrees], yaw rate
 * [degrees/s], thrust [PWM], modes of roll and pitch. */
void runMellinger(const double *v, double *found) {
  state_t state = stateOf(v, v + 3, v[10]);
  state.attitudeQuaternion.x = v[6];
  state.attitudeQuaternion.y = v[7];
  state.attitudeQuaternion.z = v[8];
  state.attitudeQuaternion.w = v[9];
  sensorData_t sensors = {.gyro = {.x = v[11], .y = v[12], .z = v[13]}};
  setpoint_t setpoint = setpointOf(v + 14);
  setpoint.attitude.roll = v[24];
  setpoint.attitude.pitch = v[25];
  setpoint.attitudeRate.yaw = v[26];
  setpoint.thrust = v[27];
  setpoint.mode.roll = setpoint.mode.pitch = v[28];
  setpoint.mode.yaw = v[29];
  control_t control = {0};
  controllerMellinger(&mellinger, &control, &setpoint, &sensors, &state, 0);
  found[0] = control.thrust;
  found[1] = control.roll;
  found[2] = control.pitch;
  found[3] = control.yaw;
}
