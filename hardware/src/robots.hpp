// Joints and sensors of robots in the world: what their interfaces are in the shared memory.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "crazyflow_ros/shared_memory.hpp"

namespace crazyflow_ros
{

/// Interfaces of a joint, in the order of its numbers and of the bits of its modes.
constexpr std::array<std::string_view, 3> kJointInterfaces = {"position", "velocity", "effort"};
using Three = std::array<double, 3>;

/// Index of an interface of a joint; 3 if there is none. Forces of slides may be called so.
inline std::size_t joint_interface(std::string_view name) noexcept
{
  if (name == "torque" || name == "force") {
    return 2;
  }
  std::size_t i = 0;
  while (i < kJointInterfaces.size() && kJointInterfaces[i] != name) {
    ++i;
  }
  return i;
}

/// A PID controller in steps of its own time, with limits of its output and of its integral part.
struct Pid
{
  double p = 0.0, i = 0.0, d = 0.0;
  double u_max = std::numeric_limits<double>::infinity(), u_min = -u_max;
  double i_max = u_max, i_min = -u_max;
  double integral = 0.0;  ///< output of the integral part

  /// Output for an error and its rate, after a step [s].
  double step(double error, double rate, double seconds) noexcept
  {
    integral = std::fmax(i_min, std::fmin(i_max, integral + i * error * seconds));
    return std::fmax(u_min, std::fmin(u_max, p * error + integral + d * rate));
  }
};

/// Gains from parameters such as pid_gains.position.<joint>.p; empty if there are none. Throws
/// std::invalid_argument if one is not known.
inline std::optional<Pid> read_gains(
  const std::map<std::string, double> & given, const std::string & interface,
  const std::string & joint)
{
  const std::string prefix = "pid_gains." + interface + "." + joint + ".";
  std::optional<Pid> pid;
  for (const auto & [name, value] : given) {
    if (name.compare(0, prefix.size(), prefix) != 0) {
      continue;
    }
    if (!pid) {
      pid.emplace();
    }
    const std::map<std::string, double Pid::*> known = {
      {"p", &Pid::p}, {"i", &Pid::i}, {"d", &Pid::d},
      {"u_clamp_max", &Pid::u_max}, {"u_clamp_min", &Pid::u_min},
      {"i_clamp_max", &Pid::i_max}, {"i_clamp_min", &Pid::i_min}};
    const auto found = known.find(name.substr(prefix.size()));
    if (found == known.end()) {
      throw std::invalid_argument(
              "'" + name + "' is no gain: there are p, i, d, u_clamp_max, u_clamp_min, i_clamp_max "
              "and i_clamp_min");
    }
    (*pid).*(found->second) = value;
  }
  return pid;
}

/// A command of a joint in the shared memory.
struct JointCommand
{
  std::uint64_t level = 0;
  double numbers[3] = {};
};

/// What a joint is commanded by, and how that becomes a command of its actuators.
struct JointControl
{
  std::uint64_t modes = 0;   ///< of its actuators
  std::uint64_t claims = 0;  ///< bits of interfaces that controllers command
  std::uint64_t fresh = 0;   ///< claims without a command so far
  std::array<std::optional<Pid>, 2> pids;  ///< of position and velocity, where no actuator takes it

  /// Why an interface cannot be commanded; empty if it can be.
  std::string refusal(std::size_t interface) const
  {
    if ((modes >> interface & 1) != 0) {
      return "";
    }
    std::string taken;
    for (std::size_t i = 0; i < kJointInterfaces.size(); ++i) {
      if ((modes >> i & 1) != 0) {
        taken += (taken.empty() ? "" : " and ") + std::string(kJointInterfaces[i]);
      }
    }
    const bool drives = (modes & (interface == 0 ? shared_memory::kVelocity : 0)) != 0 ||
      (modes & shared_memory::kEffort) != 0;
    if (interface < pids.size() && drives) {
      return pids[interface] ? "" : "its actuators take " + taken + "; gains of a PID controller, in "
             "the file of the parameter pids_config_file, would do";
    }
    return "its actuators take " + taken;
  }

  /// Begin anew, after a reset.
  void restart() noexcept
  {
    for (auto & pid : pids) {
      if (pid) {
        pid->integral = 0.0;
      }
    }
  }

  /// The command of the joint for those of its interfaces, of which NaN is none, in a state.
  JointCommand command(const Three & given, const Three & state, double seconds) noexcept
  {
    JointCommand result;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if ((claims & bit) == 0 || (std::isnan(given[i]) && (fresh & bit) != 0)) {
        continue;
      }
      fresh &= ~bit;
      if ((modes & bit) != 0) {
        result.level |= bit;
        result.numbers[i] += given[i];
        continue;
      }
      const std::size_t out = (modes & shared_memory::kEffort) != 0 ? 2 : 1;
      result.level |= std::uint64_t{1} << out;
      const double target = (claims & shared_memory::kVelocity) != 0 && !std::isnan(given[1]) ?
        given[1] : 0.0;
      const double rate = i == 0 ? target - state[1] : 0.0;
      result.numbers[out] += pids[i]->step(given[i] - state[i], rate, seconds);
    }
    if (result.level == 0 && claims != 0) {
      result.level = shared_memory::kJointWaiting;
    }
    return result;
  }
};

/// Suffixes of the names of MuJoCo's sensors, as in mujoco_ros2_control.
struct Suffixes
{
  std::string force = "_force", torque = "_torque", orientation = "_quat", gyro = "_gyro",
    acceleration = "_accel", position = "_pos";
};

/// Where the number of a state interface is in the shared memory.
struct Reading
{
  std::string sensor;     ///< of MuJoCo; empty for a number that is always 0
  std::size_t place = 0;  ///< among its numbers
  double sign = 1.0;
};

/// The reading of an interface of a sensor whose sensors in MuJoCo have a common name.
inline Reading reading(
  const std::string & name, std::string_view interface, const Suffixes & suffixes)
{
  if (interface.find("_covariance.") != std::string_view::npos) {
    return {};
  }
  const auto dot = interface.find('.');
  if (dot == std::string_view::npos || interface.size() != dot + 2) {
    return {name};
  }
  const auto quantity = interface.substr(0, dot);
  const auto axis = std::string_view("xyzw").find(interface.back());
  if (axis == std::string_view::npos) {
    return {name};
  }
  if (quantity == "orientation") {
    return {name + suffixes.orientation, (axis + 1) % 4};
  }
  // The wrench on the sensor's body; MuJoCo's is on its parent.
  if (quantity == "force") {
    return {name + suffixes.force, axis, -1.0};
  }
  if (quantity == "torque") {
    return {name + suffixes.torque, axis, -1.0};
  }
  const std::string & suffix =
    quantity == "angular_velocity" ? suffixes.gyro :
    quantity == "linear_acceleration" ? suffixes.acceleration :
    quantity == "position" ? suffixes.position : std::string();
  return {name + suffix, axis};
}

}  // namespace crazyflow_ros
