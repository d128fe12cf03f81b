"""Range sensors: rays of known length in the mirror."""

import math

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import quat_from_rpy
from crazyflow_ros.scene.rangefinder import Rangefinder

BELOW = 0.003  # m, from the centre of mass to the sensor
NAMES = ["a", "b"]
FAR = (9.0, 9.0, 1.0)  # where b is out of the way


def ranges(
    a: tuple[float, float, float], rpy: tuple[float, float, float] = (0, 0, 0), b: tuple = FAR
) -> np.ndarray:
    attitude = quat_from_rpy(np.array(rpy, float))
    poses = [[*a, *attitude], [*b, 0, 0, 0, 1]]
    model = build_spec("cf2x_L250", NAMES, poses=poses).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return Rangefinder(model, NAMES).read(data)


def test_a_level_drone_measures_its_height() -> None:
    np.testing.assert_allclose(ranges((0, 0, 1.5)), [1.5 - BELOW, FAR[2] - BELOW], atol=1e-12)


@pytest.mark.parametrize("rpy", [(0.5, 0, 0), (0, -0.5, 0), (0.3, 0.4, 2.0)])
def test_a_tilted_drone_measures_along_its_axis(rpy: tuple[float, float, float]) -> None:
    slant = math.cos(rpy[0]) * math.cos(rpy[1])
    assert ranges((0, 0, 1.5), rpy)[0] == pytest.approx(1.5 / slant - BELOW, abs=1e-12)


def test_nothing_within_the_maximum_is_infinite() -> None:
    assert ranges((0, 0, 4.0 + BELOW - 1e-9))[0] == pytest.approx(4.0)
    assert ranges((0, 0, 4.0 + BELOW + 1e-9))[0] == np.inf
    assert ranges((0, 0, 1.5), (math.pi, 0, 0))[0] == np.inf


def test_another_drone_below_is_seen_and_the_own_is_not() -> None:
    box = build_spec("cf2x_L250", NAMES).compile().geom("col_box:b")
    top = box.pos[2] + box.size[2]
    over, under = ranges((9.0, 9.0, 2.0))
    assert over == pytest.approx(2.0 - BELOW - FAR[2] - top, abs=1e-12)
    assert under == pytest.approx(FAR[2] - BELOW, abs=1e-12)
