/* What the firmware's Kalman filter needs of its libraries, for all of its files.
 *
 * Included before anything else. The filter computes in double precision, so that its rounding does
 * not hide what is compared.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_PLATFORM_CF2
#define PI M_PI
#define float double
#define cosf cos
#define sinf sin
#define sqrtf sqrt
#define fabsf fabs
#define acosf acos
#define asinf asin
#define tanf tan
#define atan2f atan2
#define powf pow
#define fmaxf fmax
#define fminf fmin

#define __fp16 _Float16
#define NO_DMA_CCM_SAFE_ZERO_INIT

/* The mathematics of ARM. */
typedef double float32_t;
typedef struct {
  uint16_t numRows, numCols;
  double *pData;
} arm_matrix_instance_f32;
typedef enum { ARM_MATH_SUCCESS } arm_status;

#define arm_cos_f32 cos
#define arm_sin_f32 sin

static inline arm_status arm_sqrt_f32(double x, double *root) {
  *root = sqrt(x);
  return ARM_MATH_SUCCESS;
}

static inline arm_status arm_mat_trans_f32(const arm_matrix_instance_f32 *a,
                                           arm_matrix_instance_f32 *b) {
  for (int i = 0; i < a->numRows; i++)
    for (int j = 0; j < a->numCols; j++) b->pData[j * a->numRows + i] = a->pData[i * a->numCols + j];
  return ARM_MATH_SUCCESS;
}

static inline arm_status arm_mat_mult_f32(const arm_matrix_instance_f32 *a,
                                          const arm_matrix_instance_f32 *b,
                                          arm_matrix_instance_f32 *c) {
  for (int i = 0; i < a->numRows; i++)
    for (int j = 0; j < b->numCols; j++) {
      double sum = 0;
      for (int k = 0; k < a->numCols; k++)
        sum += a->pData[i * a->numCols + k] * b->pData[k * b->numCols + j];
      c->pData[i * b->numCols + j] = sum;
    }
  return ARM_MATH_SUCCESS;
}

static inline arm_status arm_mat_scale_f32(const arm_matrix_instance_f32 *a, double s,
                                           arm_matrix_instance_f32 *b) {
  for (int i = 0; i < a->numRows * a->numCols; i++) b->pData[i] = a->pData[i] * s;
  return ARM_MATH_SUCCESS;
}

arm_status arm_mat_inverse_f32(const arm_matrix_instance_f32 *a, arm_matrix_instance_f32 *b);
