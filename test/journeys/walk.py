"""A walk: steps, one after the other, across the features of simulators that live and end."""

from __future__ import annotations

import math
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Any, Self

from command_processes import environment
from ports import free_ports
from rclpy.action import ActionClient
from rclpy.duration import Duration
from ros_client import Client, SimulatorProcess, time_ns
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import GetEntitiesStates, ResetSimulation, SetSimulationState

from crazyflow_ros.client import SimulationError
from crazyflow_ros.client.service_calls import problem_of
from journeys.lives import Life, write_worlds
from journeys.log import is_repeated, unexpected
from journeys.model import BODIES, Model
from journeys.sides import Sides
from journeys.step import KINDS, Broken, Step, names_of
from journeys.time_steps import Begin
from journeys.usage import Usage
from journeys.watch import Watch, check_clock

ARRIVAL = Duration(seconds=1)
"""Wall time in which a message should have arrived; a reader that was killed may delay that."""
READY = 300.0  # s, of a machine that is busy and compiles
COMPILING = 300.0  # s
PROGRAM = 300.0  # s of wall time
GRACE = 20.0  # s
COMPILES = 60.0  # s of wall time that it may take to compile what the log announces
_COMPILES = re.compile(r"compiling|preparing|prepared|draws with")
SHRINKS = 60.0  # s of wall time
WARM_UP = 40
"""Steps of a life after which it may not use more: what is used for the first time is compiled."""


