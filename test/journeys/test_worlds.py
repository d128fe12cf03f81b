"""Journeys of a world builder, an integrator and a recorder, as they would go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_processes import command
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from ros_client import own_domain, time_ns
from sensor_msgs.msg import Image, JointState
from tf2_msgs.msg import TFMessage

from crazyflow_ros.client import SimulationError, SimulatorClient
from journeys.lives import OWN_OBJECTS, OWN_WORLDS
from journeys.log import simulator
from journeys.pilot import fly
from journeys.sides import Fork

DOMAIN = own_domain("test_journeys_worlds")
CAMERAS = {
    "eye": ("[rgb]", "eye/image_raw"),
    "depth": ("[depth]", "depth/depth/image_raw"),
    "labels": ("[segmentation]", "labels/segmentation/image_raw"),
}


@pytest.fixture(autouse=True)
def own_ros_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of scripts in this process."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))


def sensors_file(path: Path, **entries: str) -> str:
    """The parameter that names a file of sensors."""
    every = {name: yaml.safe_load(entry) for name, entry in entries.items()}
    path.write_text(yaml.safe_dump({"all": every}))
    return f"sensors:={path}"


def test_a_world_builder_changes_worlds_while_cameras_look_on(tmp_path: Path) -> None:
    camera = "{{type: camera, rate: 10, width: 64, height: 48, renderer: rays, data_types: {}}}"
    entries = {name: camera.format(kinds) for name, (kinds, _) in CAMERAS.items()}
    sensors = sensors_file(tmp_path / "sensors.yaml", **entries)
    parameters = ("drones:=[cf0]", "scene:=room", sensors, "max_drones:=2")
    for name, text in OWN_WORLDS.items():
        (tmp_path / f"{name}.xml").write_text(text)
    with simulator(DOMAIN, *parameters), SimulatorClient() as simulation:
        seen: dict[str, list[Image]] = {}
        for name, (_, topic) in CAMERAS.items():
            seen[name] = []
            simulation.node.create_subscription(Image, f"cf0/{topic}", seen[name].append, 5)

        def look() -> dict[str, np.ndarray]:
            """A picture of each camera, from now on."""
            simulation.resume()
            simulation.look_at_time()
            now = simulation.time_ns
            for pictures in seen.values():  # those of the world before have later times
                pictures.clear()

            def latest(pictures: list[Image]) -> Image | None:
                fresh = [one for one in pictures if time_ns(one.header.stamp) >= now]
                return fresh[-1] if fresh else None

            simulation.wait(lambda: all(map(latest, seen.values())), "no new pictures", 300.0)
            found = {name: latest(pictures) for name, pictures in seen.items()}
            return {name: np.frombuffer(image.data, np.uint8) for name, image in found.items()}

        pictures = {"room": look()}
        for world in ("lawn", "yard", "wood"):
            simulation.world.load(str(tmp_path / f"{world}.xml"))
            pictures[world] = look()
        rooms = [list(pictures)[i : i + 2] for i in range(3)]
        for camera in ("eye", "labels"):
            assert all((pictures[a][camera] != pictures[b][camera]).any() for a, b in rooms)
        before = pictures["wood"]["labels"]
        ball = str(tmp_path / "ball.xml")
        Path(ball).write_text(OWN_OBJECTS["ball"])
        simulation.world.spawn("ball", 1.0, 0.0, 0.1, model=ball)
        assert (look()["labels"] != before).any()
        simulation.world.remove("ball")
        assert (look()["labels"] == before).all()
        simulation.world.unload()
        with pytest.raises(SimulationError, match="no world is loaded"):
            simulation.resume()
        simulation.world.load("room")
        assert (look()["labels"] == pictures["room"]["labels"]).all()
        simulation.reset()
        look()


def test_an_integrator_runs_controllers_in_lock_step_beside_sensors_and_rviz(
    tmp_path: Path,
) -> None:
    memory = f"journeys.{tmp_path.name}"
    sensors_file(tmp_path / "sensors.yaml", scan="{type: lidar, rate: 10, samples: 30}")
    file = tmp_path / "parameters.yaml"
    parameters: dict[str, Any] = {
        "drones": ["cf0", "cf1"],
        "door_drones": ["cf1"],
        "sensors": str(tmp_path / "sensors.yaml"),
        "ros2_control.mode": "lock_step",
        "ros2_control.shared_memory": memory,
        "ros2_control.timeout": 60.0,
        "real_time_factor": 5.0,
    }
    file.write_text(yaml.safe_dump({"crazyflow": {"ros__parameters": parameters}}))
    warns = [r"cf1: its controller manager, process \d+, died; it is held where it is"]
    more = "--params-file", str(file)
    with simulator(DOMAIN, warns=warns, more=more), SimulatorClient() as simulation:
        node = simulation.node
        heard: dict[str, list[Any]] = {}
        for kind, topic in (
            (TFMessage, "/tf"),
            (JointState, "cf1/joint_states"),
            (Odometry, "cf1/odom"),
        ):
            heard[topic] = []
            node.create_subscription(kind, topic, heard[topic].append, 100)
        manager = Fork(fly, memory, "cf1", 0.7)
        try:
            simulation.drone("cf0").takeoff(1.0)
            height = simulation.world.poses
            simulation.wait(lambda: abs(height()["cf1"].position.z - 0.7) < 0.05, "it is not up")
            simulation.pause()
            simulation.look_at_time()
            before = simulation.time_ns
            simulation.step(123)
            assert simulation.time_ns == before + 123 * 2_000_000
            assert abs(height()["cf1"].position.z - 0.7) < 0.05
            simulation.resume()
            simulation.drone("cf0").reset()
            simulation.drone("cf0").takeoff(0.5)
            frames = {edge.child_frame_id for m in heard["/tf"] for edge in m.transforms}
            assert {"cf0/base_link", "cf1/base_link"} <= frames
            assert heard["cf1/joint_states"] and not manager.problem()
            simulation.drone("cf0").land()
        finally:
            manager.kill()
        simulation.wait(lambda: not simulation.status().values["controlled_drones"], "it is gone")
        simulation.sleep(1.0)  # it holds its place, and time goes on


def test_a_recorder_keeps_what_happens_while_the_world_changes(tmp_path: Path) -> None:
    own, topics = tmp_path / "own.mcap", tmp_path / "topics.mcap"
    parameters = ("drones:=[cf0]", f"record:={own}", "max_drones:=2", "real_time_factor:=5.0")
    with simulator(DOMAIN, *parameters), SimulatorClient() as simulation:
        started = command(f"record start {topics}")
        assert started.returncode == 0, started.stderr
        simulation.drone("cf0").takeoff(0.8)
        simulation.world.spawn("guest", 2.0, 0.0)
        simulation.drone("guest").takeoff(0.5)
        simulation.world.load("race_track")
        simulation.resume()
        simulation.drone("cf0").takeoff(0.6)
        simulation.world.remove("gate3")
        simulation.drone("cf0").land()
        stopped = command("record stop")
        assert re.search(r"[1-9]\d* messages in ", stopped.stdout), stopped
    assert command(f"replay {own}").returncode == 0
    refused = command(f"replay {topics}")
    assert refused.returncode == 2 and "Traceback" not in refused.stderr, refused
    for path in (own, topics):
        with path.open("rb") as file:
            channels = make_reader(file).get_summary().channels.values()
            assert {"/cf0/odom", "/guest/odom", "/clock"} <= {one.topic for one in channels}
