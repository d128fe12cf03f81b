// ros2_control hardware: the drones of a simulator.

#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "crazyflow_ros/shared_memory.hpp"
#include "hardware_interface/system_interface.hpp"
#include "interfaces.hpp"
#include "parameters.hpp"
#include "watcher.hpp"

namespace crazyflow_ros
{

/// Reads states from the simulator's shared memory and posts commands. The names of joints, sensors
/// and GPIOs, `<drone>_<component>`, determine its drones; docs/ros2_control.md lists interfaces and
/// parameters.
class CrazyflowSystem : public hardware_interface::SystemInterface
{
public:
  using CallbackReturn = hardware_interface::CallbackReturn;
  using return_type = hardware_interface::return_type;
  using LifecycleState = rclcpp_lifecycle::State;
  using Names = std::vector<std::string>;

  /// Options of the component's node, whose clock has no user: following /clock costs a thread.
  ///
  /// Without `override`, because ros2_control before 4.43 of Jazzy does not ask for them.
  rclcpp::NodeOptions define_custom_node_options() const;

  CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  CallbackReturn on_configure(const LifecycleState & previous) override;
  CallbackReturn on_activate(const LifecycleState & previous) override;
  CallbackReturn on_deactivate(const LifecycleState & previous) override;
  CallbackReturn on_cleanup(const LifecycleState & previous) override;
  CallbackReturn on_shutdown(const LifecycleState & previous) override;
  CallbackReturn on_error(const LifecycleState & previous) override;

  return_type prepare_command_mode_switch(const Names & start, const Names & stop) override;
  return_type perform_command_mode_switch(const Names & start, const Names & stop) override;
  return_type read(const rclcpp::Time & time, const rclcpp::Duration & period) override;
  return_type write(const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  struct Drone
  {
    std::string name;
    Claims claims = 0;
    const LevelCommands * level = nullptr;  ///< null: held
    Claims fresh = 0;       ///< claims without a command so far
    bool reported = false;  ///< a log message said that only some claims have commands
    double heading = 0.0;   ///< at the start of the level [rad]; NaN: unknown
    Values values{};
    /// State interfaces, each with the index of its value.
    std::vector<std::pair<hardware_interface::StateInterface::SharedPtr, std::size_t>> states;
    /// Command interfaces; null if missing in the description.
    std::array<hardware_interface::CommandInterface::SharedPtr, kCommands.size()> commands;
  };

  void find_drones();
  void find_handles();
  static void forget(Drone & drone, Claims claims);
  void connect();
  bool watch();
  void post(std::size_t i);
  Drone & drone_of(const std::string & component, std::string & part);
  CallbackReturn fail(const std::exception & error) const;

  shared_memory::Controller simulator_;
  std::vector<Drone> drones_;
  Parameters parameters_;
  bool active_ = false;
  bool answers_ = false;  ///< a state was read and has no command yet
  Watcher watcher_;       ///< detects the simulator's end; destroyed before the members above
};

}  // namespace crazyflow_ros
