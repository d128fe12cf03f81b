/* What an exported policy needs of the Crazyflie's firmware: its system and, with STAND_IN, what it
 * shares with controllers, in place of its own headers.
 *
 * Included before anything else.
 */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_CONTROLLER_OOT
#define CONFIG_ENABLE_THRUST_BAT_COMPENSATED

#define DEBUG_PRINT(...)
#define LOG_GROUP_START(group)
#define LOG_ADD(type, name, address)
#define LOG_ADD_CORE(type, name, address)
#define LOG_GROUP_STOP(group)
#define PARAM_GROUP_START(group)
#define PARAM_ADD(type, name, address)
#define PARAM_ADD_CORE(type, name, address)
#define PARAM_GROUP_STOP(group)

#ifdef STAND_IN
#define RATE_MAIN_LOOP 1000
#define STABILIZER_NR_OF_MOTORS 4
#define THRUST_MIN 0.012817578f
#define THRUST_MAX 0.12f

typedef uint32_t stabilizerStep_t;
typedef struct { float x, y, z; } vector_t;
typedef struct { float x, y, z, w; } quaternion_t;
typedef struct { float roll, pitch, yaw; } attitude_t;
typedef struct { vector_t acc, gyro; } sensorData_t;
typedef struct {
  attitude_t attitude;
  quaternion_t attitudeQuaternion;
  vector_t position, velocity;
} state_t;
typedef enum { modeDisable, modeAbs, modeVelocity } stab_mode_t;
typedef struct { stab_mode_t x, y, z, roll, pitch, yaw, quat; } setpoint_mode_t;
typedef struct {
  attitude_t attitude, attitudeRate;
  quaternion_t attitudeQuaternion;
  float thrust;
  vector_t position, velocity, acceleration;
  setpoint_mode_t mode;
} setpoint_t;
typedef enum { controlModeLegacy, controlModeForceTorque, controlModeForce } control_mode_t;
typedef struct {
  union {
    struct { int16_t roll, pitch, yaw; float thrust; };
    struct { float thrustSi, torqueX, torqueY, torqueZ; };
    float normalizedForces[4];
  };
  control_mode_t controlMode;
} control_t;
typedef union { int32_t list[4]; } motors_thrust_uncapped_t;
typedef union { uint16_t list[4]; } motors_thrust_pwm_t;

typedef void controller_t(control_t *, const setpoint_t *, const sensorData_t *, const state_t *,
                          stabilizerStep_t);
controller_t controllerPid, controllerMellingerFirmware, controllerOutOfTree;
void controllerPidInit(void);
bool controllerPidTest(void);
void controllerMellingerFirmwareInit(void);
void controllerOutOfTreeInit(void);
bool controllerOutOfTreeTest(void);
uint64_t usecTimestamp(void);
void powerDistribution(const control_t *, motors_thrust_uncapped_t *);
bool powerDistributionCap(const motors_thrust_uncapped_t *, motors_thrust_pwm_t *);
#endif
