// A controller without ROS for the tests: flies all drones of a simulator in lock-step.
//
//   lock_step_client NAME CYCLES LOG DRONE...
//
// It connects as soon as there is a simulator, answers CYCLES states (0: without end), and writes
// what it saw and commanded to LOG (unless that is "-"): tick, epoch, level in force, level commanded
// and four numbers per drone, as doubles. When the simulator goes it waits for another one. At the end a line says how many states
// it answered, and how many control ticks it did not see.
#include "crazyflow_ros/shared_memory.hpp"

#include <cstdlib>
#include <thread>

using namespace crazyflow_ros::shared_memory;  // NOLINT

namespace
{
constexpr double kHover = 1550.0;       // rad/s
constexpr double kWeight = 0.0319 * 9.81;  // N, a little short of what keeps the drone up
}

int main(int argc, char ** argv)
{
  if (argc < 5) {
    return 2;
  }
  const std::string name = argv[1];
  const std::uint64_t cycles = std::strtoull(argv[2], nullptr, 10);
  std::FILE * log = std::strcmp(argv[3], "-") == 0 ? nullptr : std::fopen(argv[3], "wb");
  const std::size_t n = static_cast<std::size_t>(argc - 4);
  Controller simulator;
  std::uint64_t answered = 0, lost = 0, last = 0;
  while (cycles == 0 || answered < cycles) {
    if (!simulator.is_open()) {
      std::string error;
      bool connected = simulator.open(name, error);
      for (std::size_t i = 0; connected && i < n; ++i) {
        connected = simulator.claim(argv[4 + i], error);
      }
      if (!connected) {
        simulator.close();
        if (error.find("version") != std::string::npos ||
          error.find("already has a controller") != std::string::npos ||
          error.find("no drone") != std::string::npos)
        {
          std::fprintf(stderr, "%s\n", error.c_str());
          return 1;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      simulator.set_active(true);
      std::printf("connected to process %d\n", simulator.info().simulator_pid);
      std::fflush(stdout);
      last = 0;
    }
    const Wait news = simulator.wait(std::chrono::seconds(1));
    if (news == Wait::gone) {
      simulator.close();
      continue;
    }
    if (news != Wait::news) {
      continue;
    }
    simulator.read();
    const State & now = simulator.state();
    const std::uint64_t period = simulator.info().period;
    if (now.tick % period != 0) {
      continue;
    }
    if (last != 0 && now.tick > last + period) {
      lost += (now.tick - last) / period - 1;
    }
    last = now.tick;
    for (std::size_t i = 0; i < n; ++i) {
      const DroneState & drone = simulator.drone(i);
      // Each drone goes through all levels, and stays about a metre up.
      const auto level = static_cast<Level>(1 + (now.tick / 4096 + i) % 3);
      const double lack = 1.0 - drone.position[2] - 0.5 * drone.velocity[2];
      double values[4] = {0.0, 0.0, 0.0, kWeight + 0.1 * lack};
      if (level == Level::rotor_velocity) {
        for (int k = 0; k < 4; ++k) {
          values[k] = kHover + 200.0 * lack + (k % 2 == 0 ? 1.0 : -1.0) * drone.angular_velocity[2];
        }
      } else {
        values[0] = level == Level::attitude ? 0.02 * drone.position[1] : -0.1 * drone.angular_velocity[0];
        values[1] = level == Level::attitude ? -0.02 * drone.position[0] : -0.1 * drone.angular_velocity[1];
      }
      simulator.post(i, level, values);
      if (log != nullptr) {
        const double row[8] = {
          static_cast<double>(now.tick), static_cast<double>(now.epoch), drone.level,
          static_cast<double>(level), values[0], values[1], values[2], values[3]};
        std::fwrite(row, sizeof(row), 1, log);
      }
    }
    simulator.send();
    ++answered;
  }
  simulator.close();
  if (log != nullptr) {
    std::fclose(log);
  }
  std::printf("answered %llu lost %llu\n", static_cast<unsigned long long>(answered),
    static_cast<unsigned long long>(lost));
}
