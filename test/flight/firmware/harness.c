/* Runs the high-level commander of the Crazyflie's firmware: its own task, one packet at a time. */
#include <setjmp.h>

#include "crtp.h"
#include "crtp_commander_high_level.h"
#include "mem.h"
#include "stabilizer_types.h"

uint64_t now_us;
static task_t task;
static CRTPPacket request;
static uint8_t answer;
static jmp_buf answered;

uint64_t usecTimestamp(void) { return now_us; }

void xTaskCreateStatic(task_t function, const char *name, int depth, void *parameters,
                       int priority, StackType_t *stack, StaticTask_t *buffer) {
  (void)name, (void)depth, (void)parameters, (void)priority, (void)stack, (void)buffer;
  task = function;
}

void memoryRegisterHandler(const MemoryHandlerDef_t *handler) { (void)handler; }

void crtpInitTaskQueue(CRTPPort port) { (void)port; }

int crtpReceivePacketBlock(CRTPPort port, CRTPPacket *packet) {
  (void)port;
  *packet = request;
  return 0;
}

int crtpSendPacketBlock(CRTPPacket *packet) {
  answer = packet->data[3];
  longjmp(answered, 1);
}

/* Have the task handle the data of a packet; return its answer: 0, or why it is refused. Packets
 * that are too large are refused as well. */
int command(const uint8_t *data, size_t size) {
  if (size > sizeof request.data) return EMSGSIZE;
  crtpCommanderHighLevelInit();
  memset(&request, 0, sizeof request);
  memcpy(request.data, data, size);
  if (!setjmp(answered)) task(NULL);
  return answer;
}

/* Compute the setpoint at the present time. `estimate` is x, y, z [m], yaw [degrees]; `found` is
 * position, velocity, acceleration, yaw [degrees] and body rates [degrees/s]. Return whether the
 * commander flies. */
bool setpoint(const double estimate[4], double found[13]) {
  state_t state = {
      .position = {.x = estimate[0], .y = estimate[1], .z = estimate[2]},
      .attitude = {.yaw = estimate[3]},
  };
  setpoint_t to = {0};
  crtpCommanderHighLevelInit();
  bool flies = crtpCommanderHighLevelGetSetpoint(&to, &state, 0) && to.mode.x == modeAbs;
  double values[13] = {
      to.position.x,        to.position.y,         to.position.z,       to.velocity.x,
      to.velocity.y,        to.velocity.z,         to.acceleration.x,   to.acceleration.y,
      to.acceleration.z,    to.attitude.yaw,       to.attitudeRate.roll, to.attitudeRate.pitch,
      to.attitudeRate.yaw,
  };
  memcpy(found, values, sizeof values);
  return flies;
}
