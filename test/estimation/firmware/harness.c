/* Runs the Kalman filter of the Crazyflie's firmware, one call for each step. */
#include "kalman_core.h"
#include "kalman_core_params_defaults.h"
#include "mm_distance.h"
#include "mm_flow.h"
#include "mm_pose.h"
#include "mm_position.h"
#include "mm_tof.h"

static kalmanCoreData_t filter;
static kalmanCoreParams_t figures;
static uint32_t now_ms;

void assertFail(char *expression, char *file, int line) {
  fprintf(stderr, "%s:%d: %s\n", file, line, expression);
}

void start(const double *position, double yaw) {
  kalmanCoreDefaultParams(&figures);
  figures.initialX = position[0];
  figures.initialY = position[1];
  figures.initialZ = position[2];
  figures.initialYaw = yaw;
  now_ms = 0;
  kalmanCoreInit(&filter, &figures, now_ms);
}

/* Predict `ms` milliseconds, then add the noise of each of them. */
void predict(const double *acc, const double *gyro, uint32_t ms, bool flies) {
  Axis3f force = {.x = acc[0], .y = acc[1], .z = acc[2]};
  Axis3f turn = {.x = gyro[0], .y = gyro[1], .z = gyro[2]};
  kalmanCorePredict(&filter, &figures, &force, &turn, now_ms + ms, flies);
  for (uint32_t i = 1; i <= ms; i++) kalmanCoreAddProcessNoise(&filter, &figures, now_ms + i);
  now_ms += ms;
}

void position(const double *at, double std) {
  positionMeasurement_t m = {.x = at[0], .y = at[1], .z = at[2], .stdDev = std};
  kalmanCoreUpdateWithPosition(&filter, &m);
}

void pose(const double *at, const double *xyzw, double std, double std_quat) {
  poseMeasurement_t m = {.x = at[0], .y = at[1], .z = at[2],
                         .quat = {.x = xyzw[0], .y = xyzw[1], .z = xyzw[2], .w = xyzw[3]},
                         .stdDevPos = std, .stdDevQuat = std_quat};
  kalmanCoreUpdateWithPose(&filter, &m);
}

void distance(const double *anchor, double value, double std) {
  distanceMeasurement_t m = {.x = anchor[0], .y = anchor[1], .z = anchor[2],
                             .distance = value, .stdDev = std};
  kalmanCoreUpdateWithDistance(&filter, &m);
}

void height(double value, double std) {
  tofMeasurement_t m = {.distance = value, .stdDev = std};
  kalmanCoreUpdateWithTof(&filter, &m);
}

/* Counts of the sensor, of which ten are a pixel; angular velocity in degrees. */
void flow(const double *counts, const double *gyro, double dt) {
  flowMeasurement_t m = {.dpixelx = counts[0], .dpixely = counts[1],
                         .stdDevX = 2, .stdDevY = 2, .dt = dt};
  Axis3f turn = {.x = gyro[0], .y = gyro[1], .z = gyro[2]};
  kalmanCoreUpdateWithFlow(&filter, &m, &turn);
}

/* Settle; write position, body velocity, attitude (wxyz), and the covariance row by row. */
void belief(double *found) {
  kalmanCoreFinalize(&filter);
  memcpy(found, filter.S, 6 * sizeof(double));
  memcpy(found + 6, filter.q, sizeof filter.q);
  memcpy(found + 10, filter.P, sizeof filter.P);
}
