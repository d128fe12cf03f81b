// State and command interfaces of a drone, computed from the shared memory. The names are those of
// crazyflow_ros/description/interfaces.py without the drone's name, in a different order.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "crazyflow_ros/shared_memory.hpp"

namespace crazyflow_ros
{

using shared_memory::DroneState;
using shared_memory::Header;
using shared_memory::Level;
using shared_memory::kMostRotors;

/// State interfaces, "<component>/<interface>"; of drones with fewer rotors without the last ones.
constexpr std::array<std::string_view, 88> kStates = {
  "pose/position.x", "pose/position.y", "pose/position.z",
  "pose/orientation.x", "pose/orientation.y", "pose/orientation.z", "pose/orientation.w",
  "twist/linear.x", "twist/linear.y", "twist/linear.z",
  "twist/angular.x", "twist/angular.y", "twist/angular.z",
  "imu/orientation.x", "imu/orientation.y", "imu/orientation.z", "imu/orientation.w",
  "imu/angular_velocity.x", "imu/angular_velocity.y", "imu/angular_velocity.z",
  "imu/linear_acceleration.x", "imu/linear_acceleration.y", "imu/linear_acceleration.z",
  "range/range",
  "body/thrust", "body/roll", "body/pitch", "body/yaw",
  "body/roll_rate", "body/pitch_rate", "body/yaw_rate", "body/level",
  "x/position", "x/velocity", "y/position", "y/velocity", "z/position", "z/velocity",
  "yaw/position", "yaw/velocity",
  "rotor0/position", "rotor0/velocity", "rotor0/effort",
  "rotor1/position", "rotor1/velocity", "rotor1/effort",
  "rotor2/position", "rotor2/velocity", "rotor2/effort",
  "rotor3/position", "rotor3/velocity", "rotor3/effort",
  "rotor4/position", "rotor4/velocity", "rotor4/effort",
  "rotor5/position", "rotor5/velocity", "rotor5/effort",
  "rotor6/position", "rotor6/velocity", "rotor6/effort",
  "rotor7/position", "rotor7/velocity", "rotor7/effort",
  "rotor8/position", "rotor8/velocity", "rotor8/effort",
  "rotor9/position", "rotor9/velocity", "rotor9/effort",
  "rotor10/position", "rotor10/velocity", "rotor10/effort",
  "rotor11/position", "rotor11/velocity", "rotor11/effort",
  "rotor12/position", "rotor12/velocity", "rotor12/effort",
  "rotor13/position", "rotor13/velocity", "rotor13/effort",
  "rotor14/position", "rotor14/velocity", "rotor14/effort",
  "rotor15/position", "rotor15/velocity", "rotor15/effort",
};

/// Command interfaces; the first are those of rotors.
constexpr std::array<std::string_view, 31> kCommands = {
  "rotor0/velocity", "rotor1/velocity", "rotor2/velocity", "rotor3/velocity",
  "rotor4/velocity", "rotor5/velocity", "rotor6/velocity", "rotor7/velocity",
  "rotor8/velocity", "rotor9/velocity", "rotor10/velocity", "rotor11/velocity",
  "rotor12/velocity", "rotor13/velocity", "rotor14/velocity", "rotor15/velocity",
  "body/roll", "body/pitch", "body/yaw", "body/thrust",
  "body/roll_rate", "body/pitch_rate", "body/yaw_rate",
  "x/acceleration", "y/acceleration", "z/acceleration", "yaw/position",
  "goal/position.x", "goal/position.y", "goal/position.z", "goal/yaw",
};

/// Index of a name in kStates or kCommands; the size of the array if not found.
template <std::size_t N>
constexpr std::size_t index_of(
  const std::array<std::string_view, N> & names, std::string_view name) noexcept
{
  std::size_t i = 0;
  while (i < N && name != names[i]) {
    ++i;
  }
  return i;
}

using Claims = std::uint32_t;  ///< bit i: a controller commands kCommands[i]
constexpr std::size_t kNone = kCommands.size();

/// A level and the commands that make up its numbers.
struct LevelCommands
{
  Level level;
  const char * description;
  std::array<std::size_t, 4> commands;  ///< indices in kCommands, in the order of the numbers
  std::size_t heading;                  ///< optional command; without it the heading is kept

  /// How many numbers it has, of a drone with n rotors.
  constexpr std::size_t size(std::size_t n_rotors) const noexcept
  {
    return level == Level::rotor_velocity ? n_rotors : commands.size();
  }

