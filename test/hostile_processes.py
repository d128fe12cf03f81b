"""What happens to a simulator's process: part of `make hostile`, and of test_process_faults."""

from __future__ import annotations

import math
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from paths import ROOT
from ros_client import Client, RosProcess, SimulatorProcess, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

DAY = 86_400  # s
PIPED = """
import os, subprocess
reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
for stream in (1, 2):
    os.dup2(reader.stdin.fileno(), stream)
reader.stdin.close()
"""
"""Prelude of a simulator whose output goes through a pipe, which `close_output` closes."""


class JumpingClock:
    """The system's wall clock as the processes see it that are started with `environment`.

    Args:
        folder: For its files.
    """

    def __init__(self, folder: Path) -> None:
        self.environment: dict[str, str] = {}
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            return
        library, self._file = folder / "jumping_clock.so", folder / "jumping_clock"
        source = ROOT / "test" / "jumping_clock.c"
        options = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([compiler, *options, str(source), "-o", str(library), "-ldl"], check=True)
        self._file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Let it be ahead of the machine's by some time [s]; behind if that is negative."""
        if not self.environment:
            pytest.skip("needs a C compiler")
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


def status(client: Client, name: str) -> int:
    """A number that the simulator counts."""
    message = client.latest(DiagnosticArray, "crazyflow/status")
    return int(next(v.value for v in message.status[0].values if v.key == name))


def check_clock(client: Client) -> None:
    """Time goes on, tick by tick."""
    clock = client.collect(Clock, "/clock")
    client.until(lambda: len(clock) > 20, "clock")
    times = np.array([time_ns(message.clock) for message in clock])
    assert set(np.diff(times)) <= {10_000_000}


def check_stop(client: Client, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Stopped for a while, it does not catch up, and says that it was stalled."""
    before = status(client, "stalls")
    clock = client.collect(Clock, "/clock")
    client.until(lambda: clock, "clock")
    process.send_signal(signal.SIGSTOP)
    try:
        client.spin_for(seconds)
    finally:
        process.send_signal(signal.SIGCONT)
    client.until(lambda: status(client, "stalls") > before, "a stall in the status")
    check_clock(client)


def check_clock_jumps(
    client: Client, clock: JumpingClock, topics: Sequence[tuple[type, str]]
) -> None:
    """The wall clock jumps: time goes on, and so does what the node does now and then.

    Args:
        client: A client of the simulator.
        clock: Its clock.
        topics: Types and names of two topics that nobody has subscribed to: that somebody does is
            found out by looking now and then.
    """
    try:
        for seconds, (kind, topic) in zip((DAY, -DAY), topics, strict=True):
            clock.set(seconds)
            check_clock(client)
            client.latest(kind, topic)
            tick = client.pause(True)
            assert client.advance(7) == tick + 7
            client.pause(False)
    finally:
        clock.set(0)
    check_clock(client)


def close_output(simulator: RosProcess) -> None:
    """End the process that reads what a simulator says whose prelude is `PIPED`."""
    pid = simulator.process.pid
    children = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    (reader,) = [
        int(child)
        for child in children.split()
        if Path(f"/proc/{child}/cmdline").read_bytes() == b"cat\0"
    ]
    os.kill(reader, signal.SIGKILL)


def check_closed_output(client: Client) -> None:
    """Nobody reads its warnings of these messages any more: it goes on."""
    wrong = PoseStamped()
    wrong.pose.position.x = math.nan
    before = status(client, "refused_inputs")
    for _ in range(5):
        client.publish("cf0/cmd_pose", wrong)
        tick = client.pause(True)
        assert client.advance(7) == tick + 7
        client.pause(False)
    client.until(
        lambda: status(client, "refused_inputs") >= before + 5, "messages that are refused"
    )
    check_clock(client)


def without_shared_memory() -> list[str]:
    """Words before a command that then finds no room in /dev/shm; skips if that is forbidden."""
    script = (
        "mount -t tmpfs -o size=64k none /dev/shm && "
        '{ head -c 1M /dev/zero > /dev/shm/full 2> /dev/null; exec "$@"; }'
    )
    as_root = ["--map-root-user"] if os.getuid() else []
    words = ["unshare", *as_root, "--mount", "sh", "-c", script, "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this user may not mount a small /dev/shm")
    return words


def full_shared_memory(domain: int) -> None:
    """Without shared memory, ROS would be killed: the simulator says so instead."""
    words = [*without_shared_memory(), sys.executable, "-m", "crazyflow_ros", "--ros-args"]
    with RosProcess(words, domain) as simulator:
        assert simulator.wait() == 2
        assert "/dev/shm has 0 KiB left, expected at least 1024 KiB" in simulator.log


def robbed_and_doubled(domain: int) -> None:
    """Its clock jumps, there is another one of its name, and nobody reads what it says."""
    with TemporaryDirectory() as folder:
        clock = JumpingClock(Path(folder))
        with SimulatorProcess(domain, prelude=PIPED, environment=clock.environment) as simulator:
            client = Client(domain)
            topics = ((Odometry, "cf0/odom"), (JointState, "cf0/joint_states"))
            check_clock_jumps(client, clock, topics)
            with SimulatorProcess(domain, ["-p", "drones:=[twin]"]) as other:
                for process in (simulator, other):
                    process.wait_for(
                        "/clock has 2 publishers (/crazyflow, /crazyflow), so time jumps"
                    )
                for drone in ("cf0", "twin"):
                    client.latest(Odometry, f"{drone}/odom")
                assert other.end()[0] == 0
            client.until(lambda: not client.node.count_publishers("twin/odom"), "one of them")
            close_output(simulator)
            check_closed_output(client)
            client.close()
            assert simulator.end()[0] == 0


FAULTS: dict[str, Callable[[int], None]] = {
    "full /dev/shm": full_shared_memory,
    "jumps of the wall clock, two nodes of one name, closed output": robbed_and_doubled,
}
"""What is done to simulators of a domain, by name."""
