/* What the firmware's high-level commander needs of its operating system, for all of its files.
 *
 * Included before anything else. With WIDE, the firmware computes in double precision, so that its
 * rounding does not hide what is compared.
 */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PI M_PI

#ifdef WIDE
#define float double
#define M_PI_F M_PI
#define cosf cos
#define sinf sin
#define sqrtf sqrt
#define fabsf fabs
#define floorf floor
#define fmodf fmod
#define copysignf copysign
#endif

/* Tasks: the only one is called by the harness. */
typedef int StackType_t;
typedef int StaticTask_t;
typedef void (*task_t)(void *);
#define configMINIMAL_STACK_SIZE 1
void xTaskCreateStatic(task_t function, const char *name, int depth, void *parameters,
                       int priority, StackType_t *stack, StaticTask_t *buffer);

/* Locks: there is nobody to lock out. */
typedef int StaticSemaphore_t;
typedef void *xSemaphoreHandle;
#define portMAX_DELAY 0
#define xSemaphoreCreateMutexStatic(buffer) (buffer)
#define xSemaphoreTake(handle, delay) ((void)(handle))
#define xSemaphoreGive(handle) ((void)(handle))

uint64_t usecTimestamp(void);
