// Parameters of the plugin: the `<param>` elements of `<hardware>` in the robot's description.

#pragma once

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "crazyflow_ros/shared_memory.hpp"

namespace crazyflow_ros
{

struct Parameters
{
  std::string shared_memory = "crazyflow";  ///< name of the simulator's memory
  std::string lock_step;  ///< "true", "false", or empty: as set in the simulator
  std::chrono::milliseconds timeout{1000};
  std::chrono::milliseconds connect_timeout{30000};
};

namespace detail
{

constexpr std::array<std::string_view, 5> kParameters = {
  "shared_memory", "timeout_ms", "connect_timeout_ms", "lock_step",
  "status_publish_rate",  // of ros2_control itself
};

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
  for (const auto & [name, value] : given) {
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
