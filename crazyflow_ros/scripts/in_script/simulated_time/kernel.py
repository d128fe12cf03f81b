"""The threads of a script in simulated time: one runs at a time, and time runs when all wait.

A thread keeps its turn until it waits; then the thread that became ready first has its turn. So
threads run in the same order each time. When none can go on, the simulator lets time run until
the earliest deadline, or until a datagram arrives for the script.

Threads that Python has not started are no part of this: they live in wall time.
"""

from __future__ import annotations

import os
import select
from _thread import LockType, allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import Any, Protocol

from .channel import FOREVER, Reached

LOOK = 100
"""Cost of a look at a clock, or at something that is not ready, see `Kernel.looks`."""

PATIENCE = 1_000 * LOOK
"""Looks after which a thread must be waiting for something."""

_READING = 1_000  # ns of simulated time that a look at a clock takes, so that none repeats
_REST = 10 * LOOK  # looks between two rests from then on
_RESTING = 100_000  # ns of such a rest
_NOTICE = 0.5  # s of wall time after which a signal is noticed at the latest
_WATCHING = 100_000_000  # ns between two looks at descriptors while time runs


class Simulator(Protocol):
    """Lets time run."""

    def advance(self, now_ns: int, until_ns: int) -> Reached:
        """Let time run from `now_ns` until `until_ns`, or until something is received before."""


class ScriptThread:
    """A thread of the script.

    Attributes:
        ident: Its identifier, known once it was started.
        daemon: Whether the script may end before it.
        end: A lock that is released when it is over, if anybody wants to know.
        turn: Locked unless it is this thread's turn.
        away: Whether it has passed its turn on.
        outside: Depth of sections in which it lives in wall time.
        ended: Whether it is over.
        then: Actions of signal handlers, for its next turn.
        waits: Number of waits so far.
        since_ns: Simulated time at which its present wait began; None while it runs.
    """

    def __init__(self, ident: int = 0) -> None:
        self.ident = ident
        self.daemon = self.away = self.ended = False
        self.outside = self.waits = 0
        self.since_ns: int | None = None
        self.end: Any = None
        self.turn: LockType = allocate_lock()
        self.turn.acquire()
        self.then: deque[Callable[[], object]] = deque()


class Wait:
    """A single wait of a thread."""

    __slots__ = ("_claims", "task", "woken")

    def __init__(self, task: ScriptThread) -> None:
        self.task, self.woken = task, False
        self._claims = [None]

    @property
    def over(self) -> bool:
        """Whether it has ended, for whatever reason."""
        return not self._claims

    def claim(self) -> bool:
        """End the wait; False if it has ended before. Needs no lock: exactly one caller wins."""
        try:
            self._claims.pop()
        except IndexError:
            return False
        return True


