/* Sends serialised messages one after another. Loaded by outbox.py; runs without Python's lock.
 *
 * The only part of ROS it needs is the address of rcl_publish_serialized_message, taken from the
 * client library that the process has loaded. It therefore compiles without ROS headers.
 */
#include <stddef.h>
#include <stdint.h>

/* Layout of rcl_serialized_message_t: a rcutils_uint8_array_t with an allocator of five pointers. */
struct serialized_message
{
  uint8_t *buffer;
  size_t buffer_length;
  size_t buffer_capacity;
  void *allocator[5];
};

typedef int (*publish_function)(
  const void *publisher, const struct serialized_message *message, void *allocation);

/* Sends the messages of several moments in order. A moment has `stride` bytes, in which each
 * publisher's message has a fixed offset. Publishers may be NULL. `wanted` selects the messages to send
 * by moment and publisher; NULL selects all. Returns the number of messages that could not be sent.
 */
size_t crazyflow_ros_send(
  publish_function publish, size_t n_publishers, const void *const *publishers,
  const size_t *starts, const size_t *lengths, size_t n_moments, size_t stride, uint8_t *bytes,
  const uint8_t *wanted)
{
  size_t n_failed = 0;
  for (size_t moment = 0; moment < n_moments; ++moment, bytes += stride)
  {
    for (size_t i = 0; i < n_publishers; ++i)
    {
      if (publishers[i] == NULL || (wanted != NULL && !wanted[moment * n_publishers + i]))
      {
        continue;
      }
      const struct serialized_message message = {bytes + starts[i], lengths[i], lengths[i], {NULL}};
      n_failed += publish(publishers[i], &message, NULL) != 0;
    }
  }
  return n_failed;
}