class Walk:
    """Takes steps, and compares the simulator with a model after each.

    Args:
        folder: For files.
        domain: ROS domain.
        told: Hears each step.
    """

    def __init__(self, folder: Path, domain: int, told: Callable[[str], object] = print) -> None:
        self.folder, self.domain, self._told = folder, domain, told
        self.client = Client(domain, check=self.check_process)
        self.node: SimulatorProcess | None = None
        self.model, self.life = Model(), Life()
        self.sides = Sides(domain)
        self.steps: ActionClient | None = None
        self.browser: Any = None
        self.port = 0
        self.taken: list[Step] = []
        self.counts = Counter[str]()
        self._lives, self._read = 0, 0
        self._watch: Watch | None = None
        self._ends = False
        self._usage: Usage | None = None
        self._warm = 0  # number of the step from which the simulator may not use more
        self._compiles = -math.inf  # since when, by the monotonic clock
        self._rewinds, self._began = 0, 0.0
        self._expected = set[str]()  # warnings of this life that the model expected
        write_worlds(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.sides.close()
        finally:
            if self.node is not None:
                self._ends = True
                if self.node.process.poll() is None:
                    self.node.process.terminate()  # by which it keeps what it has compiled
                    with suppress(subprocess.TimeoutExpired):
                        self.node.process.wait(GRACE)
                self.node.__exit__(kind, None, None)
                self.node = None
            self.client.close()

    # The simulator's process

    def begin(self, life: Life) -> None:
        """Start a simulator, after the end of the one before."""
        self._lives += 1
        self.life = life
        self.model = Model(
            life.drones(), objects=set(BODIES[life.world]), world=life.world, factor=life.factor
        )
        self._read, self._usage, self._rewinds = 0, None, 0
        self._warm = len(self.taken) + WARM_UP
        self._expected.clear()
        self._compiles, self._began = -math.inf, time.monotonic()
        # The one before has clients of services that are not there in this life.
        self.client.close()
        self.client, self.steps = Client(self.domain, check=self.check_process), None
        self.port = free_ports(8)
        arguments = life.parameters(self.folder, self.name, self.port)
        node = SimulatorProcess(self.domain, arguments, ready_timeout=READY)
        try:
            self.node = node.__enter__()
        except AssertionError as error:
            raise Broken("the simulator does not start", str(error)) from None
        self._watch = Watch(self.client)

    @property
    def name(self) -> str:
        """Of the present life, for files."""
        return f"life{self._lives}"

    @property
    def recording(self) -> Path:
        """File of the present life, if it records."""
        return self.folder / f"{self.name}.mcap"

    def end(self, how: str) -> None:
        """End the simulator, and check what it leaves.

        Args:
            how: Name of a signal, or `quit`: by its service.
        """
        assert self.node is not None and self._watch is not None
        node, watch = self.node, self._watch
        watch.close()
        self._watch, self._ends = None, True
        try:
            if how == "quit":
                state = SimulationState(state=SimulationState.STATE_QUITTING)
                self.ask(SetSimulationState, "crazyflow/set_simulation_state", state=state)
                code, expected = node.wait(), 0
            else:
                code, _ = node.end(signal.Signals[how])
                expected = -signal.SIGKILL if how == "SIGKILL" else 0
            if code != expected:
                raise Broken(f"the simulator ends with {code}", self.tail())
            self.check_log()
        finally:
            self._ends = False
        self.sides.after_a_life()
        self.node = None
        node.__exit__(None, None, None)
        self.check_recording(how)

    def check_recording(self, how: str) -> None:
        """See that the recording of the present life, if there is one, replays to the bit."""
        if not self.life.records:
            return
        lasted = time.monotonic() - self._began
        replay = "-m", "crazyflow_ros", "replay", str(self.recording)
        done = self.run(*replay, patience=PROGRAM + 3 * lasted)
        if done.returncode != (2 if self.life.by_door else 0):
            raise Broken(f"replay ends with {done.returncode}", done.stdout + done.stderr)
        if how != "SIGKILL":  # after which the file has no index
            check_clock(self.recording, self._rewinds)
        self.recording.unlink()

    def run(self, *words: str, patience: float = PROGRAM) -> subprocess.CompletedProcess[str]:
        """Run Python to its end, for at most some time [s]."""
        try:
            return subprocess.run(
                [sys.executable, *words],
                env=environment(self.domain),
                timeout=patience,
                text=True,
                capture_output=True,
                check=False,
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as error:
            text = f"{words}: {error.stdout!r}\n{error.stderr!r}"
            raise Broken("a program hangs", text) from None

    def check_process(self) -> None:
        """Check that the simulator lives.

        Raises:
            Broken: It has ended.
        """
        if self.node is not None and not self._ends and self.node.process.poll() is not None:
            code = self.node.process.returncode
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Broken(f"the simulator died: {how}", self.tail())

    def check_log(self) -> None:
        """Read what the log says since the last time.

        Raises:
            Broken: It has a line that the model does not expect.
        """
        assert self.node is not None
        new = self.node.log[self._read :]
        if not self._ends:  # the last line may not be whole
            new = new[: new.rfind("\n") + 1]
        self._read += len(new)
        lines = new.splitlines()
        for number, line in enumerate(lines):
            if _COMPILES.search(line):
                self.forget_usage()
            if "compiling" in line:
                self._compiles = time.monotonic()
            if unexpected(line, partial(self._has_reason, line)):
                what = _without_numbers(re.sub(r"^\[(\w+)\] \[[\d.]+\] \[\w+\]", r"\1", line))
                raise Broken(f"the log says {what!r}", "\n".join(lines[number : number + 40]))

    def _has_reason(self, line: str, text: str) -> bool:
        """Whether the model expects a warning, or expected the one that a line counts again."""
        kind = re.sub(r"-?\d+\.\d+", "#", text)  # without places, but with names of drones
        if self.model.expects(text):
            self._expected.add(kind)
            return True
        # A drone may be reset, or a storm over, by the time at which its warnings are counted.
        return kind in self._expected and is_repeated(line)

    def tail(self) -> str:
        """The end of the log."""
        assert self.node is not None
        return "\n".join(self.node.log.splitlines()[-60:])

    # What steps do

    def ask(self, kind: Any, service: str, /, fails: str | None = "", **request: Any) -> Any:
        """Call a service, and return its answer.

        Args:
            kind: Its type.
            service: Its name.
            fails: Part of the reason for which it has to be refused; empty: it has to succeed;
                None: it may do either.
            **request: Fields of the request.

        Raises:
            Broken: It does not answer, or the answer is another one.
        """
        try:
            answer = self.client.call(kind, service, COMPILING, **request)
        except SimulationError as error:
            self.check_process()
            raise Broken(f"{service} does not answer", f"{error}\n{self.tail()}") from None
        problem = problem_of(answer)
        if fails == "" and problem:
            raise Broken(f"{_without_numbers(service)} is refused", problem)
        if fails and fails not in problem:
            raise Broken(f"{service} is not refused", f"expected {fails!r}, got {problem!r}")
        return answer

    def publish(self, topic: str, *messages: Any) -> None:
        """Send messages; what is asked of the simulator afterwards mostly reaches it later."""
        publisher = self.client.publisher(type(messages[0]), topic)
        self.until(lambda: self.is_heard(topic), f"the simulator does not listen on {topic}")
        for message in messages:
            publisher.publish(message)
        publisher.wait_for_all_acked(ARRIVAL)

    def is_heard(self, topic: str) -> bool:
        """Whether the simulator listens on a topic; others may, too."""
        heard = self.client.node.get_subscriptions_info_by_topic(f"/{topic}")
        return any(end.node_name == "crazyflow" for end in heard)

    def set(self, name: str, value: Any) -> None:
        """Set a parameter, which has to succeed."""
        answer = self.client.set_parameter(name, value)
        if not answer.successful:
            raise Broken(f"the parameter {name} is refused", answer.reason)

    def time_ns(self) -> int:
        """Time of the simulation now [ns]."""
        answer = self.ask(GetEntitiesStates, "crazyflow/get_entities_states")
        return time_ns(answer.states[0].header.stamp)

    def pass_time(self, seconds: float) -> None:
        """Let time run on in the simulation, if it does."""
        if not self.model.moves:
            return
        assert self._watch is not None
        watch, end = self._watch, self.time_ns() + round(seconds * 1e9)
        self.until(lambda: watch.now_ns >= end, f"time stands still, {seconds:g} s do not pass")
        self.model.pass_time(seconds)

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 120.0) -> Any:
        """Wait for a condition.

        Raises:
            Broken: It does not hold in time.
        """
        try:
            return self.client.until(condition, what, timeout)
        except SimulationError as error:
            self.check_process()
            raise Broken(_without_numbers(what), str(error)) from None

    def gone(self, name: str) -> None:
        """A drone or an object was deleted."""
        if name in self.model.drones:
            self.forget(name)
            self.check_log()  # what is of its flight
            self.model.remove(name)
        self.model.objects.discard(name)

    def all_gone(self) -> None:
        """All that was spawned is gone, and what was deleted is there again."""
        model = self.model
        for name, drone in model.drones.items():
            if drone.spawned:
                self.forget(name)
        self.check_log()  # what is of their flights
        model.reset_spawned()

    def forget(self, drone: str) -> None:
        """Publish nothing for a drone any more; this process still has clients of its services."""
        self.client.forget(f"{drone}/")
        self.model.expect(rf"^there is no \w+ /{drone}/|^nobody listens on /{drone}/")

    def rest(self) -> None:
        """Remove all that came, and see that what the simulator uses has not grown.

        Raises:
            Broken: It has.
        """
        assert self.node is not None
        while self.sides.of("reader"):
            self.sides.take("reader").end()
        everything = ResetSimulation.Request.SCOPE_SPAWNED | ResetSimulation.Request.SCOPE_STATE
        self.ask(ResetSimulation, "crazyflow/reset_simulation", scope=everything)
        self.all_gone()
        self.model.reset_state()
        pid = self.node.process.pid
        if len(self.taken) < self._warm:
            return
        if self._usage is None:
            compiled = self._compiles + COMPILES
            self.until(lambda: time.monotonic() > compiled, "what it announced is not compiled")
        usage = Usage.of(pid)
        first = self._usage = self._usage or usage

        def has_shrunk() -> bool:
            nonlocal usage
            usage = Usage.of(pid)
            return not usage.more_than(first)

        with suppress(SimulationError):  # the middleware needs a while to see who was killed
            self.client.until(has_shrunk, "it shrinks", SHRINKS)
        self._told(f"  {usage}")
        if more := usage.more_than(first):
            raise Broken(f"it uses more {more}", f"{first} at first, {usage} now")

    def forget_usage(self) -> None:
        """From now on the simulator may use more."""
        self._usage = None

    def rewind(self) -> None:
        """The next steps may make the clock jump once, by any time."""
        self._rewinds += 1
        if self._watch is not None:
            self._watch.go_back()

    def look_away(self) -> None:
        """Leave sensors without listeners until the next look."""
        if self._watch is not None:
            self._watch.look_away()

    # Walking

    def take(self, step: Step) -> bool:
        """Take a step if it fits, and look what has become of the simulator.

        Returns:
            Whether it was taken.

        Raises:
            Broken: Something does not hold.
        """
        if not step.fits(self):
            return False
        self.taken.append(step)
        self.counts[type(step).__name__] += 1
        self._told(f"{len(self.taken)}: {step}")
        try:
            step.take(self)
            self.look()
        except Broken:
            raise
        except Exception as error:  # so that the walk is kept
            what = f"{type(step).__name__} ends with {type(error).__name__}"
            raise Broken(what, "".join(format_exception(error))) from error
        return True

    def look(self) -> None:
        """See that all is as the model says.

        Raises:
            Broken: It is not.
        """
        if self.node is not None and self._watch is not None:
            self.check_process()
            try:
                self._watch.look(self)
            finally:
                self.check_log()
        self.sides.check()

    def draw(self, rng: random.Random, without: Collection[str] = ()) -> Step:
        """A random step that fits now, and has nothing to do with some kinds and names."""
        kinds = [Begin] if self.node is None else list(KINDS.values())
        while True:
            (kind,) = rng.choices(kinds, [kind.weight for kind in kinds])
            step = kind.draw(self.model, rng)
            if step is None or not names_of(step).isdisjoint(without):
                continue
            if step.fits(self):
                return step


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", text)[:160]
