#include "crazyflow_system.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace crazyflow_ros
{

namespace
{
constexpr int kWarningPeriod = 1000;  // ms between two messages of the same kind
constexpr std::chrono::milliseconds kLook{500};  // between two checks for the simulator
constexpr int kAttempts = 1000;       // to lock a value that another thread holds briefly
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kYaw = index_of(kStates, "body/yaw");

/// Index in kCommands of a full interface name of this drone; kNone for other drones.
std::size_t command_index(const std::string & drone, std::string_view name) noexcept
{
  const bool ours = name.size() > drone.size() && name.compare(0, drone.size(), drone) == 0 &&
    name[drone.size()] == '_';
  return ours ? index_of(kCommands, name.substr(drone.size() + 1)) : kNone;
}

/// Claims after a switch.
Claims after(
  const std::string & drone, Claims claims, const CrazyflowSystem::Names & start,
  const CrazyflowSystem::Names & stop) noexcept
{
  for (const auto & name : stop) {
    const std::size_t i = command_index(drone, name);
    claims &= i == kNone ? ~Claims{0} : ~(Claims{1} << i);
  }
  for (const auto & name : start) {
    const std::size_t i = command_index(drone, name);
    claims |= i == kNone ? 0 : Claims{1} << i;
  }
  return claims;
}

/// Axes may be claimed one by one; the drone is held until all are claimed.
bool may_become_acceleration(Claims claims) noexcept
{
  return (claims & ~kLevels.back().all()) == 0;
}
}  // namespace

rclcpp::NodeOptions CrazyflowSystem::define_custom_node_options() const
{
  return rclcpp::NodeOptions().enable_logger_service(true).append_parameter_override(
    "use_sim_time", false);
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
    return CallbackReturn::ERROR;
  }
  try {
    parameters_ = read_parameters(info_.hardware_parameters);
    find_drones();
  } catch (const std::exception & error) {
    return fail(error);
  }
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_configure(const LifecycleState &)
{
  try {
    find_handles();
    connect();
  } catch (const std::exception & error) {
    simulator_.close();
    return fail(error);
  }
  // Without simulated time, `read` detects the end of the simulator.
  if (get_node() != nullptr && get_clock()->get_clock_type() == RCL_ROS_TIME) {
    watcher_.start(kLook, [this] {return watch();});
  }
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_activate(const LifecycleState &)
{
  if (!simulator_.alive()) {
    RCLCPP_ERROR(get_logger(), "the simulator '%s' has ended", parameters_.shared_memory.c_str());
    return CallbackReturn::ERROR;
  }
  for (const auto & drone : drones_) {
    if (drone.level != nullptr) {
      RCLCPP_INFO(
        get_logger(), "%s: its controllers, active all the time, go on with %s",
        drone.name.c_str(), drone.level->description);
    }
  }
  active_ = true;
  simulator_.set_active(true);
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_deactivate(const LifecycleState &)
{
  active_ = false;
  simulator_.set_active(false);
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_cleanup(const LifecycleState &)
{
  active_ = false;
  watcher_.stop();
  simulator_.close();
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_shutdown(const LifecycleState & previous)
{
  return on_cleanup(previous);
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_error(const LifecycleState & previous)
{
  for (auto & drone : drones_) {  // the manager stops the controllers without notice
    drone.claims = 0;
    drone.level = nullptr;
  }
  return on_cleanup(previous);  // allows another configuration, with a new simulator
}

void CrazyflowSystem::find_drones()
{
  drones_.clear();
  std::string part;
  const auto check = [&part](const auto & names, const auto & component, const auto & interfaces) {
      for (const auto & interface : interfaces) {
        if (index_of(names, part + "/" + interface.name) == names.size()) {
          throw std::invalid_argument(
                  "'" + component.name + "' cannot have the interface '" + interface.name + "'");
        }
      }
    };
  for (const auto * components : {&info_.joints, &info_.sensors, &info_.gpios}) {
    for (const auto & component : *components) {
      drone_of(component.name, part);
      check(kStates, component, component.state_interfaces);
      check(kCommands, component, component.command_interfaces);
    }
  }
  if (drones_.empty()) {
    throw std::invalid_argument("there are no drones: no joint, sensor or gpio");
  }
}

CrazyflowSystem::Drone & CrazyflowSystem::drone_of(
  const std::string & component, std::string & part)
{
  const auto last = component.rfind('_');
  if (last == std::string::npos || last == 0) {
    throw std::invalid_argument(
            "'" + component + "' is not called <drone>_<component>, as cf0_rotor0 is");
  }
  part = component.substr(last + 1);
  const std::string name = component.substr(0, last);
  const auto found = std::find_if(
    drones_.begin(), drones_.end(), [&name](const Drone & drone) {return drone.name == name;});
  if (found != drones_.end()) {
    return *found;
  }
  drones_.emplace_back();
  drones_.back().name = name;
  return drones_.back();
}

void CrazyflowSystem::find_handles()
{
  std::string part;
  // Claims are kept: controllers that were active while this component was unconfigured continue to
  // command without being restarted.
  for (auto & drone : drones_) {
    drone.states.clear();
    drone.heading = kNaN;
  }
  for (const auto * states : {&joint_states_, &sensor_states_, &gpio_states_}) {
    for (const auto & state : *states) {
      Drone & drone = drone_of(state->get_prefix_name(), part);
      drone.states.emplace_back(state, index_of(kStates, part + "/" + state->get_interface_name()));
    }
  }
  for (const auto * commands : {&joint_commands_, &gpio_commands_}) {
    for (const auto & command : *commands) {
      Drone & drone = drone_of(command->get_prefix_name(), part);
      drone.commands[index_of(kCommands, part + "/" + command->get_interface_name())] = command;
    }
  }
  for (auto & drone : drones_) {  // earlier commands are outdated
    forget(drone, drone.claims);
  }
}

void CrazyflowSystem::connect()
{
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + parameters_.connect_timeout;
  std::string error;
  bool told = false;
  while (!simulator_.open(parameters_.shared_memory, error)) {
    if (error.find("version") != std::string::npos || Clock::now() > deadline) {
      throw std::runtime_error(error);
    }
    if (!told) {
      RCLCPP_INFO(get_logger(), "waiting, for %s", error.c_str());
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (const auto & drone : drones_) {
    if (!simulator_.claim(drone.name, error)) {
      throw std::runtime_error(error);
    }
  }
  const auto & simulation = simulator_.info();
  const bool lock_step = simulation.lock_step != 0;
  const char * mode = lock_step ? "lock_step" : "free_running";
  if (!parameters_.lock_step.empty() && (parameters_.lock_step == "true") != lock_step) {
    throw std::runtime_error(
            "lock_step is " + parameters_.lock_step +
            ", but ros2_control.mode of the simulator is " + mode);
  }
  const unsigned rate = simulation.freq / simulation.period;
  if (info_.rw_rate != 0 && info_.rw_rate != rate) {
    const std::string text = "this component is read and written at " +
      std::to_string(info_.rw_rate) + " Hz, but ros2_control.rate of the simulator is " +
      std::to_string(rate) + " Hz; it must be the update_rate of the controller manager";
    if (lock_step) {
      throw std::runtime_error(text);
    }
    RCLCPP_WARN(get_logger(), "%s", text.c_str());
  }
  RCLCPP_INFO(
    get_logger(), "connected to simulator '%s', process %d: %u Hz, %s",
    parameters_.shared_memory.c_str(), simulation.simulator_pid, rate, mode);
}

/// With simulated time no cycle follows the simulator's end, so a thread checks for it. Returns false
/// once the simulator has ended.
bool CrazyflowSystem::watch()
{
  if (simulator_.alive()) {
    return true;
  }
  RCLCPP_ERROR(
    get_logger(), "the simulator '%s' has ended, and the clock with it; restart this controller "
    "manager when there is a new one", parameters_.shared_memory.c_str());
  return false;
}

/// Mark some commands of a drone as unknown until their controllers command again.
void CrazyflowSystem::forget(Drone & drone, Claims claims)
{
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    const auto & command = drone.commands[i];
    for (int k = 0; command && (claims >> i & 1) != 0 && k < kAttempts; ++k) {
      if (command->set_value(kNaN)) {
        break;
      }
    }
  }
  drone.fresh |= claims;
  drone.reported = false;
}

CrazyflowSystem::return_type CrazyflowSystem::prepare_command_mode_switch(
  const Names & start, const Names & stop)
{
  for (const auto & drone : drones_) {
    const Claims claims = after(drone.name, drone.claims, start, stop);
    // After a stop the claims may be incomplete: the drone is then held.
    if (
      (claims & ~drone.claims) == 0 || level_of(claims) != nullptr ||
      may_become_acceleration(claims))
    {
      continue;
    }
    std::string names;
    for (std::size_t i = 0; i < kCommands.size(); ++i) {
      if ((claims >> i & 1) != 0) {
        names += (names.empty() ? "" : ", ") + drone.name + "_" + std::string(kCommands[i]);
      }
    }
    std::string levels;
    for (const auto & level : kLevels) {
      levels += std::string(levels.empty() ? "" : "; ") + level.description;
    }
    RCLCPP_ERROR(
      get_logger(), "%s cannot be commanded by %s. A drone takes one of: %s", drone.name.c_str(),
      names.c_str(), levels.c_str());
    return return_type::ERROR;
  }
  return return_type::OK;
}

CrazyflowSystem::return_type CrazyflowSystem::perform_command_mode_switch(
  const Names & start, const Names & stop)
{
  for (auto & drone : drones_) {
    // A starting controller has no command yet; discard the values of its predecessor.
    forget(drone, after(drone.name, 0, start, {}));
    drone.claims = after(drone.name, drone.claims, start, stop);
    drone.fresh &= drone.claims;
    const auto * level = level_of(drone.claims);
    if (level != drone.level) {
      drone.level = level;
      drone.heading = kNaN;
    }
  }
  return return_type::OK;
}

CrazyflowSystem::return_type CrazyflowSystem::read(const rclcpp::Time &, const rclcpp::Duration &)
{
  using shared_memory::Wait;
  // In lock-step the manager's next cycle uses the next state, even if the cycle starts early.
  const bool waits = active_ && simulator_.info().lock_step != 0;
  switch (simulator_.wait(waits ? parameters_.timeout : std::chrono::milliseconds(0))) {
    case Wait::gone:
      RCLCPP_ERROR(
        get_logger(), "the simulator '%s' has ended; activate this component again once there "
        "is a new one", parameters_.shared_memory.c_str());
      return return_type::ERROR;
    case Wait::timeout:
      if (waits) {
        RCLCPP_WARN_THROTTLE(
          get_logger(), *get_clock(), kWarningPeriod, "no new state within %ld ms",
          static_cast<long>(parameters_.timeout.count()));
      }
      return return_type::OK;
    case Wait::paused:
      return return_type::OK;
    case Wait::news:
      break;
  }
  simulator_.read();
  answers_ = true;
  for (std::size_t i = 0; i < drones_.size(); ++i) {
    Drone & drone = drones_[i];
    fill(simulator_.drone(i), simulator_.info(), drone.values);
    for (const auto & [state, index] : drone.states) {
      for (int k = 0; k < kAttempts && !state->set_value(drone.values[index]); ++k) {
      }
    }
  }
  return return_type::OK;
}

CrazyflowSystem::return_type CrazyflowSystem::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  // The manager may have skipped `read` while another thread changed this component. A component
  // just activated would otherwise answer an old state, and the simulator would wait for it.
  const bool answers = std::exchange(answers_, false);
  if (!active_ || (!answers && simulator_.info().lock_step != 0)) {
    return return_type::OK;
  }
  for (std::size_t i = 0; i < drones_.size(); ++i) {
    post(i);
  }
  simulator_.send();
  return return_type::OK;
}

/// Post the command of a drone, in response to the last state.
void CrazyflowSystem::post(std::size_t i)
{
  Drone & drone = drones_[i];
  if (drone.level == nullptr) {
    constexpr double kNothing[4] = {};
    simulator_.post(i, Level::held, kNothing);
    return;
  }
  if (std::isnan(drone.heading)) {
    drone.heading = drone.values[kYaw];
  }
  double values[4];
  Claims unknown = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const std::size_t index = drone.level->commands[k];
    const auto & command = drone.commands[index];
    std::optional<double> value;
    for (int attempt = 0; command && attempt < kAttempts && !value; ++attempt) {
      value = command->get_optional();
    }
    values[k] = value.value_or(kNaN);
    const Claims claim = Claims{1} << index;
    if (!std::isnan(values[k])) {
      drone.fresh &= ~claim;
    } else if (index == drone.level->heading && (drone.claims & ~drone.fresh & claim) == 0) {
      values[k] = drone.heading;  // not claimed or without a command
    } else {
      unknown |= claim;
    }
  }
  // A NaN means no command since the controller started; otherwise it is invalid, and the simulator
  // refuses it.
  const bool waiting = (unknown & drone.fresh) != 0;
  if (waiting && unknown != drone.level->needed() && !drone.reported) {
    RCLCPP_INFO(
      get_logger(), "%s: only some of %s have commands; the previous command stays active until all "
      "have", drone.name.c_str(), drone.level->description);
  }
  drone.reported = waiting && unknown != drone.level->needed();
  simulator_.post(i, waiting ? Level::waiting : drone.level->level, values);
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::fail(const std::exception & error) const
{
  RCLCPP_ERROR(get_logger(), "%s", error.what());
  return CallbackReturn::ERROR;
}

}  // namespace crazyflow_ros

PLUGINLIB_EXPORT_CLASS(crazyflow_ros::CrazyflowSystem, hardware_interface::SystemInterface)
