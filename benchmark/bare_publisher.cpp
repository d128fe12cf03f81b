// The limit of benchmark.node: sends recorded messages round after round, as fast as possible.
//
//   bare_publisher FILE     (a line for each message: topic, package, type, bytes in hex)
//
// The first message is that of /clock, which advances by 10 ms in each round.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "rcl/error_handling.h"
#include "rcl/rcl.h"

static void check(bool done, const std::string & what)
{
  if (!done) {
    std::cerr << what << ": " << rcl_get_error_string().str << std::endl;
    std::exit(1);
  }
}

static const rosidl_message_type_support_t * type_support(
  const std::string & package, const std::string & type)
{
  const std::string library = "lib" + package + "__rosidl_typesupport_c.so";
  const std::string symbol =
    "rosidl_typesupport_c__get_message_type_support_handle__" + package + "__msg__" + type;
  void * get = dlsym(dlopen(library.c_str(), RTLD_NOW), symbol.c_str());
  check(get != nullptr, symbol + " of " + library);
  return reinterpret_cast<const rosidl_message_type_support_t * (*)()>(get)();
}

int main(int argc, char ** argv)
{
  const rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
  const rcl_node_options_t of_node = rcl_node_get_default_options();
  check(rcl_init_options_init(&init, allocator) == RCL_RET_OK, "options");
  check(rcl_init(0, nullptr, &init, &context) == RCL_RET_OK, "init");
  check(rcl_node_init(&node, "bare_publisher", "", &context, &of_node) == RCL_RET_OK, "node");

  std::ifstream file(argc == 2 ? argv[1] : "");
  std::string topic, package, type, hex;
  std::vector<rcl_publisher_t> publishers;
  std::vector<std::vector<std::uint8_t>> messages;
  rcl_publisher_options_t options = rcl_publisher_get_default_options();  // reliable
  while (file >> topic >> package >> type >> hex) {
    options.qos.depth = publishers.empty() ? 10 : 50;  // as the node's
    publishers.push_back(rcl_get_zero_initialized_publisher());
    const auto * support = type_support(package, type);
    check(
      rcl_publisher_init(&publishers.back(), &node, support, topic.c_str(), &options) == RCL_RET_OK,
      topic);
    messages.emplace_back();
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      messages.back().push_back(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
  }
  check(!messages.empty() && messages[0].size() == 12, "messages, of /clock first");
  for (std::uint32_t round = 0;; ++round) {
    const std::uint32_t stamp[] = {round / 100, round % 100 * 10'000'000};  // s, ns
    std::memcpy(messages[0].data() + 4, stamp, sizeof(stamp));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto & bytes = messages[i];
      const rcl_serialized_message_t message = {
        bytes.data(), bytes.size(), bytes.size(), allocator};
      if (rcl_publish_serialized_message(&publishers[i], &message, nullptr) != RCL_RET_OK) {
        rcl_reset_error();  // the queue of a subscriber is full: the message is lost
      }
    }
  }
}
