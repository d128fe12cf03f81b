// Shared memory between the simulator and the controllers of its drones: layout and protocol.
//
// One segment of POSIX shared memory per simulator, for any number of controllers:
//
//   Header | Drone[n] | CommandSlot[n] | State, DroneState[n] | State, DroneState[n]
//
// Where robots are in the world, it is of version 3, and their j joints follow the n drones:
//
//   Header | Robots | Drone[n + j] | CommandSlot[n + j] | Part[p] |
//   State, DroneState[n], double[v] | State, DroneState[n], double[v]
//
// The simulator writes states into a double buffer: state number k is in slot k % 2, and
// `state_count` becomes k once the state is complete. A reader copies the slot, and reads again if
// the count has changed meanwhile. No writer waits for a reader, and a process that dies while
// writing leaves the previous state readable. Commands return the same way, with one double buffer
// per drone and joint.
//
// A command carries the tick and the epoch (the number of resets) of the state that it responds to.
// In lock-step, after publishing the state of a control tick, the simulator waits until each awaited
// drone has a command of that tick; a command of another epoch ends the wait, but is ignored. A
// drone is awaited from its controller's first command on. In free-running mode the simulator uses
// the latest command. A command that is not finite, out of range or of an unknown level is refused,
// and the drone is treated as if it had lost its controller (`ros2_control.on_loss`).
//
// `state_count` and `command_count` are futexes: a waiting process sleeps until they change.
//
// The simulator locks byte 0 of the file, the controller of drone or joint i byte 1 + i. The locks belong to
// the open file (F_OFD_SETLK), and the kernel releases them whenever a process ends: a free lock
// means that its owner is gone.
//
// Requires only C++17 and Linux. crazyflow_ros/lockstep/layout.py is the simulator's side. A change
// of semantics needs a new kVersion in both; a change of layout is detected by the hash.

#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string>
#include <vector>

