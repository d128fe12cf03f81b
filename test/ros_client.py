"""The simulator as a process of its own, and a client of it, for tests."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import rclpy
from paths import ROOT
from rcl_interfaces.srv import ListParameters, SetParameters
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.client import Session

FREQ = 500  # Hz, the default
COMMAND = "CRAZYFLOW_SIMULATOR"
"""Variable with the command of the simulator, if this Python cannot run it."""
READY_TIMEOUT = 300.0  # s, a machine may be slow and busy
TIMEOUT = 60.0  # s
_PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE"
_NUMBERS = itertools.count()
_BLOCK, _N_BLOCKS = 4, 25  # domains from 1 to 100, whose ports are free on any machine
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
EVERYTHING = QoSProfile(depth=1000)

os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


@cache
def _own_block() -> tuple[int, IO[str]]:
    """A block of domains that no other process of tests has, and the lock that is kept on it.

    Raises:
        RuntimeError: All are taken.
    """
    for block in range(_N_BLOCKS):
        path = Path(tempfile.gettempdir()) / f"crazyflow_ros_{os.getuid()}_domains_{block}.lock"
        lock = path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return block, lock
    raise RuntimeError(f"{_N_BLOCKS} processes of tests use ROS domains already")


def own_domain(name: str) -> int:
    """A ROS domain for one module of tests, which no other process of tests uses meanwhile.

    With the domain of another run each would see, and stop, the other's simulator.
    """
    block, _ = _own_block()
    return 1 + block * _BLOCK + sum(name.encode()) % _BLOCK


def time_ns(stamp: Any) -> int:
    """Nanoseconds of a time message."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def stamp_ns(tick: int) -> int:
    """Simulation time of a tick [ns]."""
    return tick * 1_000_000_000 // FREQ


def tick_of(response: Any) -> int:
    """The tick at which a service says it is done; it has to succeed."""
    assert response.success, response.message
    found = re.search(r"at tick (\d+)", response.message)
    assert found, response.message
    return int(found[1])


def numbers(message: Any) -> np.ndarray:
    """x, y, z, and w if there is one, of a message."""
    return np.array([getattr(message, name) for name in "xyzw" if hasattr(message, name)])


