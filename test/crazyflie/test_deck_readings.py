"""What the decks read in flight: the filter's own readings, over a box and over a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crazyflow_ros.crazyflie import deck_readings
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import FlightConfig, Takeoff
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

T = 600.0  # s
DRONE, FREQ, BOX = "cf2x_L250", 500, 0.3  # m, height of the boxes
NAMES = ["floor", "box", "mirror"]  # what they fly over
SCENE = f"""<mujoco>
  <asset><material name="mirror" reflectance="0.6" rgba=".8 .8 .8 1"/></asset>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <geom type="box" size=".5 .5 {BOX / 2}" pos="3 0 {BOX / 2}"/>
    <geom type="box" size=".5 .5 {BOX / 2}" pos="6 0 {BOX / 2}" material="mirror"/>
  </worldbody>
</mujoco>"""


def simulated(scene: Path, **options: Any) -> PhysicsThread:
    scene.write_text(SCENE)
    poses = np.zeros((3, 7))
    poses[:, 0], poses[:, 6] = [0, 3, 6], 1
    poses[:, 2] = rest_height(DRONE) + np.array([0, BOX, BOX])
    config = SimulationConfig(
        drone_model=DRONE, freq=FREQ, true_mass=True, start_paused=True, scene=str(scene),
        initial_poses=poses, flight=FlightConfig(exact_durations=True), seed=4, **options,
    )  # fmt: skip
    physics = PhysicsThread(config, NAMES)
    physics.start()
    return physics


@pytest.fixture(scope="module")
def estimating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhysicsThread]:
    scene = tmp_path_factory.mktemp("scene") / "boxes.xml"
    physics = simulated(scene, estimator="kalman", positioning=Positioning())
    yield physics
    physics.stop()


def readings(physics: PhysicsThread, seconds: float) -> np.ndarray:
    """Readings (n, M, 9), a hundred times a second."""
    found: list[np.ndarray] = []
    for _ in range(round(100 * seconds)):
        physics.step(FREQ // 100).result(T)
        shown = physics.show_to(lambda now: found.append(deck_readings.read(physics, now)))
        shown.result(T)
    return np.array(found)


def test_range_and_filter_agree_over_a_box_as_on_the_real_drone(estimating: PhysicsThread) -> None:
    """mm_tof.c: the distance is taken for the height, so the box counts as the floor."""
    physics = estimating
    physics.state.reset().result(T)
    physics.step(FREQ).result(T)
    takeoffs = {name: Takeoff(0.8, 2.0) for name in NAMES}
    physics.fly(takeoffs).result(T)
    physics.step(FREQ).result(T)
    read = readings(physics, 0.5)
    np.testing.assert_allclose(read[:, :, 8].mean(axis=0), [191.4, 191.4, 0], atol=0.1)
    assert not read[:, 2, 6:8].any()
    now = physics.snapshot
    assert now.believed is not None
    variances = now.believed.variances[:, 3]  # of the velocity along x
    assert variances[2] > 1.5 * variances[1], variances  # over the mirror, it drifts from now on
    physics.step(4 * FREQ).result(T)
    read = readings(physics, 1.0)[:, :2]
    now = physics.snapshot
    assert now.believed is not None
    below, believed = read[:, :, 5].mean(axis=0), now.believed.pos[:2, 2]
    np.testing.assert_array_equal(read[-1, :, 5:], now.believed.deck[:2])
    np.testing.assert_allclose(below, believed, atol=0.03)
    np.testing.assert_allclose(now.pos[:2, 2] - believed, [0, BOX], atol=0.04)
    assert read[:, :, 6:8].std() == pytest.approx(2.0, rel=0.3)


def test_the_flow_deck_can_be_disabled(estimating: PhysicsThread) -> None:
    physics = estimating
    physics.state.reset().result(T)
    physics.firmware.tune_flow("floor", (1, 0, 2.0)).result(T)
    physics.step(2 * FREQ).result(T)
    now = physics.snapshot
    assert now.believed is not None
    assert now.believed.variances[0, 3] > 10 * now.believed.variances[1, 3]
    for wrong in ((0, 0, 0), (0, 0, -1.0), (0, np.nan, 1)):
        with pytest.raises(ValueError, match=r"flowStdFixed|settings of the flow deck"):
            physics.firmware.tune_flow("floor", wrong)


def test_without_an_estimator_readings_have_the_noise_of_their_sensors(tmp_path: Path) -> None:
    physics = simulated(tmp_path / "boxes.xml")
    try:
        physics.fly({name: Takeoff(0.8, 2.0) for name in NAMES}).result(T)
        physics.step(6 * FREQ).result(T)
        read = readings(physics, 4.0)
        again: list[np.ndarray] = []
        physics.show_to(lambda now: again.append(deck_readings.read(physics, now))).result(T)
        np.testing.assert_array_equal(again[0], read[-1])
        height = physics.snapshot.pos[:, 2] - [0, BOX, BOX]
        off = read[:, :, 5].mean(axis=0) - height
        assert np.abs(off).max() < 0.04 and np.ptp(off) > 1e-3  # each has its own offset
        np.testing.assert_allclose(read[:, :, 5].std(axis=0), 0.0025, rtol=0.25)
        assert np.isposinf(read[:, 0, 1:5]).all()  # in front there is a box
        assert read[:, :, 6:8].std() == pytest.approx(2.0, rel=0.1)
    finally:
        physics.stop()
