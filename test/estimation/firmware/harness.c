/* Runs the Kalman filter of the Crazyflie's firmware, one call for each step. */
#include "kalman_core.h"
#include "kalman_core_params_defaults.h"
#include "lighthouse_calibration.h"
#include "mm_distance.h"
#include "mm_flow.h"
#include "mm_pose.h"
#include "mm_position.h"
#include "mm_sweep_angles.h"
#include "mm_tdoa.h"
#include "mm_tof.h"
#include "mm_yaw_error.h"

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

static OutlierFilterLhState_t lighthouse_gate;
static OutlierFilterTdoaState_t tdoa_gate;

void open_gates(void) {
  outlierFilterLighthouseReset(&lighthouse_gate, 0);
  outlierFilterTdoaReset(&tdoa_gate);
}

/* A sweep angle of a station whose numbers are origin, rows of the rotation, and both sweeps. */
void sweep(const double *station, const double *sensor, double value, int plane, double std) {
  vec3d origin, place = {sensor[0], sensor[1], sensor[2]};
  mat3d rot, back;
  for (int i = 0; i < 3; i++) {
    origin[i] = station[i];
    for (int j = 0; j < 3; j++) rot[i][j] = back[j][i] = station[3 + 3 * i + j];
  }
  const double *c = station + 12 + 7 * plane;
  lighthouseCalibrationSweep_t calibration = {.phase = c[0], .tilt = c[1], .curve = c[2],
      .gibmag = c[3], .gibphase = c[4], .ogeemag = c[5], .ogeephase = c[6]};
  sweepAngleMeasurement_t m = {.sensorPos = &place, .rotorPos = &origin, .rotorRot = &rot,
      .rotorRotInv = &back, .t = plane ? M_PI / 6 : -M_PI / 6, .measuredSweepAngle = value,
      .stdDev = std, .calib = &calibration,
      .calibrationMeasurementModel = lighthouseCalibrationMeasurementModelLh2};
  /* In the first milliseconds of a flight the unsigned times of the gate would wrap. */
  kalmanCoreUpdateWithSweepAngles(&filter, &m, now_ms + 10000, &lighthouse_gate);
}

void yaw_error(double value, double std) {
  yawErrorMeasurement_t m = {.yawError = value, .stdDev = std};
  kalmanCoreUpdateWithYawError(&filter, &m);
}

void tdoa(const double *first, const double *second, double value, double std) {
  tdoaMeasurement_t m = {.anchorPositions = {{.x = first[0], .y = first[1], .z = first[2]},
                                             {.x = second[0], .y = second[1], .z = second[2]}},
                         .distanceDiff = value, .stdDev = std};
  kalmanCoreUpdateWithTdoa(&filter, &m, now_ms, &tdoa_gate);
}

/* Settle; write position, body velocity, attitude (wxyz), and the covariance row by row. */
void belief(double *found) {
  kalmanCoreFinalize(&filter);
  memcpy(found, filter.S, 6 * sizeof(double));
  memcpy(found + 6, filter.q, sizeof filter.q);
  memcpy(found + 10, filter.P, sizeof filter.P);
}
