"""Networks that remember, for many inputs at once as they are for one after the other."""

from __future__ import annotations

import jax
import numpy as np

from crazyflow_ros.learn.learner import dense_layers, recurrent_layer
from crazyflow_ros.policy.network import Network

STEPS, DRONES, KEPT = 7, 3, 2


def test_inputs_in_turn_give_what_one_after_the_other_gives() -> None:
    rng = np.random.default_rng(0)
    first = dense_layers(rng, (5, 4), "tanh", 0.1, gain=1.0, kept=KEPT)
    memory = recurrent_layer(rng, 4, 6, kept=KEPT)
    start = rng.normal(size=6).astype(np.float32)
    last = dense_layers(rng, (memory.n_out, 3), "identity", 0.0, gain=1.0)
    network = Network((*first, memory.replace(initial=start), *last))
    inputs = rng.normal(size=(STEPS, DRONES, 5)).astype(np.float32)
    begins = rng.random((STEPS, DRONES)) < 0.3
    assert begins.any() and not begins[0].all()
    before = rng.normal(size=(DRONES, 6)).astype(np.float32)

    expected = np.zeros((STEPS, DRONES, 3), np.float32)
    for drone in range(DRONES):  # the equations of Cho et al., in NumPy
        remembered = before[drone]
        for step in range(STEPS):
            if begins[step, drone]:
                remembered = start
            x = inputs[step, drone]
            hidden = np.tanh(first[0].weights @ x + first[0].bias)
            given = np.concatenate([x[:KEPT], hidden])
            now = np.split(memory.input_weights @ given + memory.input_bias, 3)
            past = np.split(memory.hidden_weights @ remembered + memory.hidden_bias, 3)
            reset, update = (1 / (1 + np.exp(-a - b)) for a, b in zip(now[:2], past[:2]))
            new = np.tanh(now[2] + reset * past[2])
            remembered = (1 - update) * new + update * remembered
            seen = np.concatenate([x[:KEPT], remembered])
            expected[step, drone] = last[0].weights @ seen + last[0].bias
    found = jax.jit(network.in_turn)(inputs, before, begins)
    np.testing.assert_allclose(found, expected, atol=1e-5)
