#include "crazyflow_system.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/parameter_map.hpp"
#include "rclcpp/rclcpp.hpp"

namespace crazyflow_ros
{

namespace
{
constexpr int kWarningPeriod = 1000;  // ms between two messages of the same kind
constexpr std::chrono::milliseconds kLook{500};  // between two checks for the simulator
constexpr int kAttempts = 1000;       // to lock a value that another thread holds briefly
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr const char * kDroneParts =
  "; a drone's parts are called <drone>_rotor0, _rotor1 and so on, _imu, _pose, _twist, _range, _x, _y, _z, "
  "_yaw, _body and _goal, with their own interfaces, or as sensors in the file of the simulator's parameter "
  "sensors";
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

/// Whether a component has the name and the interfaces of a drone's.
bool may_be_of_drone(const hardware_interface::ComponentInfo & component)
{
  const auto last = component.name.rfind('_');
  if (last == std::string::npos || last == 0) {
    return false;
  }
  const std::string part = component.name.substr(last + 1) + "/";
  const auto all = [&part](const auto & names, const auto & interfaces) {
      return std::all_of(interfaces.begin(), interfaces.end(), [&](const auto & interface) {
                 return index_of(names, part + interface.name) != names.size();
               });
    };
  const auto has = [&part](const auto & names) {
      return std::any_of(names.begin(), names.end(), [&part](std::string_view name) {
                 return name.compare(0, part.size(), part) == 0;
               });
    };
  return (has(kStates) || has(kCommands)) && all(kStates, component.state_interfaces) &&
         all(kCommands, component.command_interfaces);
}

/// Name that MuJoCo's sensors for a sensor have in common.
const std::string & sensor_name(const hardware_interface::ComponentInfo & component)
{
  const auto given = component.parameters.find("mujoco_sensor_name");
  return given == component.parameters.end() ? component.name : given->second;
}

/// Bits of a joint's interfaces among full names.
std::uint64_t joint_claims(const std::string & joint, const CrazyflowSystem::Names & names) noexcept
{
  std::uint64_t claims = 0;
  for (const auto & name : names) {
    if (name.size() > joint.size() + 1 && name.compare(0, joint.size(), joint) == 0 &&
      name[joint.size()] == '/')
    {
      const std::size_t i = joint_interface(std::string_view(name).substr(joint.size() + 1));
      claims |= i < kJointInterfaces.size() ? std::uint64_t{1} << i : 0;
    }
  }
  return claims;
}

/// Axes may be claimed one by one; the drone is held until all are claimed.
bool may_become_acceleration(Claims claims) noexcept
{
  constexpr auto & level = kLevels[3];
  static_assert(level.level == Level::acceleration);
  return (claims & ~level.all(kMostRotors)) == 0;
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
    check_components();
    tell_unused();
  } catch (const std::exception & error) {
    return fail(error);
  }
  return CallbackReturn::SUCCESS;
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::on_configure(const LifecycleState &)
{
  try {
    connect();
    find_parts();
    find_handles();
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
  for (auto & joint : joints_) {
    joint.control.claims = 0;
  }
  return on_cleanup(previous);  // allows another configuration, with a new simulator
}

/// Refuse components that neither a drone nor a robot can have.
void CrazyflowSystem::check_components()
{
  if (info_.joints.empty() && info_.sensors.empty() && info_.gpios.empty()) {
    throw std::invalid_argument("there are no drones and no robots: no joint, sensor or gpio");
  }
  for (const auto & gpio : info_.gpios) {
    if (!may_be_of_drone(gpio)) {
      throw std::invalid_argument(
              "gpio '" + gpio.name + "' has an interface, or a name, that a drone does not have; "
              "a drone's is called <drone>_x, _y, _z, _yaw, _body or _goal");
    }
  }
}

/// Say once what of the description has no effect.
void CrazyflowSystem::tell_unused()
{
  std::vector<std::string> unused = parameters_.unused;
  if (!info_.transmissions.empty()) {
    unused.push_back("transmissions have no effect: joints are commanded themselves");
  }
  bool has_initial = false;
  for (const auto & joint : info_.joints) {
    for (const auto * interfaces : {&joint.state_interfaces, &joint.command_interfaces}) {
      for (const auto & interface : *interfaces) {
        has_initial |= !interface.initial_value.empty();
      }
    }
  }
  if (has_initial) {
    unused.push_back(std::string("initial_value has no effect: ") + detail::kStart);
  }
  for (const auto & sensor : info_.sensors) {
    if (sensor.state_interfaces.empty()) {
      unused.push_back("sensor " + sensor.name + " has no state interface: " + detail::kSensors);
    }
  }
  for (const auto & text : unused) {
    RCLCPP_WARN(get_logger(), "%s", text.c_str());
  }
}

/// Where the number of a sensor's state interface is: in what drones carry, or in the world.
Reading CrazyflowSystem::find_reading(const Component & sensor, const std::string & interface) const
{
  const auto dot = interface.find('.');
  const auto axis = dot + 2 == interface.size() ? std::string_view("xyzw").find(interface.back()) :
    std::string_view::npos;
  const bool has_axis = axis != std::string_view::npos;
  const std::string name = sensor.name + "/" + (has_axis ? interface.substr(0, dot) : interface);
  if (simulator_.part(name, false) != nullptr) {
    return {name, has_axis ? axis : 0};
  }
  return reading(sensor_name(sensor), interface, parameters_.suffixes);
}

/// Whether a component is a sensor that a drone carries, by the simulator's file of sensors.
bool CrazyflowSystem::is_carried(const Component & component) const
{
  const auto & interfaces = component.state_interfaces;
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const auto & interface) {
             const auto found = find_reading(component, interface.name).sensor;
             return found.compare(0, component.name.size() + 1, component.name + "/") == 0;
           });
}

/// Whether a component is a joint or a sensor of the world.
bool CrazyflowSystem::is_of_world(const Component & component, bool joint) const
{
  if (joint) {
    return simulator_.part(component.name, true) != nullptr;
  }
  const auto & interfaces = component.state_interfaces;
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const auto & interface) {
             const auto found = find_reading(component, interface.name);
             return !found.sensor.empty() && simulator_.part(found.sensor, false) != nullptr;
           });
}

