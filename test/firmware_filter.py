"""The Kalman filter of the Crazyflie's firmware, built from a checkout in double precision.

estimation/firmware/harness.c calls its functions.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from firmware_source import build
from kalman_flight import DISTANCE_STD, DT, POS_STD, QUAT_STD, Step

FOLDERS = (
    *("config", "modules/interface", "modules/interface/kalman_core", "hal/interface"),
    *("modules/interface/outlierfilter", "drivers/interface", "utils/interface"),
    *("utils/interface/lighthouse", "platform/interface"),
)
SOURCES = (
    *("kalman_core", "mm_tof", "mm_flow", "mm_distance", "mm_position", "mm_pose"),
    *("mm_sweep_angles", "mm_tdoa", "mm_yaw_error"),
)
FILTERS = [f"modules/src/outlierfilter/outlierFilter{name}" for name in ("Lighthouse", "Tdoa")]
LIGHT = ["utils/src/lighthouse/lighthouse_calibration"]
ABSENT = ("arm_math.h", "autoconf.h", "static_mem.h", "FreeRTOS.h")  # host.h replaces them


class Firmware:
    """The firmware's filter."""

    def __init__(self, source: Path, folder: Path) -> None:
        here = Path(__file__).parent / "estimation" / "firmware"
        files = [f"modules/src/kalman_core/{name}" for name in SOURCES] + FILTERS + LIGHT
        self.library = build(source, here, folder, folders=FOLDERS, files=files, absent=ABSENT)

    def call(self, name: str, *values: object) -> None:
        given = [
            (ctypes.c_double * len(v))(*v)
            if isinstance(v, np.ndarray)
            else ctypes.c_double(v)
            if isinstance(v, float)
            else v
            for v in values
        ]
        getattr(self.library, name)(*given)

    def start(self, pos: np.ndarray) -> None:
        self.call("start", pos, 0.0)

    def belief(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = (ctypes.c_double * 91)()
        self.library.belief(found)
        values = np.array(found)
        return values[:6], np.roll(values[6:10], -1), values[10:].reshape(9, 9)

    def after(self, s: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ms = ctypes.c_uint32(round(1000 * DT))
        self.call("predict", s.acc, s.gyro, ms, ctypes.c_bool(s.flies))
        v = s.values
        match s.kind:
            case "position":
                self.call("position", v, POS_STD)
            case "pose":
                self.call("pose", v[:3], v[3:], POS_STD, QUAT_STD)
            case "distance":
                self.call("distance", v[:3], float(v[3]), DISTANCE_STD)
            case "height":
                growth = np.log(0.2 / 0.0025) / 1.5  # of the error with the distance, zranger2.c
                std = 0.0025 * (1 + np.exp(growth * (v[0] - 2.5)))
                self.call("height", float(v[0]), float(std))
            case "flow":
                self.call("flow", 10 * v, np.degrees(s.gyro), DT)
        return self.belief()
