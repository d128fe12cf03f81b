// Looks at something now and then, in a thread of its own.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace crazyflow_ros
{

/// Calls a function every so often, until that is false, `stop` is called, or this is destroyed.
///
/// It stands for a timer of the component's node, which a plugin cannot have: the executor of the
/// controller manager keeps a weak pointer to each timer that it has seen, and drops it after the
/// plugin's library, where the code that this needs is, has been unloaded.
class Watcher
{
public:
  Watcher() = default;
  Watcher(const Watcher &) = delete;
  Watcher & operator=(const Watcher &) = delete;
  ~Watcher() {stop();}

  /// Begin. Nothing of `look` is used any more when `stop` has returned.
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

  /// End, and wait until it has ended. Not from within the function that is called.
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
