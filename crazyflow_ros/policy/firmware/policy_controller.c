// Flies a policy as the firmware's out-of-tree controller, which is called 1000 times a second.
//
// The policy flies while the setpoint has a position and a yaw: those of the high-level commander,
// and of the packets for positions and full states. Anything else is flown by the firmware's PID
// controller: a stop, manual flight, the levelling of the supervisor. The policy begins anew with
// each flight.
#define DEBUG_MODULE "POLICY"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "autoconf.h"
#include "controller.h"
#include "controller_mellinger.h"
#include "controller_pid.h"
#include "debug.h"
#include "log.h"
#include "platform_defaults.h"
#include "usec_time.h"

#include "policy.h"

#if POLICY_PLATFORM != 1
#error "the policy is for another platform or propellers: see POLICY_PLATFORM in policy_figures.h"
#endif
#ifndef CONFIG_ENABLE_THRUST_BAT_COMPENSATED
#error "the policy commands newtons: CONFIG_ENABLE_THRUST_BAT_COMPENSATED has to be set"
#endif

#define PERIOD (RATE_MAIN_LOOP / POLICY_FREQ)  // calls between two actions
#define DEGREE 0.017453292519943295f           // rad

static enum { PID, POLICY, FAILED } pilot;
static policy_memory memory;
static float command[4];
static uint32_t calls;  // since the policy has begun

// For the log, as policy.flies and policy.usec.
static uint8_t flies;
static uint32_t usec;  // of the last action

static bool is_goal(const setpoint_t *setpoint) {
  const setpoint_mode_t *mode = &setpoint->mode;
  return mode->x == modeAbs && mode->y == modeAbs && mode->z == modeAbs &&
         (mode->yaw == modeAbs || mode->quat == modeAbs);
}

// Cosine and sine of the yaw of a setpoint, chosen as by the firmware's own controllers.
static void heading_of(float heading[2], const setpoint_t *setpoint) {
  if (setpoint->mode.yaw == modeAbs) {
    heading[0] = cosf(setpoint->attitude.yaw * DEGREE);
    heading[1] = sinf(setpoint->attitude.yaw * DEGREE);
    return;
  }
  const quaternion_t *q = &setpoint->attitudeQuaternion;
  const float north = 2 * (q->x * q->y + q->z * q->w);
  const float east = q->w * q->w + q->x * q->x - q->y * q->y - q->z * q->z;
  const float norm = sqrtf(north * north + east * east);
  heading[0] = norm > 0 ? east / norm : 1;
  heading[1] = norm > 0 ? north / norm : 0;
}

// The firmware's estimate in the policy's units. Its quaternion and gyroscope have our axes; the
// inverted pitch of its `attitude` is not read.
static policy_input input_of(const setpoint_t *setpoint, const sensorData_t *sensors,
                             const state_t *state) {
  const quaternion_t *q = &state->attitudeQuaternion;
  policy_input input = {
      .position = {state->position.x, state->position.y, state->position.z},
      .attitude = {q->x, q->y, q->z, q->w},
      .velocity = {state->velocity.x, state->velocity.y, state->velocity.z},
      .rates = {sensors->gyro.x * DEGREE, sensors->gyro.y * DEGREE, sensors->gyro.z * DEGREE},
      .goal = {setpoint->position.x, setpoint->position.y, setpoint->position.z},
      .goal_velocity = {setpoint->velocity.x, setpoint->velocity.y, setpoint->velocity.z},
      .goal_acceleration = {setpoint->acceleration.x, setpoint->acceleration.y,
                            setpoint->acceleration.z},
  };
  heading_of(input.heading, setpoint);
  return input;
}

// Returns whether the command consists of numbers.
static bool choose(const setpoint_t *setpoint, const sensorData_t *sensors, const state_t *state) {
  const uint64_t before = usecTimestamp();
  const policy_input input = input_of(setpoint, sensors, state);
  policy_step(&input, &memory, command);
  usec = usecTimestamp() - before;
  return isfinite(command[0] + command[1] + command[2] + command[3]);
}

