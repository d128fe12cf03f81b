/* What the firmware's decoders of setpoints need of its system. Included before anything else. */
#pragma once

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CONFIG_PLATFORM_CF2
#define ASSERT assert
#define DEFAULT_YAW_MODE XMODE
#define COMMANDER_PRIORITY_DISABLE 0
#define MIN_THRUST 1000
#define MAX_THRUST 60000
#define PARAM_GROUP_START(group)
#define PARAM_ADD(type, name, address)
#define PARAM_ADD_CORE(type, name, address)
#define PARAM_GROUP_STOP(group)

void positionControllerResetAllPID(float x, float y, float z);
void positionControllerResetAllfilters();
