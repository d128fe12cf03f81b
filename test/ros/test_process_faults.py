"""What others do to the simulator's process: floods, deaths, stops, wrong files, late calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from hostile_processes import (
    PIPED,
    JumpingClock,
    check_clock,
    check_clock_jumps,
    check_closed_output,
    check_stop,
    close_output,
    full_shared_memory,
)
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from ros_client import TIMEOUT, Client, RosProcess, SimulatorProcess, own_domain
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from crazyflow_ros.ros.middleware import check_shared_memory

DOMAIN = own_domain("test_process_faults")
FLOOD = 20_000  # messages, sent as fast as a process can: more than 10 000 a second


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> JumpingClock:
    return JumpingClock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def simulator(clock: JumpingClock) -> Iterator[SimulatorProcess]:
    with SimulatorProcess(DOMAIN, prelude=PIPED, environment=clock.environment) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture(scope="module")
def client(simulator: SimulatorProcess) -> Iterator[Client]:
    with Client(DOMAIN) as client:
        client.publish("cf0/cmd_pose", deserialize_message(pose(1.0), PoseStamped))  # it is found
        yield client


def pose(z: float) -> bytes:
    message = PoseStamped()
    message.pose.position.z = z
    return serialize_message(message)


def test_flood_of_commands_ends_with_the_last_one(client: Client) -> None:
    publisher = client.publisher(PoseStamped, "cf0/cmd_pose")
    flood = [pose(z) for z in np.linspace(1.0, 3.0, FLOOD)]
    for message in flood:
        publisher.publish(message)
    begin = client.pause(True)
    assert client.advance(7) == begin + 7
    client.pause(False)
    check_clock(client)
    publisher.publish(pose(0.5))
    client.pause(True)
    poses = client.collect(PoseStamped, "cf0/pose")
    end = client.newest(poses, client.advance(6000)).pose.position
    assert end.z == pytest.approx(0.5, abs=0.05)
    client.pause(False)


SUBSCRIBER = """
import rclpy
from nav_msgs.msg import Odometry
rclpy.init()
node = rclpy.create_node("victim")
node.create_subscription(Odometry, "cf0/odom", lambda _: print("heard", flush=True), 10)
rclpy.spin(node)
"""


def test_subscriber_that_is_killed_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    victim = subprocess.Popen([sys.executable, "-c", SUBSCRIBER], stdout=subprocess.PIPE, text=True)
    try:
        assert victim.stdout is not None and victim.stdout.readline() == "heard\n"
    finally:
        victim.kill()
        victim.communicate(timeout=TIMEOUT)
    check_clock(client)
    begin = client.pause(True)
    assert client.advance(500) == begin + 500
    client.pause(False)


def test_process_that_was_stopped_goes_on_where_it_was(
    client: Client, simulator: SimulatorProcess
) -> None:
    check_stop(client, simulator.process, 1.0)


def test_jumps_of_the_wall_clock_change_nothing(client: Client, clock: JumpingClock) -> None:
    check_clock_jumps(client, clock, ((Odometry, "cf0/odom"), (JointState, "cf0/joint_states")))


def test_output_that_nobody_reads_any_more_changes_nothing(
    client: Client, simulator: SimulatorProcess
) -> None:
    """The last test but one, for now its log ends."""
    close_output(simulator)
    check_closed_output(client)


def test_call_during_the_shutdown_does_not_keep_it(
    client: Client, simulator: SimulatorProcess
) -> None:
    """The last test: a step that would take minutes is under way, and further calls come."""
    client.pause(True)
    assert client.set_parameter("step_ticks", 1_000_000).successful
    service = client.node.create_client(Trigger, "crazyflow/step")
    client.until(service.service_is_ready, "~/step")
    service.call_async(Trigger.Request())
    status = client.collect(DiagnosticArray, "crazyflow/status")
    client.until(lambda: status, "status while it steps")
    simulator.process.send_signal(signal.SIGTERM)
    for _ in range(20):
        service.call_async(Trigger.Request())
    assert simulator.wait(TIMEOUT) == 0
    assert "FATAL" not in simulator.log


# What is wrong with the place where it runs.


def limited(limits: str, *arguments: str, cache: Path | None = None) -> RosProcess:
    """A simulator whose shell has done something before."""
    command = [sys.executable, "-m", "crazyflow_ros", "--ros-args", *arguments]
    shell = ["sh", "-c", f'{limits}; exec "$@"', "sh", *command]
    return RosProcess(shell, DOMAIN, None if cache is None else {"XDG_CACHE_HOME": str(cache)})


def test_no_home_few_files_an_open_cache_and_a_full_disk_do_not_keep_it_from_flying(
    tmp_path: Path,
) -> None:
    """All at once; each is named once."""
    cache = tmp_path / "crazyflow_ros"
    cache.mkdir()
    cache.chmod(0o770)  # from where others could have it run their code
    (tmp_path / "folder").mkdir()
    arguments = [f"checkpoint_folder:={tmp_path}", "checkpoint:=folder", "record:=/dev/full"]
    arguments += ["dynamics:=so_rpy", "control:=attitude"]  # it compiles, and these soonest
    parameters = [word for argument in arguments for word in ("-p", argument)]
    limits = "unset HOME ROS_HOME ROS_LOG_DIR; ulimit -n 64"
    with limited(limits, *parameters, cache=tmp_path) as simulator:
        simulator.wait_for("ready: ").wait_for("the simulation continues")
        client = Client(DOMAIN)
        check_clock(client)
        saved = client.call(Trigger, "crazyflow/save_checkpoint")
        assert not saved.success and f"not a regular file: '{tmp_path}/folder'" in saved.message
        status = client.latest(DiagnosticArray, "/diagnostics").status[0]
        said = {value.key: value.value for value in status.values}
        assert "No space left on device" in said["record_error"] and status.level == b"\x01"
        check_clock(client)
        client.close()
        assert simulator.end()[0] == 0
        log = simulator.log
    assert not list(cache.iterdir())
    for expected in (
        "cannot write logs to",
        f"the compilation cache {cache} is writable for others and is not used",
        "record: writing /dev/full failed, the simulation continues: [Errno 28]",
    ):
        assert log.count(expected) == 1, log
    assert "Traceback" not in log


def test_too_few_addresses_are_named_instead_of_an_abort() -> None:
    with limited("ulimit -v 1000000") as simulator:
        assert simulator.wait() == 2
        assert "address space limit is 976 MiB (ulimit -v), expected" in simulator.log
        assert "Traceback" not in simulator.log


def test_no_room_for_ros_in_shared_memory_is_named() -> None:
    full_shared_memory(DOMAIN)


def test_shared_memory_without_a_limit_is_room_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a tmpfs reports that it has no blocks at all."""
    found = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    check_shared_memory()


INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))
sys.meta_path.insert(0, Finder())
from crazyflow_ros.__main__ import main
main([])
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("module", ["rclpy.executors", "crazyflow_ros.ros.middleware"])
def test_signal_during_the_imports_ends_it_without_a_word(number: str, module: str) -> None:
    with RosProcess([sys.executable, "-c", INTERRUPTED, module, number], DOMAIN) as process:
        assert process.wait() == 0
        assert process.log == ""
