"""The command line flies hexacopters with sensors and a load, all of it recorded and replayed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_processes import command
from multirotors import HEXA
from ros_client import Client, SimulatorProcess, own_domain
from sensor_msgs.msg import Image, JointState, LaserScan

from crazyflow_ros.ros.recording.replay import replay

pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")

DOMAIN = own_domain(__name__)
WORLD = """<mujoco><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body name="box" pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="0.4"/></body>
<body name="pendulum" pos="3 0 1.5"><joint name="swing" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.3 0 -0.4" size="0.03" mass="0.2"/></body>
</worldbody></mujoco>"""
SENSORS = """all: {scan: {type: lidar, rate: 10, samples: 36, max_distance: 8.0}}
cf0: {camera: {type: camera, rate: 5, width: 32, height: 24, renderer: rays, data_types: [rgb]}}
"""


def said(words: str) -> str:
    """What a command prints that succeeds."""
    done = command(words)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def test_hexacopters_carry_come_and_go_and_are_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, sensors, flight = (tmp_path / f for f in ("world.xml", "sensors.yaml", "flight.mcap"))
    world.write_text(WORLD)
    sensors.write_text(SENSORS)
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    arguments = [
        *(f"drone_model:={HEXA}", "drones:=[cf0]", "max_drones:=2", "real_time_factor:=4.0"),
        *(f"scene:={world}", f"sensors:={sensors}", f"record:={flight}"),
        *(f"checkpoint_folder:={tmp_path}", "initial_poses:=[0.0, 0.0, 0.29, 0.0]"),
    ]
    with SimulatorProcess(DOMAIN, arguments) as simulator, Client(DOMAIN) as client:
        assert "cf0 holds box" in said("attach cf0 box --cable 0.5 --reach 1.0")
        assert re.match(r"cf0 hovers at \(-?0\.0\d, -?0\.0\d, 1\.\d\d\) m", said("takeoff cf0 1.2"))
        said("spawn cf1 1.5 1.5")
        said("takeoff cf1 0.8")
        states = client.latest(JointState, "crazyflow/joint_states")
        assert list(states.name) == [f"cf{k}_rotor{i}" for k in (0, 1) for i in range(6)]
        assert min(states.velocity) > 300
        assert client.latest(LaserScan, "cf1/scan").ranges
        assert client.latest(Image, "cf0/camera/image_raw").data
        said("checkpoint save flying")
        assert said("go-to cf0 0.5 0.5 1.3").startswith("cf0 hovers at (0.")
        said("checkpoint restore flying")
        said("land cf1")
        said("remove cf1")
        assert "box" in said("detach cf0")
        said("land cf0")
        said("reset")
        said("takeoff cf0 0.8")
        assert simulator.end()[0] == 0
        lines = [line for line in simulator.log.splitlines() if "[INFO]" not in line]
        assert lines == []
    report = replay(flight)
    assert report.difference == "" and report.ticks > 100
