"""Policies fly the node's drones from random starts to their goals, at any real-time factor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from multirotors import QUADROTORS
from paths import ROOT
from policy_flights import ANYHOW, GENTLE, flights
from ros_client import own_domain

DOMAIN = own_domain("test_policy_flights")
NEAR = 0.05  # m
OFF = 0.1  # m: foundation-policy has a steady error of up to 7 cm
N, ROUNDS = 100, 10
TRAINING = 600.0  # s


@pytest.fixture(scope="module")
def raptor() -> str:
    package = pytest.importorskip("foundation_policy", reason="is a judge of make test")
    return str(Path(package.__file__).parent / "blob" / "checkpoint.h5")


@pytest.fixture(scope="module")
def hover(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy that a user would train."""
    file = tmp_path_factory.mktemp("learn") / "hover.policy"
    command = [sys.executable, "-m", "crazyflow_ros.learn", "hover", "--out", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=environment, check=True, timeout=TRAINING, cwd=ROOT)
    return str(file)


def shares(off: list[np.ndarray]) -> tuple[float, float]:
    """Shares of the flights that end within `NEAR` and within `OFF`, which are also printed."""
    away = np.concatenate(off)
    near, not_far = float((away < NEAR).mean()), float((away < OFF).mean())
    print(f"{len(away)} flights: {near:.1%} within 5 cm, {not_far:.1%} within 10 cm")
    return near, not_far


def test_foundation_policy_reaches_its_goals(raptor: str) -> None:
    with flights(DOMAIN, raptor, "cf2x_L250", 10, 0.0) as flown:
        for turning in (False, True):
            assert flown.fly(GENTLE, seed=0, turning=turning).max() < OFF
        assert "crashed" not in flown.simulator.log


@pytest.mark.soak
@pytest.mark.parametrize("factor", [0.0, 1.0])
@pytest.mark.parametrize("drone", QUADROTORS)
def test_foundation_policy_holds_each_drone_in_the_node(
    raptor: str, drone: str, factor: float
) -> None:
    with flights(DOMAIN, raptor, drone, N, factor) as flown:
        rounds = [flown.fly(GENTLE, seed, turning=seed % 2 == 0) for seed in range(ROUNDS)]
    assert shares(rounds)[1] == 1.0


@pytest.mark.soak
@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_a_trained_policy_reaches_its_goals_from_any_attitude(hover: str, factor: float) -> None:
    with flights(DOMAIN, hover, "cf2x_L250", N, factor) as flown:
        near, _ = shares([flown.fly(ANYHOW, seed) for seed in range(ROUNDS)])
        assert near >= 0.95
        # Behind the commander, the way back takes its time, but none counts as crashed.
        near, _ = shares([flown.fly(ANYHOW, ROUNDS, by_pose=True, seconds=30.0)])
        assert near >= 0.9 and "crashed at" not in flown.simulator.log