/// Find out which components are parts of drones and which of robots, and claim what they command.
void CrazyflowSystem::find_parts()
{
  std::string part, error;
  const auto gains = read_gain_file();
  readings_.clear();
  std::vector<const Component *> joints, sensors;
  for (const auto * components : {&info_.joints, &info_.sensors, &info_.gpios}) {
    for (const auto & component : *components) {
      const bool joint = components == &info_.joints;
      if (may_be_of_drone(component) && !is_carried(component)) {
        const std::string name = component.name.substr(0, component.name.rfind('_'));
        if (simulator_.has_drone(name) || !is_of_world(component, joint)) {
          check_rotor(component.name);
          drone_of(component.name, part);
          continue;
        }
      }
      if (joint) {
        joints.push_back(&component);
      } else if (!component.state_interfaces.empty()) {
        sensors.push_back(&component);
      }
    }
  }
  for (const auto & drone : drones_) {
    if (!simulator_.claim(drone.name, error)) {
      throw std::runtime_error(error);
    }
  }
  for (const auto * joint : joints) {
    find_joint(*joint, gains);
  }
  find_mimics();
  std::size_t claim = drones_.size();
  for (auto & joint : joints_) {
    if (!joint.claim) {
      continue;
    }
    if (!simulator_.claim_joint(joint.name, error)) {
      throw std::runtime_error(error);
    }
    joint.claim = claim++;
  }
  for (const auto * sensor : sensors) {
    for (const auto & interface : sensor->state_interfaces) {
      const auto found = find_reading(*sensor, interface.name);
      if (!found.sensor.empty()) {
        const auto * there = simulator_.part(found.sensor, false);
        if (there == nullptr || found.place >= there->size) {
          throw std::runtime_error(
                  "the world has no sensor '" + found.sensor + "', for " + sensor->name + "/" +
                  interface.name + kDroneParts);
        }
      }
      readings_[sensor->name + "/" + interface.name] = found;
    }
  }
}

/// Refuse a rotor that drones of this simulator do not have.
void CrazyflowSystem::check_rotor(const std::string & component) const
{
  const std::string part = component.substr(component.rfind('_') + 1);
  const std::size_t rotor = index_of(kCommands, part + "/velocity");
  if (rotor < kMostRotors && rotor >= simulator_.n_rotors()) {
    throw std::runtime_error(
            "there is no " + component + ": the simulator's drones have " +
            std::to_string(simulator_.n_rotors()) + " rotors");
  }
}