// With battery thrust compensation, which is the greatest thrust of a motor times a share.
static void run_rotors(control_t *control) {
  // Below THRUST_MIN the firmware stops a motor, after it has rounded the share to 1/65535.
  const float least = THRUST_MIN / THRUST_MAX + 1.0f / UINT16_MAX;
  control->controlMode = controlModeForce;
  for (int i = 0; i < STABILIZER_NR_OF_MOTORS; i++) {  // the firmware's motors are our rotors
    const float rpm = command[i];
    const float thrust = POLICY_THRUST_0 + rpm * (POLICY_THRUST_1 + rpm * POLICY_THRUST_2);
    control->normalizedForces[i] = fmaxf(thrust / THRUST_MAX, least);
  }
}

static void push(control_t *control) {
  control->controlMode = controlModeForceTorque;
  control->thrustSi = command[0];
  control->torqueX = command[1];
  control->torqueY = command[2];
  control->torqueZ = command[3];
}

// By the firmware's Mellinger controller, which also follows attitudes and body rates in `Sim`.
static void tilt(control_t *control, const sensorData_t *sensors, const state_t *state,
                 stabilizerStep_t step) {
  setpoint_t own = {.mode = {.roll = modeAbs, .pitch = modeAbs, .yaw = modeAbs}};
  own.thrust = command[3] / (STABILIZER_NR_OF_MOTORS * THRUST_MAX) * UINT16_MAX;
  if (POLICY_CONTROL == POLICY_ATTITUDE) {
    own.attitude.roll = command[0] / DEGREE;
    own.attitude.pitch = -command[1] / DEGREE;  // setpoints of attitudes have an inverted pitch
    own.attitude.yaw = command[2] / DEGREE;
  } else {
    own.attitude.yaw = state->attitude.yaw;
    own.attitudeRate.roll = command[0] / DEGREE;
    own.attitudeRate.pitch = command[1] / DEGREE;  // those of rates do not, in this controller
    own.attitudeRate.yaw = command[2] / DEGREE;
  }
  controllerMellingerFirmware(control, &own, sensors, state, step);
}

void controllerOutOfTreeInit(void) {
  controllerPidInit();
  controllerMellingerFirmwareInit();
  pilot = PID;
  policy_begin(&memory);
  const setpoint_t setpoint = {.mode = {.yaw = modeAbs}};
  const sensorData_t sensors = {0};
  const state_t state = {.attitudeQuaternion = {.w = 1}};
  choose(&setpoint, &sensors, &state);
  DEBUG_PRINT("%s: %lu us for an action\n", POLICY_NAME, (unsigned long)usec);
}

bool controllerOutOfTreeTest(void) { return controllerPidTest(); }

void controllerOutOfTree(control_t *control, const setpoint_t *setpoint,
                         const sensorData_t *sensors, const state_t *state,
                         const stabilizerStep_t stabilizerStep) {
  const bool flew = pilot == POLICY;
  if (!is_goal(setpoint)) {
    pilot = PID;
  } else if (pilot == PID) {
    pilot = POLICY;
    calls = 0;
    policy_begin(&memory);
    controllerMellingerFirmwareInit();
  }
  if (pilot == POLICY && calls++ % PERIOD == 0 && !choose(setpoint, sensors, state)) {
    pilot = FAILED;  // until the next flight
    DEBUG_PRINT("its output is not a number, the PID controller flies\n");
  }
  flies = pilot == POLICY;
  // Controllers do parts of their work in some steps only, but all of it in step 0.
  const stabilizerStep_t step = flew == flies ? stabilizerStep : 0;
  if (!flies) {
    controllerPid(control, setpoint, sensors, state, step);
  } else if (POLICY_CONTROL == POLICY_ROTOR_VEL) {
    run_rotors(control);
  } else if (POLICY_CONTROL == POLICY_FORCE_TORQUE) {
    push(control);
  } else {
    tilt(control, sensors, state, step);
  }
}

// Log of the policy.
LOG_GROUP_START(policy)
// Whether the policy flies (1), or the PID controller (0)
LOG_ADD(LOG_UINT8, flies, &flies)
// Duration of the last action [us]
LOG_ADD(LOG_UINT32, usec, &usec)
LOG_GROUP_STOP(policy)
