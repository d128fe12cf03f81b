"""/poses, fed by hand: no process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from crazyswarm import configuration
from physics_double import RATE, Physics

from crazyflow_ros.crazyswarm.swarm_configuration import (
    MotionCaptureParameters,
    SwarmConfiguration,
)
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.sensors.device_topics import Scene
from crazyflow_ros.ros.sensors.devices import SensorFile
from crazyflow_ros.sensors.rendering import Room

ROBOTS = ("cf1", "cf2")


def test_poses_outlast_a_reader_that_leaves_while_they_are_sampled() -> None:
    motion_capture = pytest.importorskip("crazyflow_ros.crazyswarm.mocap_poses")
    swarm, parameters = SwarmConfiguration(configuration(*ROBOTS)), Parameters(freq=RATE)
    given = MotionCaptureParameters()
    file = motion_capture.with_poses(
        SensorFile((), parameters.drone_model), given, swarm, parameters
    )
    simulator: Any = Physics()
    simulator.use(list(ROBOTS))
    simulator.owns = set(ROBOTS).__contains__
    sent: list[Any] = []
    heard = {motion_capture.TOPIC: SimpleNamespace(publish=sent.append)}
    simulator.listeners = SimpleNamespace()
    (device,) = file.devices
    poses = motion_capture.PosesTopic(simulator, file, device)
    scene = Scene(simulator.mirror.model, ROBOTS, Room())
    poses.initialize(scene)
    poses.reset(dict.fromkeys(ROBOTS, simulator.lives.current["cf0"]))
    period = RATE // device.rate
    for n, topics in enumerate((heard, {}, heard), 1):
        simulator.listeners.heard = topics.get
        poses.look(ROBOTS)
        simulator.tick = n * period
        poses.sense([simulator.snapshot], scene)
    assert [message.poses[1].pose.position.x for message in sent] == [period, 3 * period]
