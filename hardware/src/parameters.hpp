// Parameters of the plugin: the `<param>` elements of `<hardware>` in the robot's description.

#pragma once

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "crazyflow_ros/shared_memory.hpp"
#include "robots.hpp"

namespace crazyflow_ros
{

struct Parameters
{
  std::string shared_memory = "crazyflow";  ///< name of the simulator's memory
  std::string lock_step;  ///< "true", "false", or empty: as set in the simulator
  std::chrono::milliseconds timeout{1000};
  std::chrono::milliseconds connect_timeout{30000};
  std::string pids_config_file;  ///< YAML file of gains, or empty
  Suffixes suffixes;
  std::vector<std::string> unused;  ///< parameters of mujoco_ros2_control without effect, and why
};

namespace detail
{

constexpr std::array<std::string_view, 12> kParameters = {
  "shared_memory", "timeout_ms", "connect_timeout_ms", "lock_step",
  "status_publish_rate",  // of ros2_control itself
  "pids_config_file", "force_mjcf_suffix", "torque_mjcf_suffix", "orientation_mjcf_suffix",
  "angular_velocity_mjcf_suffix", "linear_acceleration_mjcf_suffix", "position_mjcf_suffix",
};

constexpr const char * kWorld = "the simulator's parameter scene names the world";
constexpr const char * kStart = "the service reset_world takes a keyframe and states of joints";
constexpr const char * kSensors = "the simulator's parameter sensors declares cameras and lidars";

/// Parameters of mujoco_ros2_control that concern its own simulator, and what there is instead.
constexpr std::array<std::pair<std::string_view, const char *>, 11> kUnused = {{
  {"mujoco_model", kWorld},
  {"mujoco_model_topic", kWorld},
  {"sim_speed_factor", "the simulator's parameter real_time_factor is its speed"},
  {"headless", "the simulator has a parameter of that name"},
  {"initial_keyframe", kStart},
  {"override_start_position_file", kStart},
  {"odom_free_joint_name", "get_entity_state and sensors of the world tell where bodies are"},
  {"odom_topic", "get_entity_state and sensors of the world tell where bodies are"},
  {"auto_register_cameras", kSensors},
  {"camera_publish_rate", kSensors},
  {"lidar_publish_rate", kSensors},
}};

/// What there is instead of a parameter of mujoco_ros2_control; null if it is none of these.
inline const char * instead_of(std::string_view name)
{
  for (const auto & [known, instead] : kUnused) {
    if (name == known) {
      return instead;
    }
  }
  return nullptr;
}

inline void refuse_unknown(const std::string & name)
{
  std::string known;
  for (const auto parameter : kParameters) {
    if (name == parameter) {
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(parameter);
  }
  throw std::invalid_argument(
          "'" + name + "' is no parameter of this hardware, which has " + known);
}

inline std::chrono::milliseconds milliseconds(const std::string & name, const std::string & value)
{
  const bool digits = !value.empty() && value.size() < 10 &&
    value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stol(value) == 0) {
    throw std::invalid_argument(name + ": expected milliseconds, got '" + value + "'");
  }
  return std::chrono::milliseconds(std::stol(value));
}

}  // namespace detail

/// Read the parameters, by name. Throws std::invalid_argument, with the name, if one is unknown or
/// has an invalid value.
inline Parameters read_parameters(const std::unordered_map<std::string, std::string> & given)
{
  Parameters parameters;
  const std::unordered_map<std::string, std::string *> texts = {
    {"pids_config_file", &parameters.pids_config_file},
    {"force_mjcf_suffix", &parameters.suffixes.force},
    {"torque_mjcf_suffix", &parameters.suffixes.torque},
    {"orientation_mjcf_suffix", &parameters.suffixes.orientation},
    {"angular_velocity_mjcf_suffix", &parameters.suffixes.gyro},
    {"linear_acceleration_mjcf_suffix", &parameters.suffixes.acceleration},
    {"position_mjcf_suffix", &parameters.suffixes.position}};
  for (const auto & [name, value] : given) {
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
      continue;
    }
    if (const char * instead = detail::instead_of(name)) {
      parameters.unused.push_back("the parameter " + name + " has no effect: " + instead);
      continue;
    }
    detail::refuse_unknown(name);
    if (name == "shared_memory") {
      if (!shared_memory::is_name(value)) {
        throw std::invalid_argument(
                name + ": expected " + shared_memory::kNameRule + ", got '" + value + "'");
      }
      parameters.shared_memory = value;
    } else if (name == "timeout_ms") {
      parameters.timeout = detail::milliseconds(name, value);
    } else if (name == "connect_timeout_ms") {
      parameters.connect_timeout = detail::milliseconds(name, value);
    } else if (name == "lock_step" && !value.empty()) {
      if (value != "true" && value != "false") {
        throw std::invalid_argument(name + ": expected true or false, got '" + value + "'");
      }
      parameters.lock_step = value;
    }
  }
  return parameters;
}

}  // namespace crazyflow_ros