void CrazyflowSystem::find_joint(
  const Component & component, const std::map<std::string, double> & gains)
{
  const auto * there = simulator_.part(component.name, true);
  if (there == nullptr) {
    throw std::runtime_error(
            "the world has no joint '" + component.name + "' (a hinge or a slide)" + kDroneParts);
  }
  Joint * known = joint_of(component.name);
  if (known == nullptr) {
    joints_.emplace_back();
    known = &joints_.back();
    known->name = component.name;
  }
  known->first = there->first;
  known->control.modes = there->modes;
  known->mimicked = static_cast<std::size_t>(known - joints_.data());
  known->claim.reset();
  for (std::size_t i = 0; i < known->control.pids.size(); ++i) {
    known->control.pids[i] = read_gains(gains, std::string(kJointInterfaces[i]), component.name);
  }
  for (const auto & interface : component.state_interfaces) {
    if (joint_interface(interface.name) == kJointInterfaces.size()) {
      throw std::runtime_error("joint '" + component.name + "' has no " + interface.name);
    }
  }
  for (const auto & interface : component.command_interfaces) {
    const std::size_t i = joint_interface(interface.name);
    if (i == kJointInterfaces.size()) {
      throw std::runtime_error("joint '" + component.name + "' has no " + interface.name);
    }
    const std::string why = known->control.refusal(i);
    if (!why.empty()) {
      throw std::runtime_error(
              "joint '" + component.name + "' cannot be commanded by " + interface.name + ": " +
              why);
    }
    known->claim = 0;  // its place follows
  }
}

/// Let joints that mimic others follow their commands.
void CrazyflowSystem::find_mimics()
{
  for (const auto & mimic : info_.mimic_joints) {
    Joint * follower = joint_of(info_.joints.at(mimic.joint_index).name);
    Joint * leader = joint_of(info_.joints.at(mimic.mimicked_joint_index).name);
    if (follower == nullptr || leader == nullptr || !leader->claim) {
      continue;
    }
    follower->mimicked = static_cast<std::size_t>(leader - joints_.data());
    follower->multiplier = mimic.multiplier;
    follower->offset = mimic.offset;
    follower->claim = 0;
  }
}

