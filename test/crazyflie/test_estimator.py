"""cflib beside the estimator in the loop: flights that drift, resets, poses from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from crazyflie_helpers import Crazyflies, connected, crazyflies, logged, until

from crazyflow_ros.estimation import Positioning
from crazyflow_ros.runtime import DroneState
from crazyflow_ros.scene.frames import yaw

pytest.importorskip("cflib", reason="cflib is not installed")

import cflib.crtp

T = 60.0  # s
COMPILED = "/jax/core/compile/backend_compile_duration"

SCRIPT = """
import time

import cflib.crtp
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.positioning.motion_commander import MotionCommander
from cflib.utils import uri_helper
from cflib.utils.reset_estimator import reset_estimator

cflib.crtp.init_drivers()
with SyncCrazyflie(uri_helper.uri_from_env(default="")) as scf:
    cf = scf.cf
    cf.param.set_value("stabilizer.controller", 2)  # as it is
    cf.param.set_value("ctrlMel.kp_z", 1.2)
    cf.extpos.send_extpose(0, 0, 0, 0, 0, 0, 1)
    reset_estimator(scf)
    cf.commander.send_setpoint(0, 0, 0, 0)
    for setpoint in (
        lambda: cf.commander.send_zdistance_setpoint(0, 0, 0, 0.3),
        lambda: cf.commander.send_hover_setpoint(0.2, 0, 0, 0.4),
        lambda: cf.commander.send_velocity_world_setpoint(0, 0.2, 0, 0),
        lambda: cf.commander.send_position_setpoint(0, 0, 0.4, 0),
    ):
        for _ in range(5):
            setpoint()
            time.sleep(0.1)
    cf.commander.send_notify_setpoint_stop()
    commander = cf.high_level_commander
    commander.takeoff(0.5, 1.0)
    time.sleep(1.0)
    commander.go_to(0, 0, 0.5, 0, 1.0)
    time.sleep(1.0)
    commander.land(0, 1.0)
    time.sleep(1.0)
    commander.stop()
    with MotionCommander(scf, default_height=0.5) as motion:
        motion.forward(0.5)
        motion.turn_left(90)
        motion.forward(0.5)
print("landed")
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    cflib.crtp.init_drivers()
    positioning = Positioning(external=True)
    with crazyflies(estimator="kalman", positioning=positioning) as found:
        yield found


@pytest.fixture(autouse=True)
def compiles_nothing(served: Crazyflies) -> Iterator[None]:
    """Simulated time stands still while something is compiled, so that is done before the start."""
    compiled = []

    def note(event: str, duration: float, **about: object) -> None:
        if event == COMPILED:
            compiled.append(about)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield
    jax.monitoring.unregister_event_duration_listener(note)
    assert not compiled


@pytest.fixture
def cf(served: Crazyflies, tmp_path: Path) -> Iterator[Any]:
    served.physics.state.reset().result(T)
    with connected(served.uris[0], tmp_path) as cf:
        yield cf


def test_a_script_that_resets_the_estimator_flies(served: Crazyflies, tmp_path: Path) -> None:
    served.physics.state.reset().result(T)  # and nothing is compiled, see above
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    program = served.run(script, served.uris[0], tmp_path)
    output, _ = program.communicate(timeout=2 * T)
    assert program.returncode == 0 and "landed" in output, output
    now = served.physics.snapshot
    assert now.believed is not None
    # It has drifted, and lands where it believes it is 0.5 m ahead and to the left.
    assert np.abs(now.believed.pos[0, :2] - 0.5).max() < 0.2
    assert 1e-3 < np.abs(now.pos[0, :2] - now.believed.pos[0, :2]).max() < 0.5


def test_the_log_shows_the_estimate_and_its_variances(served: Crazyflies, cf: Any) -> None:
    cf.param.set_value("kalman.initialX", 2.0)
    cf.param.set_value("kalman.resetEstimation", 1)
    until(lambda: served.physics.snapshot.believed.pos[0, 0] > 1.5, "at its initial position")
    names = ("stateEstimate.x", "kalman.stateX", "kalman.varX", "kalman.varPX")
    values = logged(cf, *names)
    assert values["stateEstimate.x"] == pytest.approx(2.0, abs=0.2)
    assert values["kalman.stateX"] == pytest.approx(2.0, abs=0.2)
    assert values["kalman.varX"] == pytest.approx(100.0, rel=0.01)
    assert 0 < values["kalman.varPX"] < 1e-3
    assert abs(served.physics.snapshot.pos[0, 0]) < 0.1


@pytest.mark.parametrize("with_attitude", [False, True])
def test_a_drone_believes_positions_from_outside(
    served: Crazyflies, cf: Any, with_attitude: bool
) -> None:
    cf.param.set_value("locSrv.extPosStdDev", 0.001)

    def told() -> bool:
        if with_attitude:
            cf.extpos.send_extpose(1.0, -2.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        else:
            cf.extpos.send_extpos(1.0, -2.0, 0.0)
        believed = served.physics.snapshot.believed
        return bool(np.abs(believed.pos[0, :2] - [1, -2]).max() < 0.05)

    until(told, "where it is told to be")
    assert served.physics.snapshot.believed.variances[0, 0] < 1e-3


def test_other_estimators_are_refused(served: Crazyflies, cf: Any) -> None:
    cf.param.set_value("stabilizer.estimator", 1)
    until(lambda: any("must be 2 (Kalman), got 1" in line for line in served.log), "refused")


def test_a_restarted_estimator_begins_where_the_drone_is(served: Crazyflies, cf: Any) -> None:
    """Whatever it believed before; so do the parameters with its initial position."""
    half = 0.4  # of the heading
    there = DroneState(pos=(1.2, -0.7, 0.02), quat=(0.0, 0.0, np.sin(half), np.cos(half)))
    served.physics.state.set_drone_states({"cf0": there}).result(T)
    cf.param.set_value("kalman.initialX", -3.0)
    cf.param.set_value("kalman.resetEstimation", 1)
    until(lambda: served.physics.snapshot.believed.pos[0, 0] < -2.0, "a wrong belief")
    served.physics.firmware.restart("cf0").result(T)
    believed = served.physics.snapshot.believed
    np.testing.assert_allclose(believed.pos[0, :2], (1.2, -0.7), atol=0.01)
    assert float(yaw(believed.quat[0])) == pytest.approx(2 * half, abs=0.01)
    names = [f"kalman.initial{name}" for name in ("X", "Y", "Yaw")]
    expected = pytest.approx([1.2, -0.7, 2 * half], abs=0.01)
    until(lambda: [float(cf.param.get_value(n)) for n in names] == expected, "parameters")