namespace crazyflow_ros::shared_memory
{

constexpr char kMagic[8] = {'c', 'r', 'a', 'z', 'y', 'f', 'l', 'w'};
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kVersionWithRobots = 3;
constexpr std::size_t kMostRotors = 16;  ///< of a drone; all drones of a simulator have as many

/// Meaning of the numbers of a command: one for each rotor, or four.
enum class Level : std::uint64_t
{
  held = 0,            ///< none: the drone is held where it is
  rotor_velocity = 1,  ///< speed of each rotor [rad/s], positive in flight
  attitude = 2,        ///< roll, pitch, yaw [rad], collective thrust [N]
  body_rate = 3,       ///< roll rate, pitch rate, yaw rate [rad/s], collective thrust [N]
  acceleration = 4,    ///< x, y, z in the world [m/s^2], 0 hovers, and heading [rad]
  waiting = 5,         ///< no command yet after activation: the drone keeps its previous command
  goal = 13,           ///< x, y, z in the world [m] and heading [rad] to which the commander flies
};

/// How a joint of a robot is commanded: bits of the level of its commands, whose numbers are
/// position, velocity and effort.
constexpr std::uint64_t kPosition = 1;      ///< rad or m
constexpr std::uint64_t kVelocity = 2;      ///< rad/s or m/s
constexpr std::uint64_t kEffort = 4;        ///< N m or N
constexpr std::uint64_t kJointWaiting = 8;  ///< no command yet: the joint goes on as before

struct Header
{
  char magic[8];
  std::uint32_t version;
  std::uint32_t layout;     ///< hash of all names, offsets and sizes, see `layout_hash`
  std::uint64_t size;       ///< size of the segment [bytes]
  std::uint32_t n_drones;
  std::uint32_t freq;       ///< physics ticks per simulated second
  std::uint32_t period;     ///< ticks per control period
  std::uint32_t lock_step;  ///< 1 if the simulator waits for commands
  std::int32_t simulator_pid;
  std::uint32_t n_rotors;   ///< of each drone
  double rotor_torque[kMostRotors][3];  ///< drag torque [N m] as a polynomial in rotor speed [rad/s]
  double rotor_thrust[kMostRotors][3];  ///< part of the thrust along the body's z [N], same
  std::uint64_t levels;     ///< bit k: drones follow commands of level k
  std::uint64_t reserved1[1];
  std::atomic<std::uint32_t> state_count;    ///< futex: states published so far
  std::atomic<std::uint32_t> paused;         ///< 1 while paused
  std::uint64_t reserved2[7];
  std::atomic<std::uint32_t> command_count;  ///< futex: changes with each command or claim
  std::uint32_t reserved3;
  std::uint64_t reserved4[7];
};

struct Drone
{
  char name[60];                       ///< null-terminated
  std::atomic<std::uint32_t> awaited;  ///< 1 if the simulator waits for this drone's commands
};

struct Command
{
  std::uint64_t tick;   ///< tick of the state that this responds to
  std::uint64_t epoch;  ///< epoch of that state
  std::uint64_t level;  ///< a `Level`
  std::uint64_t session;  ///< session of the slot; commands left by a dead controller have another one
  double values[kMostRotors];  ///< zeros after those of the level
  std::uint64_t reserved[4];
};

/// Written only by the drone's controller.
struct CommandSlot
{
  std::atomic<std::uint64_t> session;  ///< changes whenever a controller claims the drone
  std::atomic<std::uint64_t> count;    ///< number of commands; the latest is in buffers[count % 2]
  std::atomic<std::uint32_t> active;   ///< 1 while the controller responds to every state
  std::int32_t pid;
  std::uint64_t reserved[5];
  Command buffers[2];
};

struct State
{
  std::uint64_t tick;   ///< physics ticks
  std::uint64_t epoch;  ///< number of resets
  std::int64_t time_ns; ///< simulation time
  std::uint64_t reserved[5];
};

struct DroneState
{
  double position[3];                 ///< centre of mass in the world [m]
  double orientation[4];              ///< x, y, z, w, body to world
  double velocity[3];                 ///< world axes [m/s]
  double angular_velocity[3];         ///< body axes [rad/s]
  double imu_orientation[4];          ///< x, y, z, w
  double imu_angular_velocity[3];     ///< sensor axes [rad/s]
  double imu_linear_acceleration[3];  ///< specific force in sensor axes [m/s^2]
  double range;                       ///< distance to the surface below the body [m]; inf out of range
  double level;                       ///< active `Level`
  double rotor_position[kMostRotors]; ///< rad
  double rotor_velocity[kMostRotors]; ///< rad/s, positive in flight
  double reserved[7];
};

/// What of robots is in the memory.
struct Robots
{
  std::uint32_t n_joints;
  std::uint32_t n_parts;   ///< joints and sensors
  std::uint32_t n_values;  ///< numbers of all parts
  std::uint32_t reserved[13];
};

/// A joint or a sensor of a robot, or `<sensor>/<quantity>` of a sensor that drones carry.
struct Part
{
  char name[60];        ///< null-terminated
  std::int32_t kind;    ///< kJoint, kCarried, or MuJoCo's type of a sensor
  std::uint32_t first;  ///< index of its first number
  std::uint32_t size;   ///< its numbers; of a joint position, velocity and effort in the last tick
  std::uint32_t modes;  ///< bits of how a joint can be commanded
  std::uint32_t reserved;
};
constexpr std::int32_t kJoint = -1;
constexpr std::int32_t kCarried = -2;

static_assert(sizeof(Robots) == 64 && sizeof(Part) == 80);
static_assert(sizeof(Header) == 960 && sizeof(Drone) == 64 && sizeof(Command) == 192);
static_assert(sizeof(CommandSlot) == 448 && sizeof(State) == 64 && sizeof(DroneState) == 512);
// Atomics shared between processes must be plain values without a lock.
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<std::uint64_t>) == 8);

