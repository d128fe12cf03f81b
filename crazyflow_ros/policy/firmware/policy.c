// A policy: from its input to the observation, through the network, to the command.
// The equations, their order and their names are those of crazyflow_ros.policy.
#include "policy.h"

#include <math.h>
#include <string.h>

typedef enum {
  POSITION,
  POSITION_ERROR,
  BODY_POSITION_ERROR,
  VELOCITY,
  BODY_VELOCITY,
  VELOCITY_ERROR,
  BODY_VELOCITY_ERROR,
  BODY_GOAL_VELOCITY,
  BODY_GOAL_ACCELERATION,
  ATTITUDE,
  ROTATION,
  BODY_RATES,
  PREVIOUS_ACTION,
} part_t;

typedef enum {
  IDENTITY,
  RELU,
  LEAKY_RELU,
  ELU,
  SELU,
  GELU,
  SOFTPLUS,
  MISH,
  SIGMOID,
  SILU,
  TANH,
  HARD_TANH,
  FAST_TANH,
  SOFTSIGN,
} activation_t;

// A dense layer, or a gated recurrent unit where there is a memory at the start.
typedef struct {
  int inputs;
  int units;                    // without the kept inputs
  int kept;                     // inputs, from the first, that are passed on in front of the units
  activation_t activation;      // of a dense layer
  const float *weights;         // (units, inputs); of a recurrent unit (3 units, inputs)
  const float *bias;            // (units); of a recurrent unit (3 units)
  const float *hidden_weights;  // (3 units, units): reset, update, new
  const float *hidden_bias;     // (3 units)
  const float *initial;         // (units) memory at the start
} layer_t;

#include "policy_weights.h"

static float clipped(float x, float most) { return x < -most ? -most : x > most ? most : x; }

static float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

static float sigmoid(float x) { return (tanhf(x / 2) + 1) / 2; }

static float activated(activation_t activation, float x) {
  switch (activation) {
    case RELU: return x < 0 ? 0 : x;
    case LEAKY_RELU: return x >= 0 ? x : 0.01f * x;
    case ELU: return x > 0 ? x : expm1f(x);
    case SELU: return 1.05070102f * (x > 0 ? x : 1.67326324f * expm1f(x));
    case GELU: return x * (1 + erff(x * 0.70710678f)) / 2;
    case SOFTPLUS: return softplus(x);
    case MISH: return x * tanhf(softplus(x));
    case SIGMOID: return sigmoid(x);
    case SILU: return x * sigmoid(x);
    case TANH: return tanhf(x);
    case HARD_TANH: return clipped(x, 1);
    case FAST_TANH: x = clipped(x, 3); return x * (27 + x * x) / (27 + 9 * x * x);
    case SOFTSIGN: return x / (1 + fabsf(x));
    default: return x;
  }
}

// The observation.

// To level axes whose x axis points along the heading.
static void turn(float out[3], const float v[3], const float heading[2]) {
  out[0] = heading[0] * v[0] + heading[1] * v[1];
  out[1] = heading[0] * v[1] - heading[1] * v[0];
  out[2] = v[2];
}

static void turn_attitude(float out[4], const float q[4], const float heading[2]) {
  // Cosine and sine of half the yaw, without loss of digits near 0 and half a turn.
  const float larger = sqrtf((1 + fabsf(heading[0])) / 2);
  const float smaller = fabsf(heading[1]) / (2 * larger);
  const float c = heading[0] >= 0 ? larger : smaller;
  const float s = (heading[1] < 0 ? -1 : 1) * (heading[0] >= 0 ? smaller : larger);
  out[0] = c * q[0] + s * q[1];
  out[1] = c * q[1] - s * q[0];
  out[2] = c * q[2] - s * q[3];
  out[3] = c * q[3] + s * q[2];
}

static void rotation_matrix(float out[9], const float q[4]) {
  const float x = q[0], y = q[1], z = q[2], w = q[3];
  out[0] = 1 - 2 * (y * y + z * z), out[1] = 2 * (x * y - z * w), out[2] = 2 * (x * z + y * w);
  out[3] = 2 * (x * y + z * w), out[4] = 1 - 2 * (x * x + z * z), out[5] = 2 * (y * z - x * w);
  out[6] = 2 * (x * z - y * w), out[7] = 2 * (y * z + x * w), out[8] = 1 - 2 * (x * x + y * y);
}

static float *put(float *out, const float *values, int n) {
  memcpy(out, values, n * sizeof(float));
  return out + n;
}

static float *put_in_body_axes(float *out, const float rotation[9], const float v[3]) {
  for (int i = 0; i < 3; i++) {
    *out++ = rotation[i] * v[0] + rotation[3 + i] * v[1] + rotation[6 + i] * v[2];
  }
  return out;
}

// Clipped to `most`, which is 0 without a limit.
static void error_of(float out[3], const float goal[3], const float own[3], float most) {
  for (int i = 0; i < 3; i++) {
    out[i] = most > 0 ? clipped(goal[i] - own[i], most) : goal[i] - own[i];
  }
}