@contextmanager
def _usual_signals() -> Iterator[None]:
    """Processes that are started within do not inherit that signals are ignored.

    As they are in the background of a shell, from which somebody may run the tests.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGINT, signal.SIGTERM)
    ignored = [number for number in ends if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


class RosProcess:
    """A process in a ROS domain; as a context manager, it ends with the block.

    Args:
        command: What to run.
        domain: ROS domain.
        environment: Beside that of this process.
        stdin: File from which it reads; by default that of this process.
        folder: In which it works.
    """

    def __init__(
        self,
        command: Sequence[str],
        domain: int,
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
        folder: Path = ROOT,
    ) -> None:
        self._file = tempfile.NamedTemporaryFile(mode="r", errors="replace")  # noqa: SIM115
        with _usual_signals():
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=self._file.fileno(),
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, "ROS_DOMAIN_ID": str(domain), **(environment or {})},
            )

    @property
    def log(self) -> str:
        """What it has written so far."""
        # The process shares the place in our open file: to read there would move where it writes.
        return Path(self._file.name).read_text(errors="replace")

    @property
    def memory(self) -> float:
        """That it uses now [MB]."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1024

    def wait_for(self, text: str, timeout: float = READY_TIMEOUT) -> Self:
        """Wait until the log has a text."""
        deadline = time.monotonic() + timeout
        while text not in self.log:
            assert self.process.poll() is None, f"ended without {text!r}:\n{self.log}"
            assert time.monotonic() < deadline, f"no {text!r} within {timeout} s:\n{self.log}"
            time.sleep(0.02)
        return self

    def wait(self, timeout: float = READY_TIMEOUT) -> int:
        """Exit code, once it has ended by itself."""
        return self.process.wait(timeout)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Exit code after a signal, and how long it took [s]."""
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            return self.process.wait(TIMEOUT), time.monotonic() - began
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {TIMEOUT} s:\n{self.log}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if error is not None:
            print(self.log)
        self._file.close()


def _words(arguments: Sequence[str]) -> list[str]:
    """Arguments of ROS, where parameters may stand without their `-p`."""
    after_option = [False, *(word.startswith("-") for word in arguments)]
    return [
        each
        for word, is_value in zip(arguments, after_option)
        for each in (("-p", word) if ":=" in word and not is_value else (word,))
    ]


class SimulatorProcess(RosProcess):
    """A running simulator.

    Args:
        domain: ROS domain.
        arguments: After `--ros-args`; parameters may stand without their `-p`.
        prelude: Python code to run before.
        cache: Folder of caches; by default all of a test run share one.
        environment: Beside that of this process.
        ready_timeout: Time to wait until it is ready [s].
        folder: In which it works.
    """

    def __init__(
        self,
        domain: int,
        arguments: Sequence[str] = (),
        prelude: str = "",
        cache: str = "",
        environment: Mapping[str, str] | None = None,
        ready_timeout: float = READY_TIMEOUT,
        folder: Path = ROOT,
    ) -> None:
        self._ready_timeout = ready_timeout
        command = shlex.split(os.environ.get(COMMAND, f"{sys.executable} -m crazyflow_ros"))
        if prelude:
            script = f"{prelude}\nfrom crazyflow_ros.ros.process import main\nmain()"
            command = [sys.executable, "-c", script]
        cached = {"XDG_CACHE_HOME": cache} if cache else {}
        variables = {**cached, **(environment or {})}
        super().__init__(
            [*command, "--ros-args", *_words(arguments)], domain, variables, folder=folder
        )

    def __enter__(self) -> Self:
        try:
            return self.wait_for("ready: ", self._ready_timeout)
        except AssertionError as error:
            self.__exit__(type(error), error, None)
            raise


@contextmanager
def _fast_heartbeats() -> Iterator[None]:
    """A first participant that is made within reads their period, for all of this process.

    Not so processes that it starts: a simulator has settings of its own.
    """
    given = os.environ.get(_PROFILES)
    os.environ[_PROFILES] = given or str(ROOT / "test" / "heartbeats.xml")
    try:
        yield
    finally:
        if given is None:
            del os.environ[_PROFILES]


class Client(Session):
    """A node in this process, with what is needed to look at a simulator.

    Args:
        domain: ROS domain.
        namespace: Namespace of the node.
        simulator: Name of the simulator's node.
        check: See `Session`.
    """

    def __init__(
        self,
        domain: int,
        namespace: str = "/",
        simulator: str = "crazyflow",
        check: Callable[[], object] = lambda: None,
    ) -> None:
        with _fast_heartbeats():
            super().__init__(f"client_{next(_NUMBERS)}", namespace, domain=domain, check=check)
        self._simulator = simulator
        self._collected: dict[str, list[Any]] = {}
        self._publishers: dict[str, Publisher] = {}

    def until(self, condition: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
        """Run callbacks until a condition holds; returns it."""
        return self.wait(condition, what, timeout)

    def collect(self, kind: Any, topic: str, qos: QoSProfile = EVERYTHING) -> list[Any]:
        """A list that grows with the messages of a topic from now on."""
        if topic not in self._collected:
            self._collected[topic] = []
            self.node.create_subscription(kind, topic, self._collected[topic].append, qos)
            self.until(lambda: self.node.count_publishers(topic), f"publisher of {topic}")
        elif qos is EVERYTHING:
            self._collected[topic].clear()
        return self._collected[topic]

    def listen(self, kind: Any, topic: str) -> list[Any]:
        """As `collect`, from a simulator that stands still: nothing is missed from now on.

        It shows its present state to each new subscription that it has found.
        """
        is_new = topic not in self._collected
        messages = self.collect(kind, topic)
        if is_new:
            self.until(lambda: messages, f"message on {topic}")
        return messages

    def latest(self, kind: Any, topic: str) -> Any:
        """One new message of a topic."""
        messages = self.collect(kind, topic)
        return self.until(lambda: messages and messages[-1], f"message on {topic}")

    def publisher(self, kind: Any, topic: str) -> Publisher:
        """The publisher of a topic, which has found its subscriber."""
        if topic not in self._publishers:
            self._publishers[topic] = self.node.create_publisher(kind, topic, 10)
        publisher = self._publishers[topic]
        self.until(publisher.get_subscription_count, f"subscriber of {topic}")
        return publisher

    def forget(self, prefix: str) -> None:
        """Destroy the publishers whose names begin so."""
        for name in [name for name in self._publishers if name.startswith(prefix)]:
            self.node.destroy_publisher(self._publishers.pop(name))

    def publish(self, topic: str, message: Any) -> None:
        """Publish one message, and wait until it has arrived.

        The first one of a publisher may come seconds late: until its reader has found it, too,
        what it sends is dropped, and sent again with the next heartbeat. What is asked of the
        simulator afterwards reaches it later.
        """
        publisher = self.publisher(type(message), topic)
        publisher.publish(message)
        arrived = publisher.wait_for_all_acked(Duration(seconds=TIMEOUT))
        assert arrived, f"message on {topic}: not received within {TIMEOUT} s"

    def call(self, kind: Any, name: str, /, timeout: float = READY_TIMEOUT, **request: Any) -> Any:
        """Response of a service."""
        return super().call(kind, name, timeout, **request)

    def send(self, kind: Any, name: str, /, **request: Any) -> Any:
        """Future of the response of a service, which has been sent the request."""
        call = self.call_async(kind, name, READY_TIMEOUT, **request)
        self.until(lambda: call.is_sent or call.done(), f"service {name}", READY_TIMEOUT)
        return call

    def response(self, future: Any, what: str, timeout: float = TIMEOUT) -> Any:
        """Result of a future."""
        self.until(future.done, f"response of {what}", timeout)
        return future.result()

    def pause(self, paused: bool) -> int:
        """Call ~/pause, which has to succeed; returns the tick."""
        return tick_of(self.call(SetBool, "crazyflow/pause", data=paused))

    def pass_time(self, seconds: float) -> None:
        """Run callbacks until time has run on by so much in the simulation."""
        clock = self.collect(Clock, "/clock")
        end = time_ns(self.until(lambda: clock[-1:], "clock")[0].clock) + round(seconds * 1e9)
        self.until(lambda: time_ns(clock[-1].clock) > end, f"{seconds} s in the simulation")

    def advance(self, ticks: int) -> int:
        """Let the paused simulation advance; returns the tick."""
        assert self.set_parameter("step_ticks", ticks).successful
        return tick_of(self.call(Trigger, "crazyflow/step"))

    def newest(self, messages: list[Any], tick: int) -> Any:
        """The message of a tick, from a list that `collect` fills."""
        stamp = stamp_ns(tick)

        def find() -> Any:
            return next((m for m in reversed(messages) if time_ns(m.header.stamp) == stamp), None)

        return self.until(find, f"message of tick {tick}")

    def reset(self) -> int:
        """Call ~/reset, which has to succeed; returns the tick."""
        return tick_of(self.call(Trigger, "crazyflow/reset"))

    def set_parameter(self, name: str, value: Any) -> Any:
        """Set a parameter of the simulator: successful, reason."""
        message = rclpy.Parameter(name, value=value).to_parameter_msg()
        service = f"{self._simulator}/set_parameters"
        return self.call(SetParameters, service, parameters=[message]).results[0]

    def parameter_names(self) -> list[str]:
        """Names of the simulator's parameters."""
        return list(self.call(ListParameters, f"{self._simulator}/list_parameters").result.names)
