"""Rounds, in which all simulators exchange their inputs and requests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

import numpy as np

from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level
from crazyflow_ros.engine.snapshot import SIZES, Snapshot
from crazyflow_ros.hosts.shared_requests import SharedRequests
from crazyflow_ros.hosts.transport import Transport
from crazyflow_ros.hosts.words import Hello, Word, inputs_of, packed, unpacked
from crazyflow_ros.runtime import PhysicsThread

_LEVELS = range(OUT_OF_SERVICE, max(Level) + 1)
_CHECK = 0.1  # s after which a waiting thread checks for messages without having been woken
_WAITING = 2.0  # s after which a wait is logged
_KEPT = 4  # words of each simulator: of this round, of the next, and of another view


class Rounds:
    """The `Driver` of a simulation that shares its time. Physics thread, unless stated.

    Args:
        physics: The physics thread, whose simulation it drives.
        requests: The requests of all simulators.
        transport: Reaches the others.
        before: Called before the inputs of a round are taken.
    """

    def __init__(
        self,
        physics: PhysicsThread,
        requests: SharedRequests,
        transport: Transport,
        before: Callable[[], None],
    ) -> None:
        self._simulation, self._engine = physics.simulation, physics.simulation.engine
        self._loop, self._health = physics.loop, physics.health
        self._members, self._owners = requests.members, requests.owners
        self._agenda = requests.agenda
        self._requests, self._transport, self._before = requests, transport, before
        self._until = self._simulation.snapshot.tick  # up to which the inputs of all are agreed
        self._felt = self._until  # tick at which the commands looked at what the drones touch
        self._begun = False
        self._view, self._round = "", 0
        self._word: Word | None = None  # what this simulator has said in the round
        self._forced = False  # a round is needed before time goes on, and although it stands still
        self._words: dict[str, deque[Word]] = {}
        self._since: float | None = None  # wall time since when the round waits
        self._waiting_for = "the other simulators"
        self._told = ""  # for whom, as far as it is logged

    def heard(self, name: str, life: str, message: bytes) -> None:
        """Take a message of another simulator."""
        if not self._members.is_present(name, life):
            return
        try:
            content = unpacked(message)
        except ValueError as error:
            self._health.warn(f"the simulator {name} sent what is refused: {error}")
            return
        if isinstance(content, Hello):
            self._members.heard(name, life, content)
        else:
            self._words.setdefault(name, deque(maxlen=_KEPT)).append(content)

    # Driver.

    def advance(self, due: float, limit: float) -> int:
        """See `Driver`."""
        del due  # it is, as this is called
        if not self._turn(due=True, paused=False):
            self._health.doing = f"waiting for {self._waiting_for}"
            self._loop.requests.sleep(_CHECK)
            return 0
        simulation, start = self._simulation, self._simulation.snapshot.tick
        if self._felt < start:  # otherwise the commands looked at it when they were taken up
            simulation.commands.feel([simulation.snapshot])
        tick = int(min(simulation.event_after(start), start + limit, self._until))
        simulation.run([tick], start + limit)
        return tick - start

    def take_up(self) -> None:
        """See `Driver`; inputs wait for the next round."""

    def idle(self) -> None:
        """See `Driver`."""
        self._turn(due=False, paused=self._loop.paused)

    def close(self) -> None:
        """See `Driver`."""
        self._transport.close()
        self._agenda.fail("the simulation has ended")

    def _turn(self, *, due: bool, paused: bool) -> bool:
        """Do what is possible without waiting; return whether the next tick may be computed.

        Args:
            due: The next tick is due, in wall time.
            paused: Time stands still, and no steps are under way.
        """
        if not self._begun:
            self._begun = True
            self._members.renew()
        while self._is_carried_out():
            tick = self._simulation.snapshot.tick  # which a request may have set back
            if tick < self._until and not (paused or self._forced):
                return True
            words = self._words_of_all(due=due) if self._is_complete() else None
            if words is None:
                return False
            self._settle(words)
            due = due and (self._loop.stepping or not self._loop.paused)
        return False

    def _words_of_all(self, *, due: bool) -> dict[str, Word] | None:
        """Send a word if there is reason to; return the words of all once they are complete."""
        heard = self._heard()
        asked = any(word.requests or not word.due for word in heard.values())
        if self._word is None and (due or self._forced or self._agenda.has_to_say or asked):
            self._speak(due=due)
        if self._word is None:
            return None
        if len(heard) < len(self._members.names) - 1:
            self._members.remind()  # others may not have heard who is here
            others = [name for name in self._members.names if name != self._members.own]
            self._note_wait([name for name in others if name not in heard])
            return None
        return heard | {self._members.own: self._word}

    def _is_complete(self) -> bool:
        """Whether all simulators are present; otherwise time is held."""
        members = self._members
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
                self._agenda.fail(self._loop.held)
            else:
                self._note_wait(missing)
            return False
        if members.view != self._view:
            self._view, self._round, self._word, self._forced = members.view, 0, None, True
            if not self._owners.of:
                self._owners.use(members.owners())
        return True

    def _heard(self) -> dict[str, Word]:
        """The words of the others in this round."""
        now = self._view, self._round
        every = ((name, word) for name, words in self._words.items() for word in words)
        return {name: word for name, word in every if (word.view, word.round) == now}

    def _speak(self, *, due: bool) -> None:
        """Send inputs and requests."""
        self._before()
        simulation, now = self._simulation, self._simulation.snapshot
        simulation.take_up(partial(self._requests.ask, "withdraw"))
        tick = self._felt = now.tick
        period = simulation.control_period
        until = max(min((tick // period + 1) * period, simulation.wrenches.next_end), tick + 1)
        requests, motion, paused = self._agenda.say(), digest(now), self._loop.paused
        own = self._engine.inputs(self._owners.drones_of(self._members.own)).tobytes()
        start = self._view, self._round, tick, now.epoch, motion
        self._word = Word(*start, paused, due, int(until), requests, own)
        self._transport.send(packed(self._word))

    def _settle(self, words: dict[str, Word]) -> None:
        """End a round: let time run, carry out requests, or hold time."""
        tick = self._simulation.snapshot.tick
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
        self._until = max(until, tick + 1) if goes_on else tick

    def _put_inputs(self, words: dict[str, Word]) -> str:
        """Apply the inputs of the others; return what is wrong with them."""
        for name, word in words.items():
            if name == self._members.own:
                continue
            drones = self._owners.drones_of(name)
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
        name = next(name for name in others if states[name] != states[first])
        places = (f"{x} is at tick {states[x][0]} and reset {states[x][1]}" for x in (first, name))
        why = "the simulators are in different states"
        if states[first][:2] == states[name][:2]:
            why += f" at tick {states[name][0]}: {first} and {name} round differently"
        else:
            why += f": {', '.join(places)}"
        return f"{why}; load a checkpoint at one of them"

    def _hold(self, reason: str) -> None:
        """Pause for a reason, or allow time to run again."""
        if reason == self._loop.held:
            return
        self._loop.hold(reason)
        if reason:
            self._health.warn(f"time stands still: {reason}")
        else:
            self._health.inform("the simulators are together, in the same state; time may run")

    def _note_wait(self, missing: list[str]) -> None:
        """Log for whom time waits if it takes long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        self._waiting_for = f"the {_simulators(missing)}"
        if now - self._since > _WAITING and self._waiting_for != self._told:
            self._told = self._waiting_for
            self._health.warn(f"time waits for {self._told}")


def _simulators(names: list[str]) -> str:
    return f"simulator{'s' if names[1:] else ''} {', '.join(names)}"


def digest(state: Snapshot) -> str:
    """Return a digest of the motion of all drones, and of bodies that move besides them."""
    motion = np.hstack([getattr(state, name) for name in SIZES]).tobytes()
    if state.bodies is not None:
        motion += state.bodies.state.tobytes()
    return blake2b(motion, digest_size=8).hexdigest()
