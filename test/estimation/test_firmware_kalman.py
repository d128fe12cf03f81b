"""Our Kalman filter beside that of the Crazyflie's firmware, over random measurements.

The firmware is built from a checkout, in double precision: firmware/harness.c calls its functions.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import jax
import numpy as np
import pytest
from firmware_source import build, sources
from kalman_flight import DISTANCE_STD, DT, POS_STD, QUAT_STD, Step, beliefs, flight

FOLDERS = (
    *("config", "modules/interface", "modules/interface/kalman_core", "hal/interface"),
    *("modules/interface/outlierfilter", "drivers/interface", "utils/interface"),
    *("utils/interface/lighthouse", "platform/interface"),
)
SOURCES = ("kalman_core", "mm_tof", "mm_flow", "mm_distance", "mm_position", "mm_pose")
ABSENT = ("arm_math.h", "autoconf.h", "static_mem.h", "FreeRTOS.h")  # host.h replaces them


class Firmware:
    """The firmware's filter."""

    def __init__(self, source: Path, folder: Path) -> None:
        here = Path(__file__).with_name("firmware")
        files = [f"modules/src/kalman_core/{name}" for name in SOURCES]
        self._library = build(source, here, folder, folders=FOLDERS, files=files, absent=ABSENT)

    def _call(self, name: str, *values: object) -> None:
        given = [
            (ctypes.c_double * len(v))(*v)
            if isinstance(v, np.ndarray)
            else ctypes.c_double(v)
            if isinstance(v, float)
            else v
            for v in values
        ]
        getattr(self._library, name)(*given)

    def start(self, pos: np.ndarray) -> None:
        self._call("start", pos, 0.0)

    def belief(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = (ctypes.c_double * 91)()
        self._library.belief(found)
        values = np.array(found)
        return values[:6], np.roll(values[6:10], -1), values[10:].reshape(9, 9)

    def after(self, s: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ms = ctypes.c_uint32(round(1000 * DT))
        self._call("predict", s.acc, s.gyro, ms, ctypes.c_bool(s.flies))
        v = s.values
        match s.kind:
            case "position":
                self._call("position", v, POS_STD)
            case "pose":
                self._call("pose", v[:3], v[3:], POS_STD, QUAT_STD)
            case "distance":
                self._call("distance", v[:3], float(v[3]), DISTANCE_STD)
            case "height":
                growth = np.log(0.2 / 0.0025) / 1.5  # of the error with the distance, zranger2.c
                std = 0.0025 * (1 + np.exp(growth * (v[0] - 2.5)))
                self._call("height", float(v[0]), float(std))
            case "flow":
                self._call("flow", 10 * v, np.degrees(s.gyro), DT)
        return self.belief()


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    """The filter of the checkout in CRAZYFLIE_FIRMWARE."""
    return Firmware(sources(), tmp_path_factory.mktemp("firmware"))


@pytest.mark.parametrize("flies", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_filter_is_that_of_the_firmware(firmware: Firmware, seed: int, flies: bool) -> None:
    steps = list(flight(seed, 400))
    for step in steps:
        step.flies = flies
    firmware.start(np.array([0.0, 0, 1]))
    with jax.enable_x64(True):
        for step, ours in zip(steps, beliefs([steps])):
            mean, quat, cov = firmware.after(step)
            # The firmware adds 1e-6 to norms before it divides by them.
            np.testing.assert_allclose(ours[0][0], mean, atol=1e-4)
            np.testing.assert_allclose(ours[1][0], quat, atol=5e-6)
            np.testing.assert_allclose(ours[2][0], cov, rtol=1e-4, atol=1e-8)
