// Parts of the plugin that need no ros2_control, for test_plugin.py.
//
//   plugin_parts names NAME...   whether each can be the name of a shared memory
//   plugin_parts watch           a Watcher's life
#include "crazyflow_ros/shared_memory.hpp"
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
}  // namespace

int main(int argc, char ** argv)
{
  if (argc > 1 && std::string(argv[1]) == "watch") {
    return watch();
  }
  for (int i = 2; i < argc; ++i) {
    std::printf("%d\n", crazyflow_ros::shared_memory::is_name(argv[i]) ? 1 : 0);
  }
  return 0;
}