std::map<std::string, double> CrazyflowSystem::read_gain_file() const
{
  std::map<std::string, double> gains;
  if (parameters_.pids_config_file.empty()) {
    return gains;
  }
  const auto nodes = rclcpp::parameter_map_from_yaml_file(parameters_.pids_config_file);
  for (const auto & [node, parameters] : nodes) {
    for (const auto & parameter : parameters) {
      const auto type = parameter.get_type();
      if (type == rclcpp::ParameterType::PARAMETER_DOUBLE) {
        gains[parameter.get_name()] = parameter.as_double();
      } else if (type == rclcpp::ParameterType::PARAMETER_INTEGER) {
        gains[parameter.get_name()] = static_cast<double>(parameter.as_int());
      }
    }
  }
  return gains;
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

CrazyflowSystem::Joint * CrazyflowSystem::joint_of(const std::string & name)
{
  const auto found = std::find_if(
    joints_.begin(), joints_.end(), [&name](const Joint & joint) {return joint.name == name;});
  return found == joints_.end() ? nullptr : &*found;
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
  robot_states_.clear();
  for (const auto * states : {&joint_states_, &sensor_states_, &gpio_states_}) {
    for (const auto & state : *states) {
      if (joint_of(state->get_prefix_name()) != nullptr || readings_.count(state->get_name()) != 0) {
        add_robot_state(state);
        continue;
      }
      Drone & drone = drone_of(state->get_prefix_name(), part);
      drone.states.emplace_back(state, index_of(kStates, part + "/" + state->get_interface_name()));
    }
  }
  for (const auto * commands : {&joint_commands_, &gpio_commands_}) {
    for (const auto & command : *commands) {
      if (Joint * joint = joint_of(command->get_prefix_name())) {
        joint->commands[joint_interface(command->get_interface_name())] = command;
        continue;
      }
      Drone & drone = drone_of(command->get_prefix_name(), part);
      drone.commands[index_of(kCommands, part + "/" + command->get_interface_name())] = command;
    }
  }
  for (auto & drone : drones_) {  // earlier commands are outdated
    forget(drone, drone.claims);
  }
  for (auto & joint : joints_) {
    forget(joint, joint.control.claims);
  }
}

void CrazyflowSystem::add_robot_state(
  const hardware_interface::StateInterface::SharedPtr & state)
{
  if (const Joint * joint = joint_of(state->get_prefix_name())) {
    const std::size_t number = joint_interface(state->get_interface_name());
    robot_states_.push_back({state, joint->first + number, 1.0});
    return;
  }
  const Reading & found = readings_.at(state->get_name());
  if (found.sensor.empty()) {
    for (int k = 0; k < kAttempts && !state->set_value(0.0); ++k) {
    }
  } else {
    const std::size_t first = simulator_.part(found.sensor, false)->first;
    robot_states_.push_back({state, first + found.place, found.sign});
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
  check_simulator();
}

/// Refuse a simulator of another mode or rate.
void CrazyflowSystem::check_simulator() const
{
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

/// Mark some commands of a joint as unknown until their controllers command again.
void CrazyflowSystem::forget(Joint & joint, std::uint64_t claims)
{
  for (std::size_t i = 0; i < joint.commands.size(); ++i) {
    const auto & command = joint.commands[i];
    for (int k = 0; command && (claims >> i & 1) != 0 && k < kAttempts; ++k) {
      if (command->set_value(kNaN)) {
        break;
      }
    }
  }
  joint.control.fresh |= claims;
  if (claims != 0) {
    joint.control.restart();
  }
}

CrazyflowSystem::return_type CrazyflowSystem::prepare_command_mode_switch(
  const Names & start, const Names & stop)
{
  for (const auto & drone : drones_) {
    const Claims claims = after(drone.name, drone.claims, start, stop);
    // After a stop the claims may be incomplete: the drone is then held.
    const auto * wanted = level_of(claims, simulator_.n_rotors());
    if (
      (claims & ~drone.claims) == 0 || (wanted != nullptr && is_served(*wanted, simulator_.info())) ||
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
      if (is_served(level, simulator_.info())) {
        levels += std::string(levels.empty() ? "" : "; ") + level.description;
      }
    }
    const char * why = wanted == nullptr ? "" :
      ", which need the simulator's parameter controller:=mellinger";
    RCLCPP_ERROR(
      get_logger(), "%s cannot be commanded by %s%s. A drone takes one of: %s", drone.name.c_str(),
      names.c_str(), why, levels.c_str());
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
    const auto * level = level_of(drone.claims, simulator_.n_rotors());
    if (level != drone.level) {
      drone.level = level;
      drone.heading = kNaN;
    }
  }
  for (auto & joint : joints_) {
    JointControl & control = joint.control;
    const std::uint64_t started = joint_claims(joint.name, start);
    forget(joint, started);
    control.claims = (control.claims & ~joint_claims(joint.name, stop)) | started;
    control.fresh &= control.claims;
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
    fill(simulator_.drone(i), simulator_.info(), simulator_.n_rotors(), drone.values);
    for (const auto & [state, index] : drone.states) {
      for (int k = 0; k < kAttempts && !state->set_value(drone.values[index]); ++k) {
      }
    }
  }
  for (const auto & state : robot_states_) {
    const double value = state.sign * simulator_.values()[state.index];
    for (int k = 0; k < kAttempts && !state.handle->set_value(value); ++k) {
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
  post_joints();
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
  double values[kMostRotors] = {};
  Claims unknown = 0;
  for (std::size_t k = 0; k < drone.level->size(simulator_.n_rotors()); ++k) {
    const std::size_t index = drone.level->command(k);
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
  const Claims needed = drone.level->needed(simulator_.n_rotors());
  if (waiting && unknown != needed && !drone.reported) {
    RCLCPP_INFO(
      get_logger(), "%s: only some of %s have commands; the previous command stays active until all "
      "have", drone.name.c_str(), drone.level->description);
  }
  drone.reported = waiting && unknown != needed;
  simulator_.post(i, waiting ? Level::waiting : drone.level->level, values);
}

/// Post the commands of joints, in response to the last state.
void CrazyflowSystem::post_joints()
{
  const auto & simulation = simulator_.info();
  const double seconds = static_cast<double>(simulation.period) / simulation.freq;
  const bool was_reset = std::exchange(epoch_, simulator_.state().epoch) != epoch_;
  for (auto & joint : joints_) {
    for (std::size_t i = 0; i < joint.given.size(); ++i) {
      std::optional<double> value;
      const auto & command = joint.commands[i];
      for (int attempt = 0; command && attempt < kAttempts && !value; ++attempt) {
        value = command->get_optional();
      }
      joint.given[i] = value.value_or(kNaN);
    }
  }
  for (auto & joint : joints_) {
    if (!joint.claim) {
      continue;
    }
    const Joint & leader = joints_[joint.mimicked];
    if (&leader != &joint) {
      joint.control.claims = leader.control.claims;
      joint.control.fresh = leader.control.fresh;
      joint.given = {
        joint.multiplier * leader.given[0] + joint.offset, joint.multiplier * leader.given[1],
        joint.multiplier * leader.given[2]};
    }
    if (was_reset) {
      joint.control.restart();
    }
    const double * state = simulator_.values().data() + joint.first;
    const JointCommand command =
      joint.control.command(joint.given, {state[0], state[1], state[2]}, seconds);
    simulator_.post(*joint.claim, command.level, command.numbers);
  }
}

CrazyflowSystem::CallbackReturn CrazyflowSystem::fail(const std::exception & error) const
{
  RCLCPP_ERROR(get_logger(), "%s", error.what());
  return CallbackReturn::ERROR;
}

}  // namespace crazyflow_ros

PLUGINLIB_EXPORT_CLASS(crazyflow_ros::CrazyflowSystem, hardware_interface::SystemInterface)