  /// Index in kCommands of a number.
  constexpr std::size_t command(std::size_t number) const noexcept
  {
    return level == Level::rotor_velocity ? number : commands[number];
  }

  constexpr Claims all(std::size_t n_rotors) const noexcept
  {
    Claims claims = 0;
    for (std::size_t i = 0; i < size(n_rotors); ++i) {
      claims |= Claims{1} << command(i);
    }
    return claims;
  }

  constexpr Claims needed(std::size_t n_rotors) const noexcept
  {
    return heading == kNone ? all(n_rotors) : all(n_rotors) & ~(Claims{1} << heading);
  }
};

constexpr std::array<LevelCommands, 5> kLevels = {{
  {Level::rotor_velocity, "velocities of all rotors", {}, kNone},
  {Level::attitude, "thrust, roll, pitch and optionally yaw", {{16, 17, 18, 19}}, 18},
  {Level::body_rate, "thrust, roll_rate, pitch_rate and yaw_rate", {{20, 21, 22, 19}}, kNone},
  {Level::acceleration, "accelerations of x, y, z and optionally the position of yaw",
    {{23, 24, 25, 26}}, 26},
  {Level::goal, "position.x, position.y, position.z and optionally yaw of goal",
    {{27, 28, 29, 30}}, 30},
}};

/// Whether a simulator's drones follow a level.
inline bool is_served(const LevelCommands & level, const Header & info) noexcept
{
  return (info.levels >> static_cast<std::uint64_t>(level.level) & 1) != 0;
}

/// The level of a set of claims on a drone with n rotors; null if it is empty or incomplete.
inline const LevelCommands * level_of(Claims claims, std::size_t n_rotors) noexcept
{
  for (const auto & level : kLevels) {
    const Claims needed = level.needed(n_rotors);
    if ((claims & needed) == needed && (claims & ~level.all(n_rotors)) == 0) {
      return &level;
    }
  }
  return nullptr;
}

using Values = std::array<double, kStates.size()>;

/// The values of all state interfaces, in the order of kStates.
inline void fill(
  const DroneState & drone, const Header & info, std::size_t n_rotors, Values & values) noexcept
{
  const auto polynomial = [](const double (&c)[3], double x) {
      return c[0] + x * (c[1] + x * c[2]);
    };
  const double x = drone.orientation[0], y = drone.orientation[1];
  const double z = drone.orientation[2], w = drone.orientation[3];
  const double to_world[3][3] = {
    {1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
    {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
    {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)}};
  const double sine = std::fmax(-1.0, std::fmin(1.0, -to_world[2][0]));
  const double roll = std::atan2(to_world[2][1], to_world[2][2]);
  const double yaw = std::atan2(to_world[1][0], to_world[0][0]);

  double * next = values.data();
  const auto put = [&next](double number) {*next++ = number;};
  const auto put_all = [&put](const auto & numbers) {
      for (const double number : numbers) {
        put(number);
      }
    };
  put_all(drone.position);
  put_all(drone.orientation);
  for (int axis = 0; axis < 3; ++axis) {
    put(
      to_world[0][axis] * drone.velocity[0] + to_world[1][axis] * drone.velocity[1] +
      to_world[2][axis] * drone.velocity[2]);
  }
  put_all(drone.angular_velocity);
  put_all(drone.imu_orientation);
  put_all(drone.imu_angular_velocity);
  put_all(drone.imu_linear_acceleration);
  put(drone.range);
  double thrust = 0.0;
  for (std::size_t i = 0; i < n_rotors; ++i) {
    thrust += polynomial(info.rotor_thrust[i], drone.rotor_velocity[i]);
  }
  put(thrust);
  put(roll);
  put(std::asin(sine));
  put(yaw);
  put_all(drone.angular_velocity);
  put(drone.level);
  for (int axis = 0; axis < 3; ++axis) {
    put(drone.position[axis]);
    put(drone.velocity[axis]);
  }
  put(yaw);
  const auto & rates = drone.angular_velocity;  // the vertical component is the yaw rate
  put(to_world[2][0] * rates[0] + to_world[2][1] * rates[1] + to_world[2][2] * rates[2]);
  for (std::size_t i = 0; i < n_rotors; ++i) {
    put(drone.rotor_position[i]);
    put(drone.rotor_velocity[i]);
    put(polynomial(info.rotor_torque[i], drone.rotor_velocity[i]));
  }
}

}  // namespace crazyflow_ros
