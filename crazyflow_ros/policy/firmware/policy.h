// A policy as a pure function of a drone's motion and of the motion of its goal.
// It needs the C library only, allocates nothing, and is not reentrant.
#pragma once

#include "policy_figures.h"

// Units are SI. World axes: x, y, and z upwards. Body axes: x forwards, y to the left, z upwards.
typedef struct {
  float position[3];           // m, world axes
  float attitude[4];           // unit quaternion x, y, z, w, from body to world
  float velocity[3];           // m/s, world axes
  float rates[3];              // rad/s, body axes
  float goal[3];               // m, world axes
  float goal_velocity[3];      // m/s, world axes
  float goal_acceleration[3];  // m/s^2, world axes
  float heading[2];            // cosine and sine of the yaw with which to fly
} policy_input;

// What a policy remembers between its actions.
typedef struct {
  float observation[POLICY_OBSERVED];  // the newest frame first
  float action[4];                     // -1 to 1
  float recurrent[POLICY_RECURRENT];
} policy_memory;

// Set the memory as it is before the first action.
void policy_begin(policy_memory *memory);

// Choose a command of the policy's control mode, in the units of `Control`:
// attitude: roll, pitch, yaw [rad], thrust [N]; body_rate: body rates [rad/s], thrust [N];
// force_torque: thrust [N], torques about the body axes [N m]; rotor_vel: speeds of the rotors
// [RPM]. A network whose output is not a number gives NaN.
void policy_step(const policy_input *input, policy_memory *memory, float command[4]);