namespace detail
{

struct Field
{
  const char * name;
  std::size_t offset;
  std::size_t size;
};

#define CRAZYFLOW_ROS_FIELD(type, name) {#type "." #name, offsetof(type, name), sizeof(type::name)}
constexpr Field kFields[] = {
  CRAZYFLOW_ROS_FIELD(Header, magic),
  CRAZYFLOW_ROS_FIELD(Header, version),
  CRAZYFLOW_ROS_FIELD(Header, layout),
  CRAZYFLOW_ROS_FIELD(Header, size),
  CRAZYFLOW_ROS_FIELD(Header, n_drones),
  CRAZYFLOW_ROS_FIELD(Header, freq),
  CRAZYFLOW_ROS_FIELD(Header, period),
  CRAZYFLOW_ROS_FIELD(Header, lock_step),
  CRAZYFLOW_ROS_FIELD(Header, simulator_pid),
  CRAZYFLOW_ROS_FIELD(Header, n_rotors),
  CRAZYFLOW_ROS_FIELD(Header, rotor_torque),
  CRAZYFLOW_ROS_FIELD(Header, rotor_thrust),
  CRAZYFLOW_ROS_FIELD(Header, levels),
  CRAZYFLOW_ROS_FIELD(Header, state_count),
  CRAZYFLOW_ROS_FIELD(Header, paused),
  CRAZYFLOW_ROS_FIELD(Header, command_count),
  CRAZYFLOW_ROS_FIELD(Drone, name),
  CRAZYFLOW_ROS_FIELD(Drone, awaited),
  CRAZYFLOW_ROS_FIELD(Command, tick),
  CRAZYFLOW_ROS_FIELD(Command, epoch),
  CRAZYFLOW_ROS_FIELD(Command, level),
  CRAZYFLOW_ROS_FIELD(Command, session),
  CRAZYFLOW_ROS_FIELD(Command, values),
  CRAZYFLOW_ROS_FIELD(CommandSlot, session),
  CRAZYFLOW_ROS_FIELD(CommandSlot, count),
  CRAZYFLOW_ROS_FIELD(CommandSlot, active),
  CRAZYFLOW_ROS_FIELD(CommandSlot, pid),
  CRAZYFLOW_ROS_FIELD(CommandSlot, buffers),
  CRAZYFLOW_ROS_FIELD(State, tick),
  CRAZYFLOW_ROS_FIELD(State, epoch),
  CRAZYFLOW_ROS_FIELD(State, time_ns),
  CRAZYFLOW_ROS_FIELD(DroneState, position),
  CRAZYFLOW_ROS_FIELD(DroneState, orientation),
  CRAZYFLOW_ROS_FIELD(DroneState, velocity),
  CRAZYFLOW_ROS_FIELD(DroneState, angular_velocity),
  CRAZYFLOW_ROS_FIELD(DroneState, imu_orientation),
  CRAZYFLOW_ROS_FIELD(DroneState, imu_angular_velocity),
  CRAZYFLOW_ROS_FIELD(DroneState, imu_linear_acceleration),
  CRAZYFLOW_ROS_FIELD(DroneState, range),
  CRAZYFLOW_ROS_FIELD(DroneState, level),
  CRAZYFLOW_ROS_FIELD(DroneState, rotor_position),
  CRAZYFLOW_ROS_FIELD(DroneState, rotor_velocity),
  // With robots only.
  CRAZYFLOW_ROS_FIELD(Robots, n_joints),
  CRAZYFLOW_ROS_FIELD(Robots, n_parts),
  CRAZYFLOW_ROS_FIELD(Robots, n_values),
  CRAZYFLOW_ROS_FIELD(Part, name),
  CRAZYFLOW_ROS_FIELD(Part, kind),
  CRAZYFLOW_ROS_FIELD(Part, first),
  CRAZYFLOW_ROS_FIELD(Part, size),
  CRAZYFLOW_ROS_FIELD(Part, modes),
};
constexpr std::size_t kRobotFields = 8;  // the last ones
#undef CRAZYFLOW_ROS_FIELD

constexpr std::uint32_t mix(std::uint32_t hash, std::uint32_t byte)
{
  return (hash ^ byte) * 16777619u;
}

inline long futex(
  std::atomic<std::uint32_t> & word, int operation, std::uint32_t value,
  const timespec * timeout = nullptr) noexcept
{
  return syscall(
    SYS_futex, reinterpret_cast<std::uint32_t *>(&word), operation, value, timeout, nullptr, 0);
}

inline bool lock(int file, short type, off_t byte, bool only_look, short & found) noexcept
{
  struct flock request{};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = byte;
  request.l_len = 1;
  const int result = fcntl(file, only_look ? F_OFD_GETLK : F_OFD_SETLK, &request);
  found = request.l_type;
  return result == 0;
}

}  // namespace detail

/// FNV-1a over the name, offset and size of each field, without or with robots.
constexpr std::uint32_t layout_hash(bool robots = false)
{
  std::uint32_t hash = 2166136261u;
  const std::size_t n = std::size(detail::kFields) - (robots ? 0 : detail::kRobotFields);
  for (std::size_t i = 0; i < n; ++i) {
    const auto & field = detail::kFields[i];
    for (const char * c = field.name; *c != 0; ++c) {
      hash = detail::mix(hash, static_cast<unsigned char>(*c));
    }
    for (const std::size_t number : {field.offset, field.size}) {
      for (int shift = 0; shift < 32; shift += 8) {
        hash = detail::mix(hash, static_cast<std::uint32_t>(number >> shift) & 0xffu);
      }
    }
  }
  return hash;
}

