// The simulator's end of the shared memory, for control periods in which nothing happens but that
// commands are answered as usual: a function that XLA calls in the midst of a compiled loop.
//
// It shows the state, waits for the commands, and gives them to the next ticks. Anything unusual
// ends the loop, and is left to the simulator's Python side, crazyflow_ros/hardware/link.py.
#include "crazyflow_ros/shared_memory.hpp"

#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace crazyflow_ros::shared_memory
{

/// Twin of `_Loop` in crazyflow_ros/hardware/exchange.py. Of n drones each, in the caller's memory.
struct Loop
{
  char * segment;
  double * rotor_angle;     ///< [n][4] rad
  double * rotor_velocity;  ///< [n][4] rad/s, at the last exchange
  double * values;          ///< [n][4] the commands in force
  const double * range;     ///< [n] m
  const double * level;     ///< [n] the `Level` in force
  const double * most;      ///< [n][4] largest magnitudes of commands of that level
  std::uint64_t * counts;   ///< [n] commands seen
  const std::uint64_t * sessions;  ///< [n] of the controllers that are obeyed
  std::uint64_t tick;       ///< of the last exchange
  std::uint64_t epoch;
  std::int64_t patience;    ///< for all exchanges together [ns]
  std::uint64_t left;       ///< control periods to go
  std::uint64_t done;       ///< control periods that are over
  double rpm;               ///< rad/s in an RPM
  std::atomic<std::uint32_t> interrupted;  ///< set from outside: end the loop
  std::uint32_t shown;      ///< the state at `tick` has been shown, and not been answered
  std::uint32_t n_drones;   ///< not read from the segment, where others can write
  std::uint32_t freq;       ///< likewise [Hz]
};

namespace
{

constexpr double kTurn = 6.283185307179586;  // rad

// Columns of a drone's row, as in crazyflow_ros/runtime/compiled.py.
constexpr std::size_t kPosition = 0, kOrientation = 3, kVelocity = 7, kAngularVelocity = 10,
                      kSpecificForce = 22, kRotorVelocity = 25, kLost = 29;

constexpr std::chrono::microseconds kWaking{20};
constexpr int kTries = 100;  // to copy a command that is not changed meanwhile

/// Leave the core to its other thread.
inline void relax()
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Simulator
{
public:
  explicit Simulator(Loop & loop)
  : loop_(loop),
    header_(*reinterpret_cast<Header *>(loop.segment)),
    n_(loop.n_drones),
    slots_(reinterpret_cast<CommandSlot *>(loop.segment + sizeof(Header) + n_ * sizeof(Drone))),
    states_(reinterpret_cast<char *>(slots_ + n_)),
    commands_(n_),
    counts_(n_)
  {
  }

  std::size_t n_drones() const { return n_; }
  std::uint32_t freq() const { return loop_.freq; }

  /// Note that some ticks are over, and what the rotors have done; false if a drone got lost.
  bool follow(const float * rows, std::size_t columns, std::uint32_t n_ticks)
  {
    // As in crazyflow_ros/runtime/engine.py, to the last bit.
    const double half = static_cast<double>(n_ticks) / static_cast<double>(loop_.freq) / 2.0;
    bool all_well = true;
    for (std::size_t i = 0; i < 4 * n_; ++i) {
      const double now =
        static_cast<double>(rows[i / 4 * columns + kRotorVelocity + i % 4]) * loop_.rpm;
      const double angle =
        std::fmod(loop_.rotor_angle[i] + (loop_.rotor_velocity[i] + now) * half, kTurn);
      loop_.rotor_angle[i] = angle < 0.0 ? angle + kTurn : angle;
      loop_.rotor_velocity[i] = now;
      all_well = all_well && rows[i / 4 * columns + kLost] == 0.0f;
    }
    loop_.tick += n_ticks;
    ++loop_.done;
    --loop_.left;
    return all_well;
  }

  /// Publish the state.
  void show(const float * rows, std::size_t columns)
  {
    const std::uint32_t count = header_.state_count.load(std::memory_order_relaxed) + 1;
    char * to = states_ + (count % 2) * (sizeof(State) + n_ * sizeof(DroneState));
    // Who reads the other state must notice that this one is being written.
    std::atomic_thread_fence(std::memory_order_release);
    auto & state = *reinterpret_cast<State *>(to);
    state.tick = loop_.tick;
    state.epoch = loop_.epoch;
    state.time_ns = static_cast<std::int64_t>(loop_.tick * 1000000000u / loop_.freq);
    auto * drone = reinterpret_cast<DroneState *>(to + sizeof(State));
    for (std::size_t i = 0; i < n_; ++i, ++drone, rows += columns) {
      std::copy_n(rows + kPosition, 3, drone->position);
      std::copy_n(rows + kOrientation, 4, drone->orientation);
      std::copy_n(rows + kVelocity, 3, drone->velocity);
      std::copy_n(rows + kAngularVelocity, 3, drone->angular_velocity);
      std::copy_n(loop_.rotor_angle + 4 * i, 4, drone->rotor_position);
      std::copy_n(loop_.rotor_velocity + 4 * i, 4, drone->rotor_velocity);
      std::copy_n(rows + kOrientation, 4, drone->imu_orientation);
      std::copy_n(rows + kAngularVelocity, 3, drone->imu_angular_velocity);
      std::copy_n(rows + kSpecificForce, 3, drone->imu_linear_acceleration);
      drone->range = loop_.range[i];
      drone->level = loop_.level[i];
    }
    header_.state_count.store(count, std::memory_order_seq_cst);
    detail::futex(header_.state_count, FUTEX_WAKE, INT_MAX);
  }

  /// Wait until all drones have a usual command of this tick; false if that does not come.
  bool take()
  {
    const auto began = std::chrono::steady_clock::now();
    while (true) {
      const std::uint32_t seen = header_.command_count.load(std::memory_order_seq_cst);
      if (loop_.interrupted.load(std::memory_order_seq_cst) != 0) {
        return false;
      }
      const Answer answer = look();
      const auto passed = std::chrono::steady_clock::now() - began;
      const std::int64_t left = loop_.patience - std::chrono::nanoseconds(passed).count();
      if (answer != Answer::missing || left <= 0) {
        loop_.patience = left;
        return answer == Answer::usual;
      }
      if (has_changed(seen)) {
        continue;
      }
      const timespec timeout{left / 1000000000, left % 1000000000};
      detail::futex(header_.command_count, FUTEX_WAIT, seen, &timeout);
    }
  }

private:
  enum class Answer { usual, missing, unusual };

  /// Look out for news for as long as it takes to be woken: a controller that flies needs no longer
  /// for its answer.
  bool has_changed(std::uint32_t seen) const
  {
    static const bool alone = std::thread::hardware_concurrency() < 2;
    const auto began = std::chrono::steady_clock::now();
    while (header_.command_count.load(std::memory_order_seq_cst) == seen) {
      if (alone || std::chrono::steady_clock::now() - began > kWaking) {
        return false;
      }
      for (int i = 0; i < 32; ++i) {
        relax();
      }
    }
    return true;
  }

  /// Whether four numbers are finite and not absurdly large.
  static bool is_within(const double * values, const double * most)
  {
    return std::equal(
      values, values + 4, most, [](double value, double limit) {return std::fabs(value) <= limit;});
  }

  /// Take over the commands, if each drone has a usual one of this tick.
  Answer look()
  {
    for (std::size_t i = 0; i < n_; ++i) {
      const CommandSlot & slot = slots_[i];
      Command & command = commands_[i];
      int tries = 0;
      do {
        if (++tries > kTries) {
          return Answer::unusual;
        }
        counts_[i] = slot.count.load(std::memory_order_acquire);
        std::memcpy(&command, &slot.buffers[counts_[i] % 2], sizeof(Command));
        std::atomic_thread_fence(std::memory_order_acquire);
      } while (slot.count.load(std::memory_order_relaxed) != counts_[i]);
      const std::uint64_t session = loop_.sessions[i];
      if (slot.session.load() != session || slot.active.load() == 0 || command.session != session) {
        return Answer::unusual;
      }
      if (command.tick != loop_.tick) {
        return Answer::missing;
      }
      if (command.epoch != loop_.epoch || static_cast<double>(command.level) != loop_.level[i] ||
        !is_within(command.values, loop_.most + 4 * i))
      {
        return Answer::unusual;
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      std::copy_n(commands_[i].values, 4, loop_.values + 4 * i);
      loop_.counts[i] = counts_[i];
    }
    return Answer::usual;
  }

  Loop & loop_;
  Header & header_;
  std::size_t n_;
  CommandSlot * slots_;
  char * states_;
  std::vector<Command> commands_;
  std::vector<std::uint64_t> counts_;
};

namespace ffi = xla::ffi;

/// Between two control periods of the compiled loop.
///
/// Args:
///   results: Of the ticks of one period: the state of the simulation, then a row for each drone.
///   arguments: Of the same: the state before, the inputs of each drone, then the phase, 1, and
///     the number of ticks.
///   address: Of the `Loop`, as two halves, the lower one first.
///
/// Returns the arguments of the next period, and whether there is one.
ffi::Error exchange(
  ffi::Buffer<ffi::F32> results, ffi::Buffer<ffi::F32> arguments, ffi::Buffer<ffi::U32> address,
  ffi::ResultBuffer<ffi::F32> next, ffi::ResultBuffer<ffi::PRED> go_on, std::int64_t n_state,
  std::int64_t n_inputs, std::int64_t n_columns)
{
  const std::uint32_t * halves = address.typed_data();
  auto & loop = *reinterpret_cast<Loop *>(
    static_cast<std::uintptr_t>(halves[0]) | static_cast<std::uintptr_t>(halves[1]) << 32);
  const auto columns = static_cast<std::size_t>(n_columns);
  const float * rows = results.typed_data() + n_state;
  Simulator simulator(loop);
  float * to = next->typed_data();
  std::copy_n(arguments.typed_data(), arguments.element_count(), to);
  std::copy_n(results.typed_data(), n_state, to);
  float * inputs = to + n_state;
  float * counts = inputs + simulator.n_drones() * n_inputs;
  const float n_ticks = counts[2];
  // As `counted` in crazyflow_ros/runtime/air.py: the largest that is exact.
  const std::uint32_t repeats = (1u << 24) / simulator.freq() * simulator.freq();
  const double passed = static_cast<double>(counts[0]) + static_cast<double>(n_ticks);
  counts[0] = static_cast<float>(std::fmod(passed, static_cast<double>(repeats)));

  bool & goes_on = go_on->typed_data()[0];
  goes_on = simulator.follow(rows, columns, static_cast<std::uint32_t>(n_ticks)) && loop.left > 0 &&
    loop.interrupted.load(std::memory_order_seq_cst) == 0;
  if (!goes_on) {
    return ffi::Error::Success();
  }
  simulator.show(rows, columns);
  goes_on = simulator.take();
  loop.shown = !goes_on;
  for (std::size_t i = 0; goes_on && i < simulator.n_drones(); ++i) {
    for (std::size_t k = 0; k < 4; ++k) {
      inputs[i * n_inputs + k] = static_cast<float>(loop.values[4 * i + k]);
    }
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace crazyflow_ros::shared_memory

XLA_FFI_DEFINE_HANDLER_SYMBOL(
  crazyflow_ros_exchange, crazyflow_ros::shared_memory::exchange,
  xla::ffi::Ffi::Bind()
  .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
  .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
  .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
  .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
  .Ret<xla::ffi::Buffer<xla::ffi::PRED>>()
  .Attr<std::int64_t>("n_state")
  .Attr<std::int64_t>("n_inputs")
  .Attr<std::int64_t>("n_columns"));
