// Periodic calls of a function in a separate thread.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace crazyflow_ros
{

/// Calls a function periodically, until it returns false, `stop` is called, or this is destroyed.
///
/// It replaces a timer of the component's node, which a plugin cannot use: the controller manager's
/// executor keeps a weak pointer to each timer, and releases it after the plugin's library has been
/// unloaded, which contains the code for that.
class Watcher
{
public:
  Watcher() = default;
  Watcher(const Watcher &) = delete;
  Watcher & operator=(const Watcher &) = delete;
  ~Watcher() {stop();}

  /// Start. `look` is not used after `stop` has returned.
  void start(std::chrono::milliseconds period, std::function<bool()> look)
  {
    stop();
    ended_ = false;
    thread_ = std::thread([this, period, look = std::move(look)] {
          std::unique_lock<std::mutex> lock(mutex_);
          while (!woken_.wait_for(lock, period, [this] {return ended_;})) {
            lock.unlock();
            const bool go_on = look();
            lock.lock();
            if (!go_on) {
              return;
            }
          }
        });
  }

  /// Stop and join the thread. Do not call it from the called function.
  void stop()
  {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    woken_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool ended_ = true;
  std::thread thread_;
};

}  // namespace crazyflow_ros
