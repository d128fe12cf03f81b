// Parts of the plugin that need no ros2_control, for test_plugin.py.
//
//   plugin_parts names NAME...   whether each can be the name of a shared memory
//   plugin_parts layout          hashes of the layout, without and with robots
//   plugin_parts watch           a Watcher's life
//   plugin_parts parameters [NAME VALUE]...   what is read, or why it is refused
//   plugin_parts reading NAME INTERFACE...    where numbers of a sensor come from
//   plugin_parts pid GAIN=VALUE...            effort for a joint 1 rad off that turns at 2 rad/s, twice
#include "crazyflow_ros/shared_memory.hpp"
#include "parameters.hpp"
#include "watcher.hpp"

#include <atomic>
#include <cstdio>
#include <future>

namespace
{
int watch()
{
  using std::chrono::milliseconds;
  std::promise<void> third;
  std::atomic<int> looks{0};
  {
    crazyflow_ros::Watcher watcher;
    watcher.stop();  // it has not been started
    watcher.start(milliseconds(1), [&] {
      if (++looks == 3) {
        third.set_value();
      }
      return looks < 3;
    });
    third.get_future().wait();
    watcher.stop();
    std::printf("looked %d times\n", looks.load());
    watcher.start(std::chrono::hours(1), [&] {++looks; return true;});
    watcher.start(std::chrono::hours(1), [&] {++looks; return true;});
  }  // does not wait for an hour
  std::printf("looked %d times\n", looks.load());
  return 0;
}

int parameters(int argc, char ** argv)
{
  std::unordered_map<std::string, std::string> given;
  for (int i = 2; i + 1 < argc; i += 2) {
    given[argv[i]] = argv[i + 1];
  }
  try {
    const auto read = crazyflow_ros::read_parameters(given);
    std::printf(
      "%s %lld %lld %s\n", read.shared_memory.c_str(),
      static_cast<long long>(read.timeout.count()),
      static_cast<long long>(read.connect_timeout.count()), read.lock_step.c_str());
    for (const auto & text : read.unused) {
      std::printf("%s\n", text.c_str());
    }
  } catch (const std::invalid_argument & error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}

int pid(int argc, char ** argv)
{
  std::map<std::string, double> given;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const auto split = text.find('=');
    given["pid_gains.position.joint." + text.substr(0, split)] = std::stod(text.substr(split + 1));
  }
  crazyflow_ros::JointControl control;
  control.modes = crazyflow_ros::shared_memory::kEffort;
  control.claims = control.fresh = crazyflow_ros::shared_memory::kPosition;
  try {
    control.pids[0] = crazyflow_ros::read_gains(given, "position", "joint");
  } catch (const std::invalid_argument & error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  std::printf("%s\n", control.refusal(0).c_str());
  if (!control.pids[0]) {
    return 0;
  }
  const double none = std::nan("");
  for (const double target : {none, 1.0, 1.0}) {
    const auto command = control.command({target, none, none}, {0.0, 2.0, 0.0}, 0.5);
    std::printf("%d %g\n", static_cast<int>(command.level), command.numbers[2]);
  }
  return 0;
}
}  // namespace

int main(int argc, char ** argv)
{
  if (argc > 1 && std::string(argv[1]) == "watch") {
    return watch();
  }
  if (argc > 1 && std::string(argv[1]) == "layout") {
    for (const bool robots : {false, true}) {
      std::printf("%08x\n", crazyflow_ros::shared_memory::layout_hash(robots));
    }
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "parameters") {
    return parameters(argc, argv);
  }
  if (argc > 1 && std::string(argv[1]) == "pid") {
    return pid(argc, argv);
  }
  if (argc > 1 && std::string(argv[1]) == "reading") {
    for (int i = 3; i < argc; ++i) {
      const auto found = crazyflow_ros::reading(argv[2], argv[i], {});
      std::printf("%s %zu %g\n", found.sensor.c_str(), found.place, found.sign);
    }
    return 0;
  }
  for (int i = 2; i < argc; ++i) {
    std::printf("%d\n", crazyflow_ros::shared_memory::is_name(argv[i]) ? 1 : 0);
  }
  return 0;
}
