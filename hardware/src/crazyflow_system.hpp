// ros2_control hardware: the drones of a simulator, and robots in its world.

#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crazyflow_ros/shared_memory.hpp"
#include "hardware_interface/system_interface.hpp"
#include "interfaces.hpp"
#include "parameters.hpp"
#include "robots.hpp"
#include "watcher.hpp"

namespace crazyflow_ros
{

/// Reads states from the simulator's shared memory and posts commands. Joints, sensors and GPIOs
/// called `<drone>_<component>` are parts of drones, other joints and sensors those of robots in the
/// world, by their names there; docs/guides/ros2_control.md lists interfaces and parameters.
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

  /// A joint of a robot.
  struct Joint
  {
    std::string name;
    JointControl control;
    std::size_t first = 0;          ///< of its numbers
    std::optional<std::size_t> claim;  ///< among what this component has claimed; if it is commanded
    std::size_t mimicked = 0;       ///< index of the joint that it follows, or its own
    double multiplier = 1.0, offset = 0.0;  ///< of the command that it follows
    Three given{};                  ///< the commands of this cycle
    std::array<hardware_interface::CommandInterface::SharedPtr, 3> commands;
  };

  /// A state interface of a robot.
  struct RobotState
  {
    hardware_interface::StateInterface::SharedPtr handle;
    std::size_t index;
    double sign;
  };

  using Component = hardware_interface::ComponentInfo;

  void check_components();
  void tell_unused();
  Reading find_reading(const Component & sensor, const std::string & interface) const;
  bool is_carried(const Component & component) const;
  bool is_of_world(const Component & component, bool joint) const;
  void find_parts();
  void check_rotor(const std::string & component) const;
  void find_joint(const Component & component, const std::map<std::string, double> & gains);
  void find_mimics();
  std::map<std::string, double> read_gain_file() const;
  void find_handles();
  void add_robot_state(const hardware_interface::StateInterface::SharedPtr & state);
  static void forget(Drone & drone, Claims claims);
  static void forget(Joint & joint, std::uint64_t claims);
  void connect();
  void check_simulator() const;
  bool watch();
  void post(std::size_t i);
  void post_joints();
  Drone & drone_of(const std::string & component, std::string & part);
  Joint * joint_of(const std::string & name);
  CallbackReturn fail(const std::exception & error) const;

  shared_memory::Controller simulator_;
  std::vector<Drone> drones_;
  std::vector<Joint> joints_;
  std::vector<RobotState> robot_states_;
  std::map<std::string, Reading> readings_;  ///< of sensors of robots, by the interface's full name
  Parameters parameters_;
  std::uint64_t epoch_ = 0;     ///< number of resets seen
  bool active_ = false;
  bool answers_ = false;  ///< a state was read and has no command yet
  Watcher watcher_;       ///< detects the simulator's end; destroyed before the members above
};

}  // namespace crazyflow_ros
