"""Programs of ROS in simulated time: the same flight each time, for crazyswarm2's way of waiting.

With CRAZYSWARM2, see `test_crazyswarm2`, its own examples fly, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from crazyswarm import configuration
from ros_client import own_domain

from benchmark.crazyswarm import CHECKOUT
from benchmark.scripts import CRAZYSWARM, crazyswarm

DOMAIN = own_domain(__name__)
QUICK = ("goto_unicast",)
T = 600.0  # s

HEAD = """
import threading, time
import rclpy
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from crazyflie_interfaces.msg import FullState
from crazyflie_interfaces.srv import Land, Takeoff
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
rclpy.init()
node = rclpy.create_node("program")
def now(): return node.get_clock().now().nanoseconds / 1e9
def sleep(duration):
    '''As crazyswarm2's TimeHelper does.'''
    end = now() + duration
    while now() < end: rclpy.spin_once(node, timeout_sec=0)
def service(kind, name):
    client = node.create_client(kind, name)
    assert client.wait_for_service(30.0), name
    return client
"""

PROGRAM = (
    HEAD
    + """
poses, ticks = [], []
def see(message):
    poses.append((message.header.stamp.sec + message.header.stamp.nanosec * 1e-9,
                  message.pose.position.x, message.pose.position.y, message.pose.position.z))
node.create_subscription(PoseStamped, "/cf1/pose", see, 10)
publisher = node.create_publisher(FullState, "/cf1/cmd_full_state", 1)
takeoff, land = service(Takeoff, "/all/takeoff"), service(Land, "/cf1/land")
begin = now()

# Nobody waits for the answers.
takeoff.call_async(Takeoff.Request(height=1.0, duration=Duration(seconds=2.0).to_msg()))
sleep(2.5)
assert 2.5 <= now() - begin < 2.51, now() - begin
assert [round(stamp * 10) for stamp, *_ in poses] == [*range(1, 26)], poses

# A loop of 100 Hz, and a timer of 20 Hz.
node.create_timer(0.05, lambda: ticks.append(now()))
message, next_time = FullState(), now()
message.pose.orientation.w, message.pose.position.z = 1.0, 1.0
for i in range(200):
    message.pose.position.x = 0.5 * min(1.0, i / 100)
    publisher.publish(message)
    next_time += 0.01
    while now() < next_time: rclpy.spin_once(node, timeout_sec=0)
assert len(ticks) == 40 and all(round((b - a) * 1e3) == 50 for a, b in zip(ticks, ticks[1:])), ticks

# Waiting for an answer, with and without callbacks, and in Python's own ways.
setting = service(SetParameters, "/crazyflie_server/set_parameters")
value = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=3)
request = SetParameters.Request(parameters=[Parameter(name="cf1.params.led.bitmask", value=value)])
before, future = now(), setting.call_async(request)
rclpy.spin_until_future_complete(node, future, timeout_sec=5.0)
assert future.result().results[0].successful and now() - before < 0.05
before = now()
rclpy.spin_until_future_complete(node, rclpy.task.Future(), timeout_sec=0.25)
assert 0.25 <= now() - before < 0.26
node.get_clock().sleep_for(Duration(seconds=0.5)); assert 0.75 <= now() - before < 0.77
time.sleep(0.25); assert 1.0 <= now() - before < 1.02

# Another thread that spins.
other = Node("other")
def spin():
    executor = SingleThreadedExecutor()
    executor.add_node(other)
    executor.spin()
rate = other.create_rate(10.0)
heard = []
other.create_subscription(PoseStamped, "/cf1/pose", lambda m: heard.append(m.header.stamp), 10)
threading.Thread(target=spin, daemon=True).start()
for _ in range(10): rate.sleep()
assert 9 <= len(heard) <= 11, len(heard)
land.call_async(Land.Request(height=0.02, duration=Duration(seconds=1.5).to_msg()))
time.sleep(3.0)
print(len(poses), poses[-1], heard, round(now(), 3))
"""
)


RARELY = (
    HEAD
    + """
from crazyflie_interfaces.msg import Status
seen = []
node.create_subscription(Status, "/cf1/status", lambda m: seen.append((m.header.stamp, now())), 10)
publisher = node.create_publisher(FullState, "/cf1/cmd_full_state", 1)
other = node.create_publisher(FullState, "other", 1)
def wait(duration):
    end = now() + duration
    while now() < end:
        if TALKS: other.publish(FullState())  # which nobody hears, but the simulator is asked
        rclpy.spin_once(node, timeout_sec=0)