constexpr std::size_t segment_size(std::size_t n_drones)
{
  return sizeof(Header) + n_drones * (sizeof(Drone) + sizeof(CommandSlot)) +
         2 * (sizeof(State) + n_drones * sizeof(DroneState));
}

constexpr std::size_t segment_size(std::size_t n_drones, const Robots & robots)
{
  return segment_size(n_drones) + sizeof(Robots) + robots.n_parts * sizeof(Part) +
         robots.n_joints * (sizeof(Drone) + sizeof(CommandSlot)) +
         2 * robots.n_values * sizeof(double);
}

constexpr const char * kNameRule = "1 to 200 letters, digits, '_', '.' or '-'";

/// Whether a name is valid for a shared memory.
inline bool is_name(const std::string & name)
{
  return !name.empty() && name.size() <= 200 &&
         name.find_first_not_of(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == std::string::npos;
}

enum class Wait
{
  news,     ///< there is an unread state
  timeout,  ///< there is no unread state
  paused,   ///< there is no unread state, and the simulation is paused
  gone,     ///< the simulator has ended
};

/// A controller's end of the memory. Use it from one thread at a time.
///
/// `open`, `claim` and `close` are slow; the other functions neither allocate nor throw, and only
/// `wait` blocks.
class Controller
{
public:
  Controller() = default;
  Controller(const Controller &) = delete;
  Controller & operator=(const Controller &) = delete;
  ~Controller() { close(); }

  /// Connect to a simulator by name. On failure `error` has the reason.
  bool open(const std::string & name, std::string & error)
  {
    close();
    if (!is_name(name)) {
      return refuse(
        std::string("a shared memory's name must have ") + kNameRule + ", got '" + name + "'", error);
    }
    file_ = shm_open(("/crazyflow_ros." + name).c_str(), O_RDWR | O_CLOEXEC, 0);
    if (file_ < 0) {
      return refuse(
        errno == ENOENT ? "there is no simulator '" + name + "' (parameter ros2_control.mode)"
                        : "shared memory of '" + name + "': " + std::strerror(errno), error);
    }
    if (!alive()) {
      return refuse("the simulator '" + name + "' has ended", error);
    }
    struct stat status{};
    if (fstat(file_, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(Header))) {
      return refuse("shared memory of '" + name + "' is too small", error);
    }
    size_ = static_cast<std::size_t>(status.st_size);
    void * address = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (address == MAP_FAILED) {
      return refuse("shared memory of '" + name + "': " + std::strerror(errno), error);
    }
    base_ = static_cast<char *>(address);
    if (std::memcmp(header().magic, kMagic, sizeof(kMagic)) != 0) {
      return refuse("shared memory of '" + name + "' is not crazyflow_ros's", error);
    }
    const bool has_robots = header().version == kVersionWithRobots;
    if ((!has_robots && header().version != kVersion) ||
      header().layout != layout_hash(has_robots))
    {
      char text[160];
      std::snprintf(
        text, sizeof(text),
        "the simulator speaks version %u (layout %08x), this controller version %u (layout %08x)",
        header().version, header().layout, has_robots ? kVersionWithRobots : kVersion,
        layout_hash(has_robots));
      return refuse(text, error);
    }
    n_drones_ = header().n_drones;  // copied, because others could overwrite it
    n_rotors_ = std::min<std::size_t>(header().n_rotors, kMostRotors);
    robots_ = {};
    if (has_robots && size_ >= sizeof(Header) + sizeof(Robots)) {
      std::memcpy(&robots_, base_ + sizeof(Header), sizeof(Robots));
    }
    if (header().size != size_ || (has_robots && robots_.n_parts == 0) ||
      (has_robots ? segment_size(n_drones_, robots_) : segment_size(n_drones_)) != size_)
    {
      return refuse("shared memory of '" + name + "' has a wrong size", error);
    }
    values_.assign(robots_.n_values, 0.0);
    // An existing state counts as unread.
    const std::uint32_t count = header().state_count.load(std::memory_order_acquire);
    seen_ = count == 0 ? 0 : count - 1;
    return true;
  }

  /// Claim a drone. On failure `error` has the reason.
  bool claim(const std::string & drone, std::string & error)
  {
    return claim(drone, 0, n_drones_, "simulator has no drone", error);
  }

  /// Claim a joint of a robot, to command it; it can be read without.
  bool claim_joint(const std::string & joint, std::string & error)
  {
    return claim(joint, n_drones_, n_rows(), "world has no joint", error);
  }

  /// Whether the simulator has a drone of this name.
  bool has_drone(const std::string & name) const
  {
    for (std::uint32_t i = 0; i < n_drones_; ++i) {
      if (name_of(drones()[i].name) == name) {
        return true;
      }
    }
    return false;
  }

  /// The joint or sensor of this name, which may be a joint's and a sensor's; null if there is none.
  const Part * part(const std::string & name, bool joint) const
  {
    for (std::uint32_t i = 0; i < robots_.n_parts; ++i) {
      const Part & part = parts()[i];
      if ((part.kind == kJoint) == joint && name_of(part.name) == name &&
        std::size_t{part.first} + part.size <= values_.size())
      {
        return &part;
      }
    }
    return nullptr;
  }

  /// Set whether each state will get a response from now on.
  void set_active(bool active) noexcept
  {
    for (const auto & claim : claims_) {
      slot(claim.drone).active.store(active ? 1 : 0, std::memory_order_release);
    }
    header().command_count.fetch_add(1);
    detail::futex(header().command_count, FUTEX_WAKE, INT_MAX);
  }

  /// Disconnect from the simulator.
  void close() noexcept
  {
    if (base_ != nullptr) {
      set_active(false);
      munmap(base_, size_);
    }
    if (file_ >= 0) {
      ::close(file_);
    }
    base_ = nullptr;
    file_ = -1;
    claims_.clear();
  }

  bool is_open() const noexcept { return base_ != nullptr; }
  const Header & info() const noexcept { return *reinterpret_cast<const Header *>(base_); }
  /// Rotors of each drone of the last simulator.
  std::size_t n_rotors() const noexcept { return n_rotors_; }
  const State & state() const noexcept { return state_; }
  /// State of the i-th claimed drone at the last `read`.
  const DroneState & drone(std::size_t i) const noexcept { return claims_[i].state; }
  /// Numbers of all joints and sensors of robots at the last `read`, see `Part`.
  const std::vector<double> & values() const noexcept { return values_; }

  /// Wait for an unread state.
  Wait wait(std::chrono::nanoseconds timeout) noexcept
  {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    // Check periodically whether the simulator is alive.
    constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(100);
    while (header().state_count.load(std::memory_order_acquire) == seen_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0 && !alive()) {
        return Wait::gone;
      }
      if (left.count() <= 0) {
        return header().paused.load(std::memory_order_relaxed) != 0 ? Wait::paused : Wait::timeout;
      }
      const std::int64_t nap = (left < longest ? left : longest).count();
      const timespec relative{nap / 1000000000, nap % 1000000000};
      const long result = detail::futex(header().state_count, FUTEX_WAIT, seen_, &relative);
      // Woken without a new state, or timed out.
      if (header().state_count.load(std::memory_order_acquire) == seen_ &&
        (result == 0 || errno == ETIMEDOUT) && !alive())
      {
        return Wait::gone;
      }
    }
    return Wait::news;
  }

  /// Copy the latest state.
  void read() noexcept
  {
    while (true) {
      const std::uint32_t count = header().state_count.load(std::memory_order_acquire);
      const char * from = states() + (count % 2) * state_size();
      std::memcpy(&state_, from, sizeof(State));
      if (!values_.empty()) {
        const char * values = from + sizeof(State) + n_drones_ * sizeof(DroneState);
        std::memcpy(values_.data(), values, values_.size() * sizeof(double));
      }
      for (auto & claim : claims_) {
        if (claim.drone >= n_drones_) {
          continue;
        }
        const char * drone = from + sizeof(State) + claim.drone * sizeof(DroneState);
        std::memcpy(&claim.state, drone, sizeof(DroneState));
      }
      // The loads above cannot move below the fence. If one of them saw the state after next, which
      // uses the same slot, the load below sees at least the count of the next state.
      std::atomic_thread_fence(std::memory_order_acquire);
      if (header().state_count.load(std::memory_order_relaxed) == count) {
        seen_ = count;
        return;
      }
    }
  }

  /// Command the i-th claimed drone, in response to the last state read.
  template <std::size_t N>
  void post(std::size_t i, Level level, const double (&values)[N]) noexcept
  {
    post(i, static_cast<std::uint64_t>(level), values);
  }

  /// Command what was claimed i-th: a drone by a `Level`, a joint by bits.
  template <std::size_t N>
  void post(std::size_t i, std::uint64_t level, const double (&values)[N]) noexcept
  {
    static_assert(N <= kMostRotors);
    CommandSlot & to = slot(claims_[i].drone);
    const std::uint64_t count = to.count.load(std::memory_order_relaxed) + 1;
    // Makes the count of the previous command visible before any write of this one: a reader of
    // the other buffer must notice that it is being overwritten.
    std::atomic_thread_fence(std::memory_order_release);
    Command & command = to.buffers[count % 2];
    command.tick = state_.tick;
    command.epoch = state_.epoch;
    command.level = level;
    std::copy_n(values, N, command.values);
    std::fill(command.values + N, std::end(command.values), 0.0);
    command.session = to.session.load(std::memory_order_relaxed);
    // Sequentially consistent with the reads of other drones' counts in `send`.
    to.count.store(count, std::memory_order_seq_cst);
  }

  /// Notify the simulator; in lock-step once all drones have commands.
  void send() noexcept
  {
    header().command_count.fetch_add(1, std::memory_order_seq_cst);
    if (header().lock_step != 0 && complete()) {
      detail::futex(header().command_count, FUTEX_WAKE, INT_MAX);
    }
  }

  /// Whether the simulator is alive.
  bool alive() const noexcept
  {
    short found = F_UNLCK;
    return detail::lock(file_, F_WRLCK, 0, true, found) && found != F_UNLCK;
  }

private:
  struct Claim
  {
    std::uint32_t drone;
    DroneState state;
  };

  bool claim(
    const std::string & name, std::uint32_t begin, std::uint32_t end, const char * none,
    std::string & error)
  {
    std::string names;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::string there = name_of(drones()[i].name);
      names += (names.empty() ? "" : ", ") + there;
      if (name != there) {
        continue;
      }
      short found = 0;
      if (!detail::lock(file_, F_WRLCK, 1 + i, false, found)) {
        error = name + " already has a controller, process " + std::to_string(slot(i).pid);
        return false;
      }
      slot(i).active.store(0, std::memory_order_release);  // left by a previous controller
      slot(i).pid = getpid();
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      slot(i).session.store(static_cast<std::uint64_t>(now.count()), std::memory_order_release);
      claims_.push_back({i, {}});
      return true;
    }
    error = std::string("the ") + none + " '" + name + "', but " + (names.empty() ? "none" : names);
    return false;
  }

  static std::string name_of(const char (&name)[60]) { return {name, strnlen(name, sizeof(name))}; }

  bool refuse(const std::string & reason, std::string & error)
  {
    error = reason;
    if (base_ != nullptr) {
      munmap(base_, size_);
      base_ = nullptr;
    }
    close();
    return false;
  }

  /// Whether all awaited drones and joints have a command of this tick. The last controller sees the commands of
  /// all others, so at least one wakes the simulator.
  bool complete() noexcept
  {
    for (std::uint32_t i = 0; i < n_rows(); ++i) {
      if (drones()[i].awaited.load(std::memory_order_relaxed) != 0) {
        const std::uint64_t count = slot(i).count.load(std::memory_order_seq_cst);
        if (slot(i).buffers[count % 2].tick != state_.tick) {
          return false;
        }
      }
    }
    return true;
  }

  std::uint32_t n_rows() const noexcept { return n_drones_ + robots_.n_joints; }
  Header & header() noexcept { return *reinterpret_cast<Header *>(base_); }
  Drone * drones() const noexcept
  {
    const std::size_t robots = robots_.n_parts == 0 ? 0 : sizeof(Robots);
    return reinterpret_cast<Drone *>(base_ + sizeof(Header) + robots);
  }
  CommandSlot & slot(std::uint32_t i) const noexcept
  {
    return reinterpret_cast<CommandSlot *>(drones() + n_rows())[i];
  }
  const Part * parts() const noexcept { return reinterpret_cast<const Part *>(&slot(n_rows())); }
  std::size_t state_size() noexcept
  {
    return sizeof(State) + n_drones_ * sizeof(DroneState) + values_.size() * sizeof(double);
  }
  const char * states() noexcept { return base_ + size_ - 2 * state_size(); }

  int file_ = -1;
  char * base_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t n_drones_ = 0;
  std::size_t n_rotors_ = 4;
  std::uint32_t seen_ = 0;
  Robots robots_{};
  State state_{};
  std::vector<double> values_;
  std::vector<Claim> claims_;
};

}  // namespace crazyflow_ros::shared_memory
