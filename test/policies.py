"""Policies and motions for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.checked import LayerNames, Specification
from crazyflow_ros.policy.network import Layer
from crazyflow_ros.policy.observation import Motion, Observation
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim import Sim

GOAL = np.array([0.3, -0.2, 1.0])


def motions(n: int, *lead: int, seed: int = 0) -> Iterator[Motion]:
    """Random motions of a batch of drones."""
    rng = np.random.default_rng(seed)

    def numbers(k: int, low: float = -2, high: float = 2) -> np.ndarray:
        return rng.uniform(low, high, (*lead, k)).astype(np.float32)

    for _ in range(n):
        quat = Rotation.random(int(np.prod(lead, dtype=int)), rng=rng).as_quat()
        yield Motion(
            pos=numbers(3),
            quat=quat.reshape(*lead, 4).astype(np.float32),
            vel=numbers(3),
            ang_vel=numbers(3),
            rotor_vel=numbers(4, 4000, 20000),
            goal=numbers(3),
            goal_vel=numbers(3),
            goal_acc=numbers(3),
            action=numbers(4, -1, 1),
            load=numbers(3),
            load_vel=numbers(3),
        )


def layer(arrays: dict[str, np.ndarray], kind: str, activation: str = "") -> Layer:
    """A layer with these arrays."""
    named = {f"0.{name}": array for name, array in arrays.items()}
    return LayerNames(kind, activation).layer(0, named)


def dense(weights: np.ndarray, bias: np.ndarray, activation: str) -> Layer:
    """A dense layer."""
    return layer({"weights": weights, "bias": bias}, "dense", activation)


def policy_of_layers(
    kinds: Sequence[str],
    observation: Observation,
    action: Action,
    rng: np.random.Generator | None = None,
    units: int = 8,
) -> Policy:
    """A policy with hidden layers of given activations, or `gru`, and random weights."""
    rng = np.random.default_rng(0) if rng is None else rng
    layers: list[Layer] = []
    size = observation.size
    for i, kind in enumerate([*kinds, "identity"]):
        n = units if i < len(kinds) else 4

        def some(*shape: int, by: float = size) -> np.ndarray:
            return rng.normal(size=shape) / np.sqrt(by)

        if kind == "gru":
            arrays = {
                "input_weights": some(3 * n, size),
                "hidden_weights": some(3 * n, n),
                "input_bias": some(3 * n),
                "hidden_bias": some(3 * n),
                "initial": some(n),
            }
            layers.append(layer(arrays, "gru"))
        else:
            layers.append(dense(some(n, size), some(n), kind))
        size = n
    specification = Specification(
        observation, action, 50, "cf2x_L250", "first_principles", "for tests"
    )
    mean, std = rng.normal(size=observation.size), rng.uniform(0.5, 2, observation.size)
    return specification.policy(tuple(layers), (mean, std))


def overflowing(action: Action) -> Policy:
    """A policy whose output is no number where the goal is more than 1 m ahead, and else zeros."""
    observation = Observation(("position_error",))
    ahead = dense(np.array([[1e6, 0, 0]] * 2), np.full(2, -1e6), "relu")
    grows = dense(np.diag([1e6, 1e6]), np.zeros(2), "identity")
    differs = dense(np.array([[0, 0]] * 3 + [[1e6, -1e6]]), np.zeros(4), "identity")
    specification = Specification(observation, action, 100, "cf2x_L250")
    return specification.policy((ahead, *[grows] * 6, differs))


def raptor() -> Path:
    package = pytest.importorskip("foundation_policy", reason="is a judge of make test")
    return Path(package.__file__).parent / "blob" / "checkpoint.h5"


def started(sim: Sim, seed: int = 0, turn: float = 0.0) -> Sim:
    """Drones in random motion around the goal, all turned by an angle about its vertical."""
    rng, n = np.random.default_rng(seed), sim.n_worlds
    heading = Rotation.from_rotvec([0, 0, turn])
    state = {
        "pos": heading.apply(rng.uniform(-0.2, 0.2, (n, 3))) + GOAL,
        "quat": (heading * Rotation.from_rotvec(rng.uniform(-0.5, 0.5, (n, 3)))).as_quat(),
        "vel": heading.apply(rng.uniform(-0.3, 0.3, (n, 3))),
        "ang_vel": rng.uniform(-0.5, 0.5, (n, 3)),
        "rotor_vel": np.full((n, 4), 0.6 * float(sim.data.params.rotor_vel_limits[1])),
    }
    arrays = {name: jnp.asarray(x[:, None], jnp.float32) for name, x in state.items()}
    sim.data = sim.data.replace(states=sim.data.states.replace(**arrays))
    return sim
