"""Exported policies fly with the firmware's own controllers and power distribution.

They are built from the checkout in CRAZYFLIE_FIRMWARE. Rotors turn as with the Crazyflie's door.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exported_policy import FREQ, Exported, Kind
from firmware_source import sources
from policies import GOAL, dense, motions, raptor, started

from crazyflow_ros.policy import Action, Observation, Policy, follow_policy, load
from crazyflow_ros.policy.checked import Specification
from crazyflow_ros.policy.firmware_app import PLATFORMS
from crazyflow_ros.sim import Sim

YAW, TICKS = 0.6, 2500
CAPPED = {"power_distribution": "capped"}  # as in the firmware
PARTS = ("body_position_error", "body_velocity_error", "rotation", "body_rates")
POS, VEL, RATES = np.eye(18)[:3], np.eye(18)[3:6], np.eye(18)[15:]
EAST_NORTH, Z_EAST, Z_NORTH = np.eye(18)[[9, 12, 13]]  # of the rotation matrix
AHEAD, LEFT, UP = 0.6 * POS + 0.45 * VEL
LINEAR = {
    "attitude": (-LEFT, AHEAD, 0 * UP, 2 * UP),
    "body_rate": (-0.3 * LEFT, 0.3 * AHEAD, 0 * UP, 2 * UP),
    "force_torque": (
        2 * UP,
        -0.1 * Z_NORTH - 0.03 * LEFT - 0.032 * RATES[0],
        0.1 * Z_EAST + 0.03 * AHEAD - 0.032 * RATES[1],
        -0.2 * EAST_NORTH - 0.13 * RATES[2],
    ),
}
"""Policies that hold a goal without any training: shares of their largest commands."""


def linear(control: str) -> Policy:
    network = (dense(np.array(LINEAR[control]), np.zeros(4), "identity"),)
    action = Action.of("cf2x_L250", control)
    return Specification(Observation(PARTS), action, 100, "cf2x_L250").policy(network)


def flies_alike(policy: Policy, drone: str, folder: Path) -> None:
    exported = Exported(policy, folder, sources())
    sim = Sim(1, drone=drone, control="state", state_freq=policy.freq, freq=FREQ, **CAPPED)
    follow_policy(sim, policy)
    own = Sim(1, drone=drone, control="rotor_vel", freq=FREQ)
    flown = exported.flight(started(own), GOAL, YAW, TICKS)
    sim.state_control(np.array([[[*GOAL, *[0] * 6, YAW, 0, 0, 0]]]))
    started(sim).step(TICKS - 1)
    here = np.asarray(sim.data.states.pos)[0, 0]
    assert np.linalg.norm(flown[0] - GOAL) > 0.1
    assert np.linalg.norm(flown[-1] - GOAL) < 0.1
    assert np.linalg.norm(here - flown[-1]) < 0.005


@pytest.mark.parametrize("drone", PLATFORMS)
def test_a_trained_policy_hovers_with_the_firmware(drone: str, tmp_path: Path) -> None:
    flies_alike(load(raptor(), drone), drone, tmp_path)


@pytest.mark.parametrize("control", ["attitude", "body_rate", "force_torque"])
def test_each_control_mode_flies_with_the_firmware(control: str, tmp_path: Path) -> None:
    flies_alike(linear(control), "cf2x_L250", tmp_path)


def test_the_firmwares_pid_takes_over_at_once(tmp_path: Path) -> None:
    exported, (motion,) = Exported(load(raptor(), "cf2x_L250"), tmp_path, sources()), motions(1)
    level = motion._replace(quat=np.array([0, 0, 0, 1.0]), ang_vel=np.zeros(3))
    for _ in range(13):
        exported.fly(level, 0.0)
    assert (abs(exported.fly(level, 0.0, Kind.manual) - 30000.0) < 2000).all()
    exported.fly(level, 0.0)
    assert (exported.fly(level, 0.0, Kind.stop) == 0).all()
