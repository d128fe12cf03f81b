// The drones of a simulator as hardware of ros2_control.

#pragma once

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "crazyflow_ros/shared_memory.hpp"
#include "hardware_interface/system_interface.hpp"
#include "interfaces.hpp"
#include "watcher.hpp"

namespace crazyflow_ros
{

/// Reads states from the simulator's shared memory, and posts commands. The names of joints,
/// sensors and GPIOs, `<drone>_<component>`, say which drones it has; docs/ros2_control.md lists
/// interfaces and parameters.
class CrazyflowSystem : public hardware_interface::SystemInterface
{
public:
  using CallbackReturn = hardware_interface::CallbackReturn;
  using return_type = hardware_interface::return_type;
  using LifecycleState = rclcpp_lifecycle::State;
  using Names = std::vector<std::string>;

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
    Claims fresh = 0;       ///< those whose controllers have not commanded anything yet
    bool told = false;      ///< that only some of them have
    double heading = 0.0;   ///< when the level began [rad]; NaN: not yet known
    Values values{};
    /// State interfaces and which of the values they have.
    std::vector<std::pair<hardware_interface::StateInterface::SharedPtr, std::size_t>> states;
    /// Command interfaces; null where the description has none.
    std::array<hardware_interface::CommandInterface::SharedPtr, kCommands.size()> commands;
  };

  void read_parameters();
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
  std::string memory_name_;
  std::string lock_step_;  ///< "true", "false", or empty: as the simulator wants
  std::chrono::milliseconds timeout_{};
  std::chrono::milliseconds connect_timeout_{};
  bool active_ = false;
  bool answers_ = false;  ///< a state was read, and not yet answered
  Watcher watcher_;       ///< of the simulator's end; it ends before all of the above
};

}  // namespace crazyflow_ros