takeoff = service(Takeoff, "/all/takeoff")
takeoff.call_async(Takeoff.Request(height=1.0, duration=Duration(seconds=2.0).to_msg()))
wait(4.333)
message = FullState()
message.pose.orientation.w, message.pose.position.z = 1.0, 1.0
message.pose.position.x = 0.4
publisher.publish(message)
wait(0.45)
late = [at - stamp.sec - stamp.nanosec * 1e-9 for stamp, at in seen]
assert len(seen) >= 4 and 0.0 <= min(late) and max(late) < (0.011 if TALKS else 0.111), late
print("ends", now())
"""
)


@dataclass
class Done:
    code: int
    text: str
    ends: list[str]


def fly(folder: Path, program: str) -> Done:
    """Let a program fly two drones."""
    content = configuration("cf1", "cf2")
    content["robots"]["cf2"]["uri"] = "radio://0/80/2M/E7E7E7E705"  # by which `swap` knows it
    (folder / "crazyflies.yaml").write_text(yaml.safe_dump(content))
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "crazyflow_ros", "crazyflie-server", "--lock-step"]
    done = subprocess.run(
        [
            *(*command, "--ros-args", "-p", f"crazyflies_yaml_file:={folder}/crazyflies.yaml"),
            *("--", sys.executable, str(folder / "program.py")),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=T,
        env={**os.environ, "ROS_DOMAIN_ID": str(DOMAIN)},
    )
    ends = re.findall(r"(cf\w+ ended at .*)", done.stdout)
    return Done(done.returncode, done.stdout, ends)


def test_a_program_flies_the_same_way_each_time(tmp_path: Path) -> None:
    first, second = (fly(tmp_path, PROGRAM) for _ in range(2))
    assert first.code == 0, first.text
    assert len(first.ends) == 2 and first.ends == second.ends
    said = [re.findall(r"^\d+ \(.*", done.text, re.MULTILINE) for done in (first, second)]
    assert said[0] == said[1] and len(said[0]) == 1, said
    x, _, z = map(float, re.findall(r"[-\d.e]+", first.ends[0].partition(" at ")[2])[:3])
    assert x == pytest.approx(0.5, abs=0.1) and z < 0.05


@pytest.mark.soak
def test_a_program_that_hears_little_asks_rarely_and_commands_at_once(tmp_path: Path) -> None:
    """Between two messages of 1 Hz, the simulator is some ticks behind until it is needed."""
    rare, often = (fly(tmp_path, f"TALKS = {talks}\n{RARELY}") for talks in (False, True))
    assert rare.code == often.code == 0, rare.text + often.text
    assert len(rare.ends) == 2 and rare.ends == often.ends
    ends = re.search(r"^ends (.*)", rare.text, re.MULTILINE)
    took = re.search(r"([\d.]+) s of simulated time", rare.text)
    assert ends and took and float(took[1]) == pytest.approx(float(ends[1]), abs=0.011)
    assert 0.1 < float(rare.ends[0].partition(" at ")[2].split(",")[0]) < 0.4  # on its way


def test_a_program_that_fails_ends_the_simulator_with_its_code(tmp_path: Path) -> None:
    done = fly(tmp_path, HEAD + "sleep(1.0)\nimport sys\nsys.exit(7)")
    assert done.code == 7 and "1.008 s of simulated time" in done.text, done.text


@pytest.mark.parametrize("command", [["crazyflie-server"], []])
def test_a_program_that_is_missing_is_asked_for(command: list[str]) -> None:
    words = [sys.executable, "-m", "crazyflow_ros", *command, "--lock-step"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=T)
    assert done.returncode == 2
    assert "--lock-step needs a program, at the end: -- python script.py" in done.stderr


@pytest.mark.skipif(
    CHECKOUT not in os.environ, reason=f"{CHECKOUT} names no checkout of crazyswarm2"
)
@pytest.mark.skipif(find_spec("rowan") is None, reason="crazyflie_py needs the package rowan")
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in CRAZYSWARM],
)
def test_an_example_of_crazyswarm2_ends_at_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As `python -m benchmark.scripts crazyswarm2` flies them."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    first, second = (crazyswarm(name, tmp_path / i) for i in "12")
    assert first.code == second.code == 0, first.text
    assert len(first.ends) == 2 and first.ends == second.ends
