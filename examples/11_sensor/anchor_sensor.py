"""A sensor of a user's own: the distance to an anchor of ultra-wideband radio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sensor_msgs.msg import Range

from crazyflow_ros.ros import Device, Kind, SampleMessage, SampleTopics, stamped
from crazyflow_ros.sensors import EXACT, Backend, FrameSensor, FrameSensorCfg, NoiseCfg


@dataclass(kw_only=True)
class AnchorSensorCfg(FrameSensorCfg):
    anchor: tuple[float, float, float] = (0.0, 0.0, 0.0)  # position in the map [m]
    noise: NoiseCfg = EXACT  # errors of the distance [m]

    def build(self) -> AnchorSensor:
        return AnchorSensor(self)


class AnchorSensor(FrameSensor[AnchorSensorCfg, np.ndarray]):
    def initialize(self, backend: Backend) -> None:
        super().initialize(backend)
        self._errors = self._noise(self.cfg.noise, 1)

    def _measure(self, dt: float) -> np.ndarray:
        position, _ = self.backend.frame(self.cfg.frame)
        distance = np.linalg.norm(np.asarray(position) - self.cfg.anchor, axis=1, keepdims=True)
        return self._errors.apply(distance, dt)

    def _decode(self, sample: np.ndarray, dt: float) -> np.ndarray:
        return sample[:, 0]


def messages(device: Device[Any]) -> list[SampleMessage]:
    message = Range(radiation_type=Range.INFRARED, max_range=100.0)
    template = stamped(message, device.frame)
    return [SampleMessage(template, [["range"]], lambda d: (d,), display="Range")]


ANCHOR = Kind(cfg=AnchorSensorCfg, rate=20, topics=SampleTopics, messages=messages)
