/* Calls an exported policy as the firmware's stabilizer calls its controller. */
#include "autoconf.h"
#include "controller.h"
#include "platform_defaults.h"
#include "power_distribution.h"
#include "stabilizer_types.h"

#define DEGREES 57.29577951308232f

enum kind { STOP, POSITION, FULL_STATE, MANUAL };

static uint64_t now;
uint64_t usecTimestamp(void) { return now += 7; }

#ifdef STAND_IN
/* The setpoint that the Mellinger controller was given last: thrust, and in degrees the attitude,
 * its rates. */
float tilted[7];

void controllerMellingerFirmware(control_t *control, const setpoint_t *setpoint,
                                 const sensorData_t *sensors, const state_t *state,
                                 stabilizerStep_t step) {
  (void)sensors, (void)state, (void)step;
  const attitude_t *angle = &setpoint->attitude, *rate = &setpoint->attitudeRate;
  const float given[7] = {setpoint->thrust, angle->roll, angle->pitch, angle->yaw,
                          rate->roll,       rate->pitch, rate->yaw};
  memcpy(tilted, given, sizeof(given));
  control->controlMode = controlModeLegacy;
  control->thrust = setpoint->thrust;
  control->roll = control->pitch = control->yaw = 0;
}

/* Writes its work in each tenth step only. */
void controllerPid(control_t *control, const setpoint_t *setpoint, const sensorData_t *sensors,
                   const state_t *state, stabilizerStep_t step) {
  (void)sensors, (void)state;
  control->controlMode = controlModeLegacy;
  if (step % 10 == 0) {
    control->thrust = setpoint->thrust;
    control->roll = control->pitch = control->yaw = 0;
  }
}

void controllerPidInit(void) {}
bool controllerPidTest(void) { return true; }
void controllerMellingerFirmwareInit(void) {}

/* As written down in docs/reference/autopilot_links.md: shares of 65535. */
void powerDistribution(const control_t *control, motors_thrust_uncapped_t *motors) {
  for (int i = 0; i < 4; i++) {
    motors->list[i] = control->controlMode == controlModeForce
                          ? fminf(fmaxf(control->normalizedForces[i], 0), 1) * UINT16_MAX
                          : control->thrust;
  }
}

bool powerDistributionCap(const motors_thrust_uncapped_t *wanted, motors_thrust_pwm_t *motors) {
  for (int i = 0; i < 4; i++) motors->list[i] = wanted->list[i];
  return false;
}
#endif

void start(void) { controllerOutOfTreeInit(); }

/* Write what the motors get, shares of 65535 of the greatest thrust.
 *
 * state: position, attitude (xyzw), velocity, gyroscope [degrees/s], roll, pitch and yaw [degrees]
 * goal: position, velocity, acceleration, yaw [degrees] */
void fly(const float *state, const float *goal, int kind, uint32_t step, control_t *control,
         uint16_t *motors) {
  static control_t own;
  const state_t estimate = {
      .position = {.x = state[0], .y = state[1], .z = state[2]},
      .attitudeQuaternion = {.x = state[3], .y = state[4], .z = state[5], .w = state[6]},
      .velocity = {.x = state[7], .y = state[8], .z = state[9]},
      .attitude = {.roll = state[13], .pitch = -state[14], .yaw = state[15]},
  };
  const sensorData_t sensors = {.gyro = {.x = state[10], .y = state[11], .z = state[12]},
                                .acc = {.z = 1}};
  setpoint_t setpoint = {.mode = {.x = modeDisable}};
  if (kind == POSITION || kind == FULL_STATE) {
    setpoint.mode.x = setpoint.mode.y = setpoint.mode.z = modeAbs;
    setpoint.position.x = goal[0], setpoint.position.y = goal[1], setpoint.position.z = goal[2];
    setpoint.velocity.x = goal[3], setpoint.velocity.y = goal[4], setpoint.velocity.z = goal[5];
    setpoint.acceleration.x = goal[6], setpoint.acceleration.y = goal[7];
    setpoint.acceleration.z = goal[8];
    if (kind == POSITION) {
      setpoint.mode.yaw = modeAbs;
      setpoint.attitude.yaw = goal[9];
    } else { /* turned about its yaw, tilted by 30 degrees: only the yaw counts */
      const float half = goal[9] / DEGREES / 2, tilt = 0.5235988f / 2;
      setpoint.mode.quat = modeAbs;
      setpoint.attitudeQuaternion.w = cosf(half) * cosf(tilt);
      setpoint.attitudeQuaternion.z = sinf(half) * cosf(tilt);
      setpoint.attitudeQuaternion.x = cosf(half) * sinf(tilt);
      setpoint.attitudeQuaternion.y = sinf(half) * sinf(tilt);
    }
  } else if (kind == MANUAL) {
    setpoint.mode.roll = setpoint.mode.pitch = modeAbs;
    setpoint.mode.yaw = modeVelocity;
    setpoint.thrust = 30000;
  }
  controllerOutOfTree(&own, &setpoint, &sensors, &estimate, step);
  *control = own;
  motors_thrust_uncapped_t wanted = {.list = {0}};
  motors_thrust_pwm_t capped = {.list = {0}};
  powerDistribution(&own, &wanted);
  powerDistributionCap(&wanted, &capped);
  memcpy(motors, capped.list, sizeof(capped.list));
}
