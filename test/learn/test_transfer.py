"""A policy that was trained here flies in other people's simulators, in environments of theirs.

CRAZYFLOW_PYTHON names a Python that has crazyflow==0.4.0 (`make parity` makes one), ROTORPY_PYTHON
one that has rotorpy==3.0.0.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from learn.numpy_policy import act

from crazyflow_ros.learn.bptt import Bptt, BpttSettings
from crazyflow_ros.learn.quick import QuickHover
from crazyflow_ros.learn.ready import APPROACHING, SPREAD
from crazyflow_ros.learn.training import policy_of, train
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy

HERE = Path(__file__).parent
SECONDS, TIMEOUT = 5.0, 1200.0
STARTS = {"crazyflow": 1000, "rotorpy": 1000 if "CRAZYFLOW_ROS_SOAK" in os.environ else 60}


def numbers_of(policy: Policy) -> dict[str, np.ndarray]:
    """What `numpy_policy.act` needs."""
    arrays = {
        "std": np.asarray(policy.std),
        "offset": np.array(policy.action.offset),
        "scale": np.array(policy.action.scale),
    }
    for i, layer in enumerate(policy.network.layers):
        arrays |= {f"weights{i}": np.asarray(layer.weights), f"bias{i}": np.asarray(layer.bias)}
    return arrays


def flown(simulator: str, policy: Policy, folder: Path) -> np.ndarray:
    """Distances from the goal [m] after flights in another simulator."""
    python = os.environ.get(f"{simulator.upper()}_PYTHON", "")
    hover = QuickHover(STARTS[simulator], APPROACHING, policy.drone, policy.freq)
    arrays = {
        "body": np.asarray(hover.begin(11, {}).body),
        "freq": np.array(policy.freq),
        "steps": np.array(round(SECONDS * policy.freq)),
        "drone": np.array(policy.drone),
    }
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(inputs, **arrays, **numbers_of(policy))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python, str(HERE / f"{simulator}_flights.py"), str(inputs), str(outputs)]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return np.load(outputs)["distances"]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return train(Bptt(QuickHover(96, APPROACHING), BpttSettings(spread=SPREAD))).policy


@pytest.mark.soak
@pytest.mark.parametrize("simulator", STARTS)
def test_a_policy_hovers_in_another_simulator(
    simulator: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not Path(os.environ.get(f"{simulator.upper()}_PYTHON", "none")).exists():
        pytest.skip(f"{simulator.upper()}_PYTHON names no Python that has {simulator}")
    distances = flown(simulator, request.getfixturevalue("policy"), tmp_path)
    assert len(distances) == STARTS[simulator]
    print(
        f"{simulator}: {(distances < 0.05).mean():.1%}, 95 % {np.percentile(distances, 95):.3f} m"
    )
    assert (distances < 0.05).mean() >= 0.95


def test_the_policy_of_the_other_environments_is_ours() -> None:
    learner = Bptt(QuickHover(5, APPROACHING), BpttSettings(hidden=8))
    policy = policy_of(learner, learner.network(learner.begin()))
    body = np.asarray(learner.begin().worlds.body)
    pos, quat, vel, rates, rotors = np.split(body, [3, 7, 10, 13], axis=-1)
    zero, action = np.zeros((5, 3), np.float32), np.zeros((5, 4), np.float32)
    memory = policy.initial_state((5,))
    for _ in range(3):
        motion = Motion(pos, quat, vel, rates, rotors, *[zero] * 3, np.asarray(memory.action))
        memory, command = policy.act(memory, motion)
        action, theirs = act(numbers_of(policy), pos, quat, vel, rates, action)
        np.testing.assert_allclose(theirs, command, rtol=1e-4)
