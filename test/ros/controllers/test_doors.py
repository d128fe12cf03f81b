"""Doors in the node: `door:=px4` and `door:=betaflight` beside a drone that ROS flies."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fake_px4
import numpy as np
import pytest
from betaflight_process import own_ports
from diagnostic_msgs.msg import DiagnosticArray
from fake_betaflight import FakeBetaflight, Receiver
from fake_px4 import FakePx4, Hover
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from ports import free_ports
from ros_client import Client, RosProcess, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState, Joy

DOMAIN = own_domain(__name__)
FREQ = 500
FASTEST = np.sqrt(12.13 / 8.54858e-6)  # rad/s, drone.toml of hb_x500


@contextmanager
def running(door: str, *parameters: str) -> Iterator[tuple[SimulatorProcess, Client]]:
    """A paused simulator whose drone cf1 the door flies, and cf0 ROS."""
    arguments = [
        *("drones:=[cf0,cf1]", "drone_model:=hb_x500", f"freq:={FREQ}", "start_paused:=true"),
        *(f"door:={door}", "door_drones:=[cf1]", *parameters),
    ]
    with SimulatorProcess(DOMAIN, arguments) as process:
        client = Client(DOMAIN)
        try:
            yield process, client
        finally:
            client.close()
        assert "ERROR" not in process.log
        if process.process.poll() is None:
            assert process.end()[0] == 0


def children(process: int) -> list[int]:
    """Processes that all threads of a process have started."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def pose(x: float, y: float, z: float) -> PoseStamped:
    message = PoseStamped()
    message.pose.position.x, message.pose.position.y, message.pose.position.z = x, y, z
    message.pose.orientation.w = 1.0
    return message


def place(client: Client, heard: list[Odometry], tick: int) -> np.ndarray:
    at = client.newest(heard, tick).pose.pose.position
    return np.array([at.x, at.y, at.z])


def test_px4_hovers_beside_a_drone_that_obeys_ros() -> None:
    fake_px4.dialect()
    port = free_ports(kind=socket.SOCK_STREAM)
    given = f"px4.port:={port}", "px4.timeout:=100.0", "px4.boot_timeout:=100.0"
    with running("px4", *given) as (process, client):
        assert f"waits for 1 PX4 at 127.0.0.1, TCP port {port}" in process.log
        cf0, cf1 = (client.listen(Odometry, f"{drone}/odom") for drone in ("cf0", "cf1"))
        fake = FakePx4(port, Hover(1.0))
        fake.start()
        tick = client.advance(2)
        (x, y, _), before = place(client, cf0, tick), place(client, cf1, tick)
        client.publish("cf0/cmd_pose", pose(x, y, 1.5))
        client.publish("cf1/cmd_pose", pose(0.0, 0.0, 3.0))
        process.wait_for("cf1 obeys the door px4 alone")
        tick = client.advance(5 * FREQ)
        up = place(client, cf1, tick) - before
        np.testing.assert_allclose(up, (0, 0, 1.0), atol=0.05)
        np.testing.assert_allclose(place(client, cf0, tick), (x, y, 1.5), atol=0.05)
        (status, *_) = client.latest(DiagnosticArray, "crazyflow/status").status
        values = {value.key: value.value for value in status.values}
        assert (values["door"], values["door_drones"]) == ("px4", "cf1")
        assert values["controlled_drones"] == "cf1" and values["state of cf1"] == "obeys px4"
        assert values["flight_states"] == "1 flying, 0 idle"
        client.reset()
        process.wait_for(
            "cf1: it was reset, and its PX4 believes that it flies on: start PX4 again"
        )
        fake.end()
        client.advance(2)
        process.wait_for("is lost, and has to be started again")


def test_betaflight_turns_the_rotors_of_its_drone_and_a_gamepad_moves_its_sticks() -> None:
    given = "betaflight.timeout:=1.0", "betaflight.gamepad.timeout:=60.0"
    with own_ports():
        fake, receiver = FakeBetaflight((0.3, 0.35, 0.4, 0.45)), Receiver()
        try:
            with running("betaflight", *given) as (process, client):
                rotors = client.listen(JointState, "cf1/joint_states")
                client.publish("joy", Joy(axes=[0.0] * 4))
                process.wait_for("joy is ignored: the gamepad has 4 axes")
                client.publish("joy", Joy(axes=[0.0, 0.5, 0.0, 0.0, 1.0, 0.0], buttons=[0] * 8))
                tick = client.advance(2 * FREQ)
                process.wait_for("cf1: Betaflight answers")
                speeds = client.newest(rotors, tick).velocity
                assert len(fake.packets) == FREQ
                client.advance(FREQ)
        finally:
            fake.end()
            sticks = receiver.packets()
            receiver.close()
    np.testing.assert_allclose(speeds, np.array((0.3, 0.45, 0.35, 0.4)) * FASTEST, rtol=0.01)
    np.testing.assert_allclose(fake.packets[-1][4:7], (0, 0, -9.81), atol=0.5)  # it stands
    assert sticks and {packet[1:6] for packet in sticks} == {(1500, 2000, 1500, 1500, 1000)}


def test_the_node_starts_px4_which_does_not_outlive_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PX4_SECONDS", "100")
    instance = fake_px4.free_instance()
    given = [
        f"autopilot.build:={fake_px4.build(tmp_path / 'build')}",
        f"autopilot.work:={tmp_path / 'work'}",
        "autopilot.wipe:=true",
        f"px4.port:={fake_px4.FIRST_PORT + instance}",
        *("px4.timeout:=100.0", "px4.boot_timeout:=100.0"),
    ]
    console = tmp_path / "work" / f"px4_{instance}" / "console.log"
    console.parent.mkdir(parents=True)
    for name in ("console.log", "parameters.bson"):
        (console.parent / name).write_text("of an earlier flight")
    with running("px4", *given) as (process, client):
        process.wait_for(f"cf1: PX4 prints to {console}")
        assert f"cf1: PX4 -i {instance} on TCP" in process.log
        assert not (console.parent / "parameters.bson").exists()
        states = client.listen(Odometry, "cf1/odom")
        tick = client.advance(2 * FREQ)
        assert client.newest(states, tick).pose.pose.position.z > 0.5
        (px4,) = children(process.process.pid)
        process.process.kill()
        process.wait()
        client.until(lambda: not Path(f"/proc/{px4}").exists(), "the end of PX4")


def test_a_build_that_is_absent_or_of_no_autopilot_is_refused(tmp_path: Path) -> None:
    for door, message in (
        ("px4", "autopilot.build: build: .*nowhere has no PX4: there is no .*bin/px4; build PX4"),
        ("betaflight", "autopilot.build: expected nothing, because the door betaflight starts no"),
    ):
        arguments = ["-p", f"door:={door}", "-p", f"autopilot.build:={tmp_path / 'nowhere'}"]
        with RosProcess(
            [sys.executable, "-m", "crazyflow_ros", "--ros-args", *arguments], DOMAIN
        ) as process:
            assert process.wait() == 2
            assert re.search(message, process.log), process.log


def test_a_world_that_hangs_things_from_drones_starts_with_ros2_control() -> None:
    given = ["drones:=[cf0,cf1]", "scene:=carried_bar", "start_paused:=true"]
    control = ["ros2_control.mode:=lock_step", f"ros2_control.shared_memory:=test.{os.getpid()}"]
    with SimulatorProcess(DOMAIN, [*given, *control]) as process:
        assert "[WARN]" not in process.log, process.log
