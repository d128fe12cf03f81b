// The other end of benchmark.lock_step's bare ping-pong: answers each change of a futex with a
// change of another one.
//
//   ping_pong FILE     (two 32 bit numbers, 64 bytes apart)
#include "crazyflow_ros/shared_memory.hpp"

int main(int argc, char ** argv)
{
  using namespace crazyflow_ros::shared_memory;  // NOLINT
  const int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
  void * address = mmap(nullptr, 128, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    return 1;
  }
  auto & ping = *reinterpret_cast<std::atomic<std::uint32_t> *>(address);
  auto & pong = *reinterpret_cast<std::atomic<std::uint32_t> *>(static_cast<char *>(address) + 64);
  for (std::uint32_t seen = 0;; ++seen) {
    while (ping.load() == seen) {
      detail::futex(ping, FUTEX_WAIT, seen);
    }
    pong.fetch_add(1);
    detail::futex(pong, FUTEX_WAKE, 1);
  }
}
