/* What the firmware's supervisor and commander need of their operating system, for all files.
 *
 * Included before anything else. */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI M_PI
#define M2T(ms) (ms)
#define ASSERT(holds) ((void)(holds))

/* The console. */
int host_printf(const char *format, ...);
#define printf host_printf

/* Parameters register themselves by name. */
void host_parameter(const char *name, int type, void *value);
#define PARAM_UINT8 1
#define PARAM_UINT16 2
#define PARAM_FLOAT 4
#define PARAM_PERSISTENT 0
#define PARAM_ADD(type, name, value)                                  \
  __attribute__((constructor)) static void host_parameter_##name() {  \
    host_parameter(#name, type, value);                               \
  }
#define PARAM_ADD_CORE PARAM_ADD
#define PARAM_GROUP_START(name)
#define PARAM_GROUP_STOP(name)
#define LOG_ADD(type, name, value)
#define LOG_ADD_CORE(type, name, value)
#define LOG_GROUP_START(name)
#define LOG_GROUP_STOP(name)

/* Time, tasks and locks: one thread calls everything. */
typedef long BaseType_t;
#define pdTRUE 1
uint32_t xTaskGetTickCount(void);
uint64_t usecTimestamp(void);
#define STATIC_MEM_TASK_ALLOC(name, depth)
#define STATIC_MEM_TASK_CREATE(name, function, title, parameters, priority) ((void)(function))
typedef int StaticSemaphore_t;
typedef void *xSemaphoreHandle;
#define portMAX_DELAY 0
#define xSemaphoreCreateMutexStatic(buffer) (buffer)
#define xSemaphoreTake(handle, delay) ((void)(handle))
#define xSemaphoreGive(handle) ((void)(handle))

/* Queues of one element. */
typedef struct {
  size_t size;
  uint8_t *data;
} *QueueHandle_t;
#define STATIC_MEM_QUEUE_ALLOC(name, length, item)               \
  static uint8_t host_##name[item];                              \
  static __typeof__(*(QueueHandle_t)0) host_queue_##name = {item, host_##name}
#define STATIC_MEM_QUEUE_CREATE(name) (&host_queue_##name)
#define xQueueOverwrite(queue, from) memcpy((queue)->data, from, (queue)->size)
#define xQueueSend(queue, from, wait) xQueueOverwrite(queue, from)
#define xQueuePeek(queue, to, wait) (memcpy(to, (queue)->data, (queue)->size), pdTRUE)

/* Motors, whose speeds the harness chooses. */
#define NBR_OF_MOTORS 4
#define MOTORS_RPM_INVALID 65535
uint16_t motorsGetRatio(uint32_t motor);
uint16_t motorsGetRPM(uint32_t motor);
