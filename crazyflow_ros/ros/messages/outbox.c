/* Sends serialised messages one after another. Loaded by outbox.py; Python's lock is not held.
 *
 * Of ROS nothing but the address of rcl_publish_serialized_message is needed, which comes from the
 * client library that the process has loaded, so no header of ROS is needed either.
 */
#include <stddef.h>
#include <stdint.h>

/* rcl_serialized_message_t: a rcutils_uint8_array_t, with the five pointers of its allocator. */
struct serialized_message
{
  uint8_t *buffer;
  size_t buffer_length;
  size_t buffer_capacity;
  void *allocator[5];
};

typedef int (*publish_function)(
  const void *publisher, const struct serialized_message *message, void *allocation);

/* Sends the messages of one moment after the other; of each moment there are `stride` bytes, in which
 * each publisher's message starts at the same place. Publishers may be NULL, as may be `wanted`, which
 * selects messages by moment and publisher. Returns how many messages could not be sent.
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