class Kernel:
    """The threads of the script and its time.

    Args:
        simulator: Lets time run.
        now_ns: Simulated time.

    Attributes:
        simulator: As given, or one that uses it.
        now: Simulated time [ns].
        main: The main thread.
        running: The thread whose turn it is.
        tasks: All threads, by identifier.
        looks: How much the running thread has looked around since it waited last. One that looks
            very often must be waiting for something, so it has to rest.
        listening: Number of waits for datagrams of the simulator.
        receive: Takes the answer of the simulator.
        reached: Time at which the simulator has answered last [ns].
        idle: Whether nobody can go on, not even time.
    """

    def __init__(self, simulator: Simulator, now_ns: int) -> None:
        self.simulator, self.now, self.reached = simulator, now_ns, now_ns
        self.main = self.running = ScriptThread(get_ident())
        self.tasks = {self.running.ident: self.running}
        self.looks = self.listening = 0
        self.receive: Callable[[Reached], object] = lambda _: None
        self.idle = False
        self.handled = 0  # signals
        self._ready: deque[ScriptThread] = deque()
        self._deadlines: list[tuple[int, int, Wait]] = []
        self._order = count()
        self._watched: dict[Wait, Sequence[tuple[int, int]]] = {}  # descriptors and events
        self._wakes, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._wakes, False)

    def task(self) -> ScriptThread | None:
        """The thread that calls; None if it lives in wall time."""
        task = self.tasks.get(get_ident())
        return None if task is None or task.outside else task

    def end(self) -> None:
        """Let everything live in wall time, in a process that was forked."""
        for task in self.tasks.values():
            if task.end is not None and task.ident != get_ident():
                task.end._at_fork_reinit()
        self.tasks.clear()

    # Time.

    def read(self) -> int:
        """Look at the clock."""
        self.now += _READING
        self.looks += LOOK
        if self.looks > PATIENCE:
            self.rest()
        return self.now

    def rest(self) -> None:
        """Let other threads and time run, because the calling thread only looks around."""
        task = self.task()
        if task is not None:
            self.block(task, Wait(task), self.now + _RESTING)
            self.looks = PATIENCE - _REST

    def sleep(self, task: ScriptThread, duration_ns: int) -> None:
        """Let the calling thread wait."""
        self.block(task, Wait(task), self.now + duration_ns)

    # Waiting.

    def block(
        self,
        task: ScriptThread,
        wait: Wait,
        deadline: int | None = None,
        watched: Sequence[tuple[int, int]] = (),
    ) -> bool:
        """Wait while other threads and time run.

        Args:
            task: The calling thread.
            wait: A wait of it; `wake` ends it.
            deadline: Time at which it ends otherwise.
            watched: Pairs of a file descriptor and the events of `select.poll` that also end it.

        Returns:
            Whether it was woken.
        """
        if deadline is not None:
            heappush(self._deadlines, (max(deadline, self.now), next(self._order), wait))
        if watched:
            self._watched[wait] = watched
        task.waits += 1
        task.since_ns = self.now
        try:
            while not wait.over:
                self._pass_on(task)
        finally:
            wait.claim()
            task.since_ns, self.looks = None, 0
            self._watched.pop(wait, None)
        return wait.woken

    def wake(self, wait: Wait) -> bool:
        """End a wait, from any thread; return False if it has ended before."""
        if not wait.claim():
            return False
        wait.woken = True
        self.call(wait.task)
        return True

    def call(self, task: ScriptThread) -> None:
        """Give a thread a turn, from any thread and any handler of a signal."""
        self._ready.append(task)
        if self.idle:
            with suppress(BlockingIOError):
                os.write(self._waker, b"\0")

    def settle(self, task: ScriptThread) -> None:
        """Let all other threads run until they wait."""
        while self._ready:
            self._ready.append(task)
            self._pass_on(task)

    # Turns.

    def begin(self, task: ScriptThread) -> None:
        """Let a thread take turns; it waits for its first one."""
        if self.tasks:
            self.tasks[task.ident] = task
            self.call(task)
        else:  # in a process that was forked
            task.turn.release()

    def leave(self, task: ScriptThread) -> None:
        """End the calling thread."""
        task.ended = True
        taking_turns = self.tasks.pop(task.ident, None)
        if task.end is not None:
            task.end.release()
        if taking_turns:
            self._hand_over()

    def _pass_on(self, task: ScriptThread) -> None:
        """Pass the turn on and wait until it comes back."""
        task.away = True
        if not self._hand_over(task):
            # A signal that comes just before the main thread waits does not end the wait.
            while not task.turn.acquire(timeout=_NOTICE if task is self.main else -1):
                pass
        task.away = False
        while task.then:
            task.then.popleft()()

    def _hand_over(self, task: ScriptThread | None = None) -> bool:
        """Let the next thread run; return whether that is `task`."""
        while True:
            while not self._ready:
                self._advance()
            following = self._ready.popleft()
            if following is task:
                return True
            if not following.ended:
                self.running, self.looks = following, 0
                following.turn.release()
                return False

    # When none can go on.

    def _advance(self) -> None:
        """Let time run, or wait for what others do."""
        if self._watched and self._watch(0):
            return
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].over:
            heappop(deadlines)
        if not (deadlines or self.listening):
            self._idle()
            return
        until = deadlines[0][0] if deadlines else FOREVER
        if until > self.now:
            latest = self.now + _WATCHING if self._watched else FOREVER
            self._reach(min(until, latest))
        while deadlines and deadlines[0][0] <= self.now:
            wait = heappop(deadlines)[2]
            if wait.claim():
                self._ready.append(wait.task)

    def refresh(self) -> None:
        """Let the simulator do what is due, while time stands still."""
        self._reach(self.now)

    def _reach(self, until: int) -> None:
        reached = self.simulator.advance(self.now, until)
        self.now = self.reached = max(self.now, reached.now_ns)
        self.receive(reached)

    def _idle(self) -> None:
        """Wait, in wall time, for a descriptor, a signal, or a thread that Python did not start."""
        self.idle = True
        try:
            if not self._ready:
                self._watch(1e3 * _NOTICE)
                with suppress(BlockingIOError):
                    os.read(self._wakes, 4096)
        finally:
            self.idle = False

    def _watch(self, timeout_ms: float) -> bool:
        """End the waits for descriptors that are ready; return whether there are any."""
        poll = select_poll()
        if timeout_ms:
            poll.register(self._wakes, select.POLLIN)
        events: dict[int, int] = {}
        for pairs in self._watched.values():
            for descriptor, mask in pairs:
                events[descriptor] = events.get(descriptor, 0) | mask
        for descriptor, mask in events.items():
            poll.register(descriptor, mask)
        found = {descriptor for descriptor, _ in poll.poll(timeout_ms)}
        ready = [wait for wait, pairs in self._watched.items() if found & {i for i, _ in pairs}]
        return sum(map(self.wake, ready)) > 0


select_poll = select.poll  # `select.poll` will be that of the script
