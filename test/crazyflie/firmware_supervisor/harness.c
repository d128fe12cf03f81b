/* Runs the supervisor and the commander of the Crazyflie's firmware in the order of its stabilizer
 * loop. Motors turn whenever the setpoint that is left asks for thrust. */
#include <stdarg.h>

#include "supervisor.c"

#include "commander.h"
#include "crtp_commander_high_level.h"
#include "mem.h"

uint32_t host_tick;
float host_acc[3] = {0, 0, 1};
int host_rpm[4] = {-1, -1, -1, -1}; /* -1: idles if it may */
char host_console[100000];

static uint16_t ratio;
static bool emergency;
static uint32_t watchdog;
static struct {
  const char *name;
  int type;
  void *value;
} parameters[64];
static int n_parameters;

int host_printf(const char *format, ...) {
  size_t used = strlen(host_console);
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(host_console + used, sizeof host_console - used, format, arguments);
  va_end(arguments);
  return n;
}

void host_parameter(const char *name, int type, void *value) {
  parameters[n_parameters].name = name;
  parameters[n_parameters].type = type;
  parameters[n_parameters++].value = value;
}

int host_set(const char *name, double value) {
  for (int i = 0; i < n_parameters; i++) {
    if (strcmp(parameters[i].name, name)) continue;
    if (parameters[i].type == PARAM_UINT8) *(uint8_t *)parameters[i].value = value;
    if (parameters[i].type == PARAM_UINT16) *(uint16_t *)parameters[i].value = value;
    if (parameters[i].type == PARAM_FLOAT) *(float *)parameters[i].value = value;
    return 1;
  }
  return 0;
}

uint32_t xTaskGetTickCount(void) { return host_tick; }
uint64_t usecTimestamp(void) { return 1000ull * host_tick; }
void crtpCommanderInit(void) {}
void crtpInitTaskQueue(CRTPPort port) { (void)port; }
int crtpReceivePacketBlock(CRTPPort port, CRTPPacket *packet) { (void)port, (void)packet; return 0; }
int crtpSendPacketBlock(CRTPPacket *packet) { (void)packet; return 0; }
void memoryRegisterHandler(const MemoryHandlerDef_t *handler) { (void)handler; }
bool crtpSupervisorIsEmergencyStopRequested(void) { return emergency; }
uint32_t crtpSupervisorGetEmergencyStopWatchdogNotificationTick(void) { return watchdog; }
int powerDistributionMotorType(uint32_t id) { (void)id; return 1; }
uint32_t powerDistributionGetIdleThrust(void) {
#ifdef CONFIG_MOTORS_DEFAULT_IDLE_THRUST
  return CONFIG_MOTORS_DEFAULT_IDLE_THRUST;
#else
  return 0;
#endif
}
uint16_t motorsGetRatio(uint32_t motor) { (void)motor; return ratio; }
uint16_t motorsGetRPM(uint32_t motor) {
  if (host_rpm[motor] >= 0) return host_rpm[motor];
  return supervisorAreMotorsAllowedToRun() ? 2000 : 0;
}

void host_setpoint(int z_mode, float thrust) {
  setpoint_t setpoint = {.thrust = thrust, .mode = {.z = z_mode}};
  commanderSetSetpoint(&setpoint, COMMANDER_PRIORITY_CRTP);
}
void host_relax(void) { commanderRelaxPriority(); }
void host_emergency(void) { emergency = true; }
void host_watchdog(void) { watchdog = host_tick; }
int host_arm(int armed) { return 2 * supervisorRequestArming(armed) + supervisorIsArmed(); }
int host_recover(void) { return 2 * supervisorRequestCrashRecovery(true) + !supervisorIsCrashed(); }
int host_state(void) { return supervisorMem.state; }
int host_info(void) { return supervisorGetInfoBitfield(); }

/* One step of the stabilizer loop, at the present tick. */
void host_step(void) {
  static setpoint_t planned, setpoint;
  sensorData_t sensors = {.acc = {.axis = {host_acc[0], host_acc[1], host_acc[2]}}};
  state_t state = {0};
  if (!host_tick) commanderInit();
  const bool can_fly = supervisorCanFly();
  crtpCommanderBlock(!can_fly);
  if (can_fly && crtpCommanderHighLevelGetSetpoint(&planned, &state, host_tick))
    commanderSetSetpoint(&planned, COMMANDER_PRIORITY_HIGHLEVEL);
  commanderGetSetpoint(&setpoint, &state);
  if (!can_fly) setpoint = (setpoint_t){0};
  supervisorUpdate(&sensors, &setpoint, host_tick);
  supervisorOverrideSetpoint(&setpoint);
  ratio = 0;
  if (supervisorAreMotorsAllowedToRun()) {
    ratio = powerDistributionGetIdleThrust();
    if (setpoint.mode.z != modeDisable || setpoint.thrust > 0) ratio = 40000;
  }
}
