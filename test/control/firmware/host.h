/* What the firmware's controllers need of its system, for all of its files.
 *
 * Included before anything else. They compute in double precision, so that their rounding does not
 * hide what is compared. Tables of parameters become tables of names and addresses.
 */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_PLATFORM_CF2
#define float double
#define acosf acos
#define asinf asin
#define atan2f atan2
#define cosf cos
#define fabsf fabs
#define fmaxf fmax
#define fminf fmin
#define powf pow
#define sinf sin
#define sqrtf sqrt
#define tanf tan

struct entry {
  const char *name;
  int type;
  void *address;
};

enum { PARAM_UINT8, PARAM_INT8, PARAM_UINT16, PARAM_UINT32, PARAM_FLOAT, PARAM_PERSISTENT = 0x100 };

#define PARAM_GROUP_START(group) struct entry params_##group[] = {
#define PARAM_ADD(type, name, address) {#name, (type) & 0xFF, address},
#define PARAM_ADD_CORE PARAM_ADD
#define PARAM_GROUP_STOP(group) {0}};
#define DEBUG_PRINT(...)
#define LOG_GROUP_START(group)
#define LOG_ADD(type, name, address)
#define LOG_GROUP_STOP(group)