static void observe(float *out, const policy_input *input, const float action[4]) {
  float position[3], velocity[3], goal[3], goal_velocity[3], acceleration[3], attitude[4];
  float rotation[9], position_error[3], velocity_error[3];
  turn(position, input->position, input->heading);
  turn(velocity, input->velocity, input->heading);
  turn(goal, input->goal, input->heading);
  turn(goal_velocity, input->goal_velocity, input->heading);
  turn(acceleration, input->goal_acceleration, input->heading);
  turn_attitude(attitude, input->attitude, input->heading);
  rotation_matrix(rotation, attitude);
  error_of(position_error, goal, position, POLICY_FARTHEST);
  error_of(velocity_error, goal_velocity, velocity, POLICY_FASTEST);
  for (int i = 0; i < 3 && POLICY_FASTEST > 0; i++) {  // the limit moves the goal itself
    goal_velocity[i] = velocity[i] + velocity_error[i];
  }
  for (int i = 0; i < POLICY_PARTS; i++) {
    switch (parts[i]) {
      case POSITION: out = put(out, position, 3); break;
      case POSITION_ERROR: out = put(out, position_error, 3); break;
      case BODY_POSITION_ERROR: out = put_in_body_axes(out, rotation, position_error); break;
      case VELOCITY: out = put(out, velocity, 3); break;
      case BODY_VELOCITY: out = put_in_body_axes(out, rotation, velocity); break;
      case VELOCITY_ERROR: out = put(out, velocity_error, 3); break;
      case BODY_VELOCITY_ERROR: out = put_in_body_axes(out, rotation, velocity_error); break;
      case BODY_GOAL_VELOCITY: out = put_in_body_axes(out, rotation, goal_velocity); break;
      case BODY_GOAL_ACCELERATION: out = put_in_body_axes(out, rotation, acceleration); break;
      case ATTITUDE: out = put(out, attitude, 4); break;
      case ROTATION: out = put(out, rotation, 9); break;
      case BODY_RATES: out = put(out, input->rates, 3); break;
      case PREVIOUS_ACTION: out = put(out, action, 4); break;
    }
  }
}

// The network.

static float dot(const float *weights, const float *inputs, int n) {
  float total = 0;
  for (int i = 0; i < n; i++) {
    total += weights[i] * inputs[i];
  }
  return total;
}

static void dense(const layer_t *layer, const float *inputs, float *out) {
  for (int i = 0; i < layer->units; i++) {
    const float sum = dot(layer->weights + i * layer->inputs, inputs, layer->inputs);
    out[i] = activated(layer->activation, sum + layer->bias[i]);
  }
}

static float now(const layer_t *layer, const float *inputs, int i) {
  return dot(layer->weights + i * layer->inputs, inputs, layer->inputs) + layer->bias[i];
}

static float past(const layer_t *layer, const float *memory, int i) {
  const float *weights = layer->hidden_weights + i * layer->units;
  return dot(weights, memory, layer->units) + layer->hidden_bias[i];
}

static void recur(const layer_t *layer, const float *inputs, float *memory, float *out) {
  const int n = layer->units;
  for (int i = 0; i < n; i++) {
    const float reset = sigmoid(now(layer, inputs, i) + past(layer, memory, i));
    const float update = sigmoid(now(layer, inputs, n + i) + past(layer, memory, n + i));
    const float new = tanhf(now(layer, inputs, 2 * n + i) + reset * past(layer, memory, 2 * n + i));
    out[i] = new + update * (memory[i] - new);
  }
  memcpy(memory, out, n * sizeof(float));
}

void policy_begin(policy_memory *memory) {
  memset(memory, 0, sizeof(*memory));
  float *recurrent = memory->recurrent;
  for (int i = 0; i < POLICY_LAYERS; i++) {
    if (layers[i].initial) {
      recurrent = put(recurrent, layers[i].initial, layers[i].units);
    }
  }
}

void policy_step(const policy_input *input, policy_memory *memory, float command[4]) {
  static float buffers[2][POLICY_WIDEST];
  float *inputs = buffers[0], *outputs = buffers[1], *recurrent = memory->recurrent;
  float *seen = memory->observation;
  memmove(seen + POLICY_FRAME, seen, (POLICY_OBSERVED - POLICY_FRAME) * sizeof(float));
  observe(seen, input, memory->action);
  for (int i = 0; i < POLICY_OBSERVED; i++) {
    inputs[i] = (seen[i] - mean[i]) / std[i];
  }
  for (int i = 0; i < POLICY_LAYERS; i++) {
    const layer_t *layer = &layers[i];
    float *own = put(outputs, inputs, layer->kept);
    if (layer->initial) {
      recur(layer, inputs, recurrent, own);
      recurrent += layer->units;
    } else {
      dense(layer, inputs, own);
    }
    float *free = inputs;
    inputs = outputs, outputs = free;
  }
  for (int i = 0; i < 4; i++) {
    memory->action[i] = clipped(inputs[i], 1);
    command[i] = memory->action[i] * scale[i] + offset[i];
  }
  if (POLICY_CONTROL == POLICY_ATTITUDE) {
    command[2] += atan2f(input->heading[1], input->heading[0]);
  }
}
