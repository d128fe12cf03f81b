/* Decodes packets with the firmware's functions. */
#include "stabilizer_types.h"
#include "crtp_commander_generic.c"
#include "crtp_commander_rpyt.c"

void positionControllerResetAllPID(float x, float y, float z) {}
void positionControllerResetAllfilters() {}
int commanderGetActivePriority(void) { return 1; }

static void set_modes(const uint8_t *modes) {
  altHoldMode = modes[0];
  posHoldMode = modes[1];
  posSetMode = modes[2];
  stabilizationModeRoll = modes[3];
  stabilizationModePitch = modes[4];
}

/* Write the setpoint of a packet: modes x, y, z, roll, pitch, yaw, attitude; whether the velocity is
 * that of the body; position, velocity, acceleration; roll, pitch, yaw, their rates [degrees]; the
 * quaternion; thrust. `modes` are those of the group flightmode. */
void decode(const uint8_t *packet, int size, bool legacy, const uint8_t *modes, double *found) {
  CRTPPacket p = {.size = size};
  setpoint_t s = {0};
  memcpy(p.data, packet, size);
  set_modes(modes);
  if (legacy) {
    thrustLocked = false;
    crtpCommanderRpytDecodeSetpoint(&s, &p);
  } else {
    crtpCommanderGenericDecodeSetpoint(&s, &p);
  }
  double values[] = {
      s.mode.x, s.mode.y, s.mode.z, s.mode.roll, s.mode.pitch, s.mode.yaw, s.mode.quat,
      s.velocity_body,
      s.position.x, s.position.y, s.position.z,
      s.velocity.x, s.velocity.y, s.velocity.z,
      s.acceleration.x, s.acceleration.y, s.acceleration.z,
      s.attitude.roll, s.attitude.pitch, s.attitude.yaw,
      s.attitudeRate.roll, s.attitudeRate.pitch, s.attitudeRate.yaw,
      s.attitudeQuaternion.x, s.attitudeQuaternion.y, s.attitudeQuaternion.z,
      s.attitudeQuaternion.w,
      s.thrust};
  memcpy(found, values, sizeof values);
}
