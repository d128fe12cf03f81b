"""Drones come and go while other programs listen to them, command them and call them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from builtin_interfaces.msg import Duration
from crazyflie_interfaces.srv import GoTo, Takeoff
from geometry_msgs.msg import PoseStamped, TwistStamped
from ros_client import Client, RosProcess, SimulatorProcess, own_domain
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, SpawnEntity
from std_srvs.srv import Trigger

DOMAIN = own_domain("test_drones_that_go")
CYCLES = 12
CRASHES = "9.1.2"
READER = """
import importlib, time
import rclpy
rclpy.init()
node = rclpy.create_node("reader")
known, end = set(), time.monotonic() + 100
while time.monotonic() < end:
    for topic, kinds in node.get_topic_names_and_types():
        if topic not in known:
            known.add(topic)
            package, _, name = kinds[0].split("/")
            kind = getattr(importlib.import_module(f"{package}.msg"), name)
            node.create_subscription(kind, topic, lambda _: None, 10, raw=True)
    rclpy.spin_once(node, timeout_sec=0.05)
"""


@pytest.mark.parametrize(
    ("executor", "ends"), [("EventsExecutor", -signal.SIGSEGV), ("SingleThreadedExecutor", 0)]
)
@pytest.mark.parametrize("program", ["destroyed_publisher.py", "raising_service.py"])
def test_what_ends_an_executor_of_rclpy(program: str, executor: str, ends: int) -> None:
    if ends and version("rclpy") != CRASHES:
        pytest.skip(f"is known of rclpy {CRASHES}, this is {version('rclpy')}")
    command = [sys.executable, str(Path(__file__).with_name(program)), executor]
    assert subprocess.run(command, timeout=100, capture_output=True).returncode == ends


def test_calls_and_commands_for_drones_that_go_are_carried_out_or_refused() -> None:
    chance = random.Random(5)
    with SimulatorProcess(DOMAIN, ["-p", "max_drones:=3"]) as simulator, Client(DOMAIN) as client:
        poses = client.node.create_publisher(PoseStamped, "b/cmd_pose", 10)
        twists = client.node.create_publisher(TwistStamped, "b/cmd_vel", 10)
        readers = [RosProcess([sys.executable, "-c", READER], DOMAIN) for _ in range(3)]
        calls = []
        for _ in range(CYCLES):
            model = Resource(uri="cf2x_L250")
            spawned = client.call(
                SpawnEntity, "crazyflow/spawn_entity", name="b", entity_resource=model
            )
            assert spawned.result.result == 1, spawned.result.error_message
            duration = Duration(sec=1)
            calls += [client.send(Takeoff, "b/takeoff", height=0.5, duration=duration)]
            client.spin_for(chance.uniform(0.0, 0.2))
            deleted = client.send(DeleteEntity, "crazyflow/delete_entity", entity="b")
            for _ in range(5):
                calls += [
                    client.send(GoTo, "b/go_to", duration=duration),
                    client.send(Trigger, "b/reset"),
                ]
                poses.publish(PoseStamped())
                twists.publish(TwistStamped())
            assert client.response(deleted, "delete").result.result == 1
            reader = chance.randrange(len(readers))
            readers[reader].__exit__(None, None, None)  # killed
            readers[reader] = RosProcess([sys.executable, "-c", READER], DOMAIN)
        for call in calls:
            client.response(call, call.service)
        for reader in readers:
            reader.__exit__(None, None, None)
        assert client.call(Trigger, "cf0/reset").success
        log = simulator.log
    bad = [line for line in log.splitlines() if "[ERROR]" in line or "failed" in line]
    assert not bad and "Traceback" not in log, log
