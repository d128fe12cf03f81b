"""Rounds: at each of them all simulators say their inputs and requests, and hear those of all."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from hashlib import blake2b
from typing import Any

import numpy as np

from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.isolation import OUT_OF_SERVICE
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.engine.snapshot import SIZES, Snapshot
from crazyflow_ros.hosts.agenda import Agenda, CarryOut
from crazyflow_ros.hosts.members import Members
from crazyflow_ros.hosts.messages import Hello, Word, inputs_of, packed, unpacked
from crazyflow_ros.hosts.transport import Transport
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.simulation import Simulation

_LEVELS = range(OUT_OF_SERVICE, max(Level) + 1)
_WAITING = 2.0  # s after which a wait is logged
_KEPT = 4  # words of each simulator: of this round, of the next, and of another view


class Rounds:
    """The `Turns` of a simulation that shares its time. Physics thread, unless stated.

    Args:
        members: Who is present.
        transport: Reaches the others.
        simulation: Waits for the others before each round.
        engine: Its engine.
        loop: Carries out requests.
        health: Logs.
        carry_out: Begins a request; it raises nothing.

    Attributes:
        members: As given.
        owners: The owner of each drone.
        waiting_for: See `Turns`.
        before_inputs: Called before the inputs are taken.
    """

    def __init__(
        self,
        members: Members,
        transport: Transport,
        simulation: Simulation,
        engine: Engine,
        loop: Loop,
        health: Health,
        carry_out: CarryOut,
    ) -> None:
        self.members, self._transport = members, transport
        self._simulation, self._engine, self._loop = simulation, engine, loop
        self._health, self._agenda = health, Agenda(members.own, carry_out)
        self.owners: dict[str, str] = {}
        self.waiting_for = "the other simulators"
        self.before_inputs: Callable[[], None] = lambda: None
        self._begun = False
        self._view, self._round = "", 0
        self._word: Word | None = None  # what this simulator has said in the round
        self._forced = False  # a round is needed before time goes on, and although it stands still
        self._words: dict[str, deque[Word]] = {}
        self._held = ""
        self._since: float | None = None  # wall time since when the round waits
        self._told = ""  # for whom, as far as it is logged

    def ask(self, request: dict[str, Any], future: Future[Any], *, once_here: bool = False) -> None:
        """Let all simulators carry out a request in the next round.

        Args:
            request: See `calls.call`.
            future: Gets the result once all have carried it out.
            once_here: It gets the result already when this simulator has carried it out; what it
                asks for at once is carried out by all at the same tick.
        """
        if self._held and self.members.missing and not future.done():
            future.set_exception(InvalidState(self._held))
        else:
            self._agenda.ask(request, future, once_here=once_here)

    def heard(self, name: str, life: str, message: bytes) -> None:
        """Take a message of another simulator."""
        if not self.members.is_present(name, life):
            return
        try:
            content = unpacked(message)
        except ValueError as error:
            self._health.warn(f"the simulator {name} sent what is refused: {error}")
            return
        if isinstance(content, Hello):
            self.members.heard(name, life, content)
        else:
            self._words.setdefault(name, deque(maxlen=_KEPT)).append(content)

    # Turns.

    def turn(self, *, due: bool, paused: bool) -> bool:
        """See `Turns`."""
        if not self._begun:
            self._begun = True
            self.members.begin()
        while self._is_carried_out():
            until = self._simulation.until
            assert until is not None
            tick = self._simulation.snapshot.tick  # which a request may have set back
            if tick < until and not (paused or self._forced):
                return True
            words = self._words_of_all(due=due) if self._is_complete() else None
            if words is None:
                return False
            self._settle(words)
            due = due and (self._loop.stepping or not self._loop.paused)
        return False

    def _words_of_all(self, *, due: bool) -> dict[str, Word] | None:
        """Say a word if there is reason to; return those of all, if they are there."""
        heard = self._heard()
        asked = any(word.requests or not word.due for word in heard.values())
        if self._word is None and (due or self._forced or self._agenda.has_to_say or asked):
            self._speak(due=due)
        if self._word is None:
            return None
        if len(heard) < len(self.members.names) - 1:
            self.members.remind()  # others may not have heard who is here
            others = [name for name in self.members.names if name != self.members.own]
            self._note_wait([name for name in others if name not in heard])
            return None
        return heard | {self.members.own: self._word}

    def close(self) -> None:
        """See `Turns`."""
        self._transport.close()
        self._agenda.fail("the simulation has ended")

    def _is_complete(self) -> bool:
        """Whether all simulators are present; otherwise time is held."""
        members = self.members
        missing, was_together = members.missing, bool(self._view)
        if members.refusal:
            self._hold(members.refusal)
            return False
        if missing:
            members.remind()
            if was_together:
                verb = "have" if missing[1:] else "has"
                gone = f"the {_simulators(missing)} {verb} gone"
                self._hold(f"{gone}: start it again, and load a checkpoint")
                self._agenda.fail(self._held)
            else:
                self._note_wait(missing)
            return False
        if members.view != self._view:
            self._view, self._round, self._word, self._forced = members.view, 0, None, True
            self.owners = self.owners or members.owners()
        return True

    def _heard(self) -> dict[str, Word]:
        """The words of the others in this round."""
        found = {}
        for name, words in self._words.items():
            for word in words:
                if (word.view, word.round) == (self._view, self._round):
                    found[name] = word
        return found

    def _speak(self, *, due: bool) -> None:
        """Say inputs and requests."""
        simulation = self._simulation
        self.before_inputs()
        inputs, until = simulation.take_inputs(self.drones_of(self.members.own))
        now = simulation.snapshot
        self._word = Word(
            *(self._view, self._round, now.tick, now.epoch, digest(now), self._loop.paused),
            *(due, until, self._agenda.say(), inputs.tobytes()),
        )
        self._transport.send(packed(self._word))

    def _settle(self, words: dict[str, Word]) -> None:
        """End a round: time may go on, or requests are carried out, or it stands still."""
        simulation, tick = self._simulation, self._simulation.snapshot.tick
        if self._told:
            self._health.inform(f"time no longer waits for {self._told}")
            self._told = ""
        self._round, self._word, self._since, self._forced = self._round + 1, None, None, False
        refusal = self._difference(words) or self._put_inputs(words)
        self._hold(refusal)
        self._agenda.agree(words)
        if any(word.paused for word in words.values()) and not self._loop.paused:
            self._loop.pause()
        # Nobody is bound whose next tick is not due: it may still be asked to pause at this one.
        goes_on = not self._agenda.has_to_do and not refusal
        goes_on &= all(word.due for word in words.values())
        until = min(word.until for word in words.values())
        simulation.until = max(until, tick + 1) if goes_on else tick

    def _put_inputs(self, words: dict[str, Word]) -> str:
        """Put the inputs of the others into force; return what is wrong with them."""
        for name, word in words.items():
            if name == self.members.own:
                continue
            drones = self.drones_of(name)
            try:
                inputs = inputs_of(word, self._engine.inputs(drones), _LEVELS)
            except ValueError as error:
                return f"the simulator {name} sent inputs that are refused: {error}"
            self._engine.set_inputs(drones, inputs)
        return ""

    def _is_carried_out(self) -> bool:
        """Carry out the requests of the last round; another round follows, which answers them."""
        self._forced |= self._agenda.has_to_do
        return self._agenda.carry_out()

    def _difference(self, words: dict[str, Word]) -> str:
        """Return which simulators are in another state; empty if none is."""
        states = {name: (word.tick, word.epoch, word.digest) for name, word in words.items()}
        if len(set(states.values())) == 1:
            return ""
        first, *others = sorted(states)
        for name in others:
            if states[name] != states[first]:
                break
        places = (f"{x} is at tick {states[x][0]} and reset {states[x][1]}" for x in (first, name))
        why = "the simulators are in different states"
        if states[first][:2] == states[name][:2]:
            why += f" at tick {states[name][0]}: {first} and {name} round differently"
        else:
            why += f": {', '.join(places)}"
        return f"{why}; load a checkpoint at one of them"

    def drones_of(self, owner: str) -> list[str]:
        """Return the present drones of a simulator, in the order of all drones."""
        return [name for name in self._engine.names if self.owners.get(name) == owner]

    def _hold(self, reason: str) -> None:
        """Pause for a reason, or allow time to run again."""
        if reason == self._held:
            return
        self._held = reason
        self._loop.hold(reason)
        if reason:
            self._health.warn(f"time stands still: {reason}")
        else:
            self._health.inform("the simulators are together, in the same state; time may run")

    def _note_wait(self, missing: list[str]) -> None:
        """Say for whom time waits, if it takes long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        self.waiting_for = f"the {_simulators(missing)}"
        if now - self._since > _WAITING and self.waiting_for != self._told:
            self._told = self.waiting_for
            self._health.warn(f"time waits for {self._told}")


def _simulators(names: list[str]) -> str:
    return f"simulator{'s' if names[1:] else ''} {', '.join(names)}"


def digest(state: Snapshot) -> str:
    """Return a digest of the motion of all drones."""
    motion = np.hstack([getattr(state, name) for name in SIZES])
    return blake2b(motion.tobytes(), digest_size=8).hexdigest()
