"""The simulator's side of the shared memory: commands of ros2_control for the physics thread.

In all arrays, joints of robots in the world follow the drones, one row each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.control import Controller
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.robot_joints import N_NUMBERS
from crazyflow_ros.lockstep.futex import Futex
from crazyflow_ros.lockstep.layout import HEADER, WAITING, Entry, numbers_of, offset
from crazyflow_ros.lockstep.robots import WAITING as JOINT_WAITING
from crazyflow_ros.lockstep.robots import Robots
from crazyflow_ros.lockstep.shared_memory import SharedMemory
from crazyflow_ros.lockstep.slots import CommandSlots
from crazyflow_ros.lockstep.states import CarriedReadings, describe_drones
from crazyflow_ros.runtime import DoorStatus, Level, OnLoss, Snapshot
from crazyflow_ros.runtime.door_commands import LIMITS, WORDS, Commands, refusal, usable
from crazyflow_ros.runtime.door_patience import Patience
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.robot_parts import Mode

_NONE = Level.held  # also of a joint: no controller commands it
_LOOK = 0.1  # s of wall time between checks whether controllers are still running


class SharedMemoryLink:
    """Publishes the state of drones and robots to controllers and receives their commands.

    It is a `Door` of the physics thread. In lock-step, each control tick waits for the commands
    that answer it; see `Patience`.

    Attributes:
        memory_name: Name of the shared memory.
        robots: The commands for robots of the world.
        carried: As given.
    """

    name = "ros2_control"

    def __init__(
        self,
        name: str,
        drones: Sequence[str],
        *,
        drone_model: str,
        freq: int,
        rate: int,
        lock_step: bool,
        controller: str = Controller.default,
        range_rate: int = 0,
        timeout: float = 1.0,
        on_loss: str = OnLoss.hold,
        parts: Sequence[Entry] = (),
        carried: CarriedReadings | None = None,
        logger: Logger,
    ) -> None:
        """Create the memory; controllers can then connect.

        Args:
            name: Name of the shared memory.
            drones: Names of the drones.
            drone_model: Model of the drones.
            freq: Physics ticks per second.
            rate: Control periods per second.
            lock_step: Whether to wait for commands.
            controller: Their controller; only Mellinger's follows body rates.
            range_rate: Measurements of the range sensors per second; 0 for each control period.
            timeout: How long to wait for commands [s of wall time].
            on_loss: An `OnLoss`.
            parts: Joints and sensors of robots in the world.
            carried: Sensors that the drones carry.
            logger: Logger of events.

        Raises:
            ValueError: The name is in use, a rate does not divide `freq`, or another argument is
                invalid.
        """
        self.period = ticks_per_period(freq, rate, "ros2_control.rate")
        self._range_period = (
            ticks_per_period(freq, range_rate, "publish_rates.range") if range_rate else 1
        )
        self._drones, self._lock_step = tuple(drones), lock_step
        self._logger = ThrottledLogger.of(logger)
        self._patience = Patience(self.name, 1 / rate, timeout, self._logger)
        n_rotors = len(rotors_of(drone_model))
        self._commands = Commands(drones, OnLoss(on_loss), self._logger, n_rotors)
        self.robots = Robots(parts, OnLoss(on_loss), self._logger)
        self._names = *self._drones, *self.robots.names
        n, self._n = len(self._names), len(self._drones)
        self.carried = carried
        parts = [*parts, *(carried.entries if carried else ())]
        self._memory = memory = SharedMemory(name, drones, parts)
        self.memory_name = memory.name
        header = memory.view["header"]
        header["freq"], header["period"], header["lock_step"] = freq, self.period, lock_step
        self._refused = () if controller == Controller.default else (Level.body_rate,)
        describe_drones(header, drone_model, LIMITS.keys() - self._refused)
        self._numbers = slice(4, 4 + n_rotors)  # words of a command
        self._states = Futex(memory.address + offset(HEADER, "state_count"))
        self._posts = Futex(memory.address + offset(HEADER, "command_count"))
        self._awaited = memory.view["drones"]["awaited"]
        self._slots = CommandSlots(memory)
        states = memory.view["states"]["drones"]
        self._buffers = [numbers_of(state, n_rotors) for state in states]
        self._speeds = [state["rotor_velocity"][:, :n_rotors] for state in states]
        self._values = list(memory.view["states"]["values"]) if parts else None
        stamps = memory.view["states"]["stamp"]
        self._stamps = [stamps[i : i + 1].view(np.int64)[:3] for i in (0, 1)]  # tick, epoch, time
        self._waiting = np.where(np.arange(n) < self._n, WAITING, JOINT_WAITING)
        self._range = np.zeros((self._n, 1))
        self._shown_tick = -1
        self._attached = np.zeros(n, bool)
        self._lost = np.zeros(n, np.uint64)  # sessions whose process has ended
        self._sessions = np.zeros(n, np.uint64)
        self._told = np.zeros(n, np.uint64)  # levels that the log has last named
        self._counts = np.zeros(n, np.uint64)  # of the latest command seen
        self._epoch = 0
        # Content of the slots if only numbers have changed: the active sessions; and tick,
        # epoch and level of the commands, where the tick is filled in.
        self._usual: tuple[bytes, np.ndarray] | None = None
        self._looked = 0.0
        self._closed = False
        memory.publish()

    def status(self) -> DoorStatus:
        """See `Door`."""
        words = self._slots.copy()
        answering = self._who_answers(words, self._slots.latest(words))[: self._n]
        attached = tuple(np.array(self._drones)[answering].tolist())
        refused = self._commands.refused + self.robots.refused
        return DoorStatus(attached, self._patience.cycles, self._patience.timeouts, refused)

    # For the physics thread.

    def meet(self, bodies: MovingBodies | None) -> None:
        """See `CommandsBodies`."""
        self.robots.meet(bodies)

    def show(self, snapshot: Snapshot, mirror: Mirror) -> None:
        """Publish the state."""
        tick, shown, period = snapshot.tick, self._shown_tick, self._range_period
        if tick // period != shown // period or tick <= shown:  # the latter if the state was set
            self._range[:, 0] = mirror.range(snapshot.names)
        self._shown_tick = tick
        slot = (self._states.value + 1) & 1
        np.concatenate(
            (
                *(snapshot.pos, snapshot.quat, snapshot.vel, snapshot.ang_vel),
                # The IMU is at the centre of mass.
                *(snapshot.quat, snapshot.ang_vel, snapshot.specific_force),
                *(self._range, self._commands.level[:, None], snapshot.rotor_angle),
            ),
            axis=1,
            out=self._buffers[slot],
        )
        self._speeds[slot][:] = snapshot.rotor_vel
        if self._values is not None:
            own = self.carried.read(snapshot, mirror.model) if self.carried else ()
            self._values[slot][:] = (*self.robots.read(), *own)
        self._stamps[slot][:] = (tick, snapshot.epoch, snapshot.time_ns)
        self._states.add()
        self._patience.begin()

    def collect(
        self,
        snapshot: Snapshot,
        command: np.ndarray,
        level: np.ndarray,
        interrupted: Callable[[], bool],
    ) -> bool:
        """See `Door`; in lock-step, wait for the commands for this tick."""
        if snapshot.epoch != self._epoch:
            self._epoch, self._usual = snapshot.epoch, None
            self._commands.forget()
            self.robots.forget()
        while True:
            seen = self._posts.value
            words = self._slots.copy()
            latest = self._slots.latest(words)
            self._attach(words, latest)
            values = latest[:, self._numbers].view(np.float64)
            if self._is_usual(snapshot.tick, latest) and self._are_within_limits(values):
                self._patience.note_answers()
                self._commands.values[:] = values[: self._n]
                self.robots.values[:] = values[self._n :, :N_NUMBERS]
                break
            missing = self._attached & (latest[:, 0] != snapshot.tick)
            if not self._lock_step or not missing.any():
                if self._lock_step and self._attached.any():
                    self._patience.note_answers()
                self._obey(words, latest, values)
                break
            if interrupted():
                self._patience.begin()
                return False
            if not self._wait(seen, missing):
                self._obey(words, latest, values)
                break
        command[:], level[:] = self._commands.values, self._commands.level
        self.robots.command()
        return True

    def forget(self, drones: np.ndarray) -> None:
        """See `Door`."""
        self._usual, self._shown_tick = None, -1
        self._commands.forget(drones)
        if self.carried:
            self.carried.forget(drones)

    def interrupt(self) -> None:
        """See `Door`."""
        if not self._closed:
            self._posts.add()

    def set_paused(self, paused: bool) -> None:
        """See `Door`."""
        self._patience.begin()
        self._memory.view["header"]["paused"] = paused

    def close(self) -> None:
        """Disconnect from the controllers, and remove the memory's name."""
        if not self._closed:
            self._closed = True
            self._memory.close()
            self._states.wake()
            self._logger.close()

    def _who_answers(self, words: np.ndarray, latest: np.ndarray) -> np.ndarray:
        """Return the drones whose controller is active and has finished starting."""
        sessions = words[:, 0]
        return ((words[:, 2] & 1) == 1) & (sessions != self._lost) & (sessions == latest[:, 3])

    def _attach(self, words: np.ndarray, latest: np.ndarray) -> None:
        """Update which controllers are active."""
        now = time.monotonic()
        look = now > self._looked + _LOOK
        if not look and self._usual and self._usual[0] == words[:, 0:3:2].tobytes():
            return
        sessions, attached = words[:, 0], self._who_answers(words, latest)
        if look:
            self._looked = now
            self._repair()
            for i in np.flatnonzero(attached).tolist():
                if not self._memory.has_controller(i):
                    self._lost[i], attached[i] = sessions[i], False
        changed = (attached != self._attached) | (sessions != self._sessions)
        if changed.any():
            for i in np.flatnonzero(changed).tolist():
                if self._attached[i]:
                    self._lose(i, int(words[i, 2] >> 32), died=bool(self._lost[i] == sessions[i]))
                if attached[i]:
                    self._logger.info(f"{self._names[i]}: its controller manager has connected")
            self._attached, self._sessions, self._usual = attached, sessions.copy(), None
            self._awaited[:] = attached & self._lock_step

    def _lose(self, row: int, process: int, died: bool) -> None:
        """Handle the loss of a controller manager that died or deactivated its hardware."""
        name, what = self._names[row], "died" if died else "has disconnected"
        text = f"{name}: its controller manager, process {process}, {what}"
        owner, i = self._owner(row)
        if died or self._told[row] != _NONE:
            self._logger.warning(f"{text}; {owner.without}")
        else:
            self._logger.info(text)
        self._told[row] = _NONE
        owner.lose(i)

    def _owner(self, row: int) -> tuple[Commands | Robots, int]:
        """Return what holds the commands of a drone or a joint, and its place there."""
        return (self._commands, row) if row < self._n else (self.robots, row - self._n)

    def _repair(self) -> None:
        """Restore the memory that controllers may only read, if something has overwritten it."""
        self._awaited[:] = self._attached & self._lock_step
        if text := self._memory.repair():
            self._logger.warning(text)

    def _is_usual(self, tick: int, latest: np.ndarray) -> bool:
        """Return whether all drones have a command for this tick, from the same sessions."""
        if self._usual is None or not self._lock_step:
            return False
        expected = self._usual[1]
        expected[:, 0] = tick
        return expected.tobytes() == latest[:, :3].tobytes()

    def _are_within_limits(self, values: np.ndarray) -> bool:
        """Return whether all numbers are finite and within the limits of the levels in force."""
        n = self._n
        within = (np.abs(values[:n]) <= self._commands.most).all()
        return bool(within and (np.abs(values[n:, :N_NUMBERS]) <= self.robots.most).all())

    def _wait(self, seen: int, missing: np.ndarray) -> bool:
        """Sleep until something changes after `seen`; return False if the deadline is missed."""
        if (left := self._patience.left()) > 0:
            self._posts.wait(seen, min(left, _LOOK))
            return True
        self._patience.note_deadline(np.array(self._names)[missing].tolist())
        return False

    def _obey(self, words: np.ndarray, latest: np.ndarray, values: np.ndarray) -> None:
        """Put new commands into force."""
        commands = self._commands
        fresh = self._attached & (words[:, 1] != self._counts)
        fresh &= latest[:, 1] == self._epoch
        self._counts = words[:, 1].copy()
        if not fresh.any():
            return
        levels, n = latest[:, 2], self._n
        of_joints = values[n:, :N_NUMBERS]
        none, waiting = levels == _NONE, levels == self._waiting
        good = np.concatenate(
            (usable(levels[:n], values[:n]), self.robots.usable(levels[n:], of_joints))
        )
        good[:n] &= ~np.isin(levels[:n], self._refused)
        for i in np.flatnonzero(fresh & none).tolist():
            owner, k = self._owner(i)
            owner.lose(k)
        for i in np.flatnonzero(fresh & ~(good | none | waiting)).tolist():
            if i < n:
                commands.refuse(i, *refusal(int(levels[i]), values[i], self._refused), lost=True)
            else:
                self.robots.refuse(i - n, int(levels[i]), values[i])
        for i in np.flatnonzero(fresh & (none | good) & (levels != self._told)).tolist():
            self._tell(i, int(levels[i]))
        take = fresh & good
        drones, joints = take[:n], take[n:]
        commands.take(drones, levels[:n][drones], values[:n][drones])
        if joints.any():
            self.robots.take(joints, levels[n:][joints], of_joints[joints])
        self._usual = (words[:, 0:3:2].tobytes(), latest[:, :3].copy()) if take.all() else None

    def _tell(self, row: int, level: int) -> None:
        """Log what the controllers of a drone or a joint command from now on."""
        name, self._told[row] = self._names[row], level
        if level == _NONE:
            self._logger.info(f"{name}: no controller commands it; {self._owner(row)[0].without}")
        else:
            what = WORDS[Level(level)] if row < self._n else Mode(level).name
            self._logger.info(f"{name}: its controllers command its {what}")
