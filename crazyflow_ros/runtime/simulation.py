"""The simulation: all that one thread owns and advances, tick by tick. No thread of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.engine import Engine
from crazyflow_ros.runtime.events import Events, SnapshotCallback
from crazyflow_ros.runtime.levels import resolve
from crazyflow_ros.runtime.orders import Orders
from crazyflow_ros.runtime.wrenches import Wrench, Wrenches
from crazyflow_ros.scene import Mirror, MirrorState, build_spec

_FIRST_TICK = 1  # ROS takes a clock of zero for one that has not started


class Simulation:
    """The drones, their mirror, what they are told, and who hears of them.

    Args:
        config: What is simulated.
        names: Of the drones.
        source: Brings the commands, instead of `orders`.

    Attributes:
        mirror: The MuJoCo side, written before each event.
        snapshot: The latest state.
        epoch: Resets so far.
        orders: What the drones are told.
        wrenches: External forces and torques on them.
        events: Callbacks, the clock first among them.
        reset_callbacks: Are called after each reset.
        control: What commands mean.
        control_period: Ticks between two runs of the outermost controller.

    Raises:
        ValueError: The configuration or a name is not usable; the message says which.
    """

    def __init__(
        self, config: SimulationConfig, names: Sequence[str], source: CommandSource | None
    ) -> None:
        self._source, self._mass = source, load_drone(config.drone_model)["mass"]
        self._engine = engine = Engine(config, names, levels=source is not None)
        self.control: Control = engine.control
        self.control_period = source.period if source else engine.control_period
        spec = build_spec(config.drone_model, names, scene=config.scene, poses=engine.initial_poses)
        self.mirror = Mirror(spec.compile(), names)
        self.epoch = 0
        self.snapshot = engine.advance(_FIRST_TICK, 0, self.epoch)
        self.orders = Orders(self.control)
        self.wrenches = Wrenches(config.freq)
        self.events = Events(config.freq)
        self.reset_callbacks: list[SnapshotCallback] = []

    def next_event(self) -> int:
        """The tick up to which nobody wants to know or to change anything."""
        periods, tick = self.events.periods, self.snapshot.tick
        wrenches = self.wrenches
        if self.orders.moving or wrenches or self._source is not None or not periods:
            periods.add(self.control_period)
        event = min((tick // period + 1) * period for period in periods)
        return int(min(event, wrenches.next_end))

    def collect(self, interrupted: Callable[[], bool]) -> bool:
        """Have the source's commands, if they are due; False if there is something else to do."""
        source, engine = self._source, self._engine
        if source is None or self.snapshot.tick % source.period:
            return True
        if not source.collect(self.snapshot, engine.command, engine.armed, interrupted):
            return False
        resolve(engine.command, engine.armed, self.snapshot.quat, self._mass)
        return True

    def advance(self, limit: int | None = None) -> int:
        """Advance to the next event, and let know whom it concerns.

        Args:
            limit: Most ticks to advance; if the event is not before, everybody is let know.

        Returns:
            Number of ticks.
        """
        self._take_commands()
        n_ticks = self.next_event() - self.snapshot.tick
        every = limit is not None and n_ticks >= limit
        if limit is not None and every:
            n_ticks = limit
        self.snapshot = self._engine.advance(self.snapshot.tick, n_ticks, self.epoch)
        self.mirror.write(self.snapshot)
        self._hand_out(every=every)
        return n_ticks

    def reset(self) -> None:
        """Put all drones back to their initial state; time goes on, the epoch rises."""
        self.epoch += 1
        self.orders.clear()
        self.wrenches.clear()
        self._engine.reset()
        self.show()
        self.mirror.notify_reset(True)
        for callback in self.reset_callbacks:
            callback(self.snapshot)

    def set_state(self, state: MirrorState) -> None:
        """Put all drones into a state."""
        self._engine.set_state(state)
        self.show()

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._engine.capture_initial_state(self.snapshot)

    def show(self) -> None:
        """Hand out the state of the present tick, at the start and after a change by hand."""
        self.snapshot = self._engine.advance(self.snapshot.tick, 0, self.epoch)
        self.mirror.write(self.snapshot)
        self._hand_out(every=True)

    def _take_commands(self) -> None:
        engine = self._engine
        for name, command in self.orders.take(self.snapshot).items():
            engine.tell(name, command)
        controls = self.mirror.staged_controls()
        if controls is not None:
            for name, wrench in zip(self.snapshot.names, controls.wrench):
                duration = math.inf if wrench.any() else 0.0
                lasting = Wrench(wrench[:3], wrench[3:], duration)
                self.wrenches.post(name, lasting, ("mirror", name))
            if self.control is Control.rotor_vel and self._source is None:
                engine.command[:] = controls.rotor_speed / RPM
                engine.armed[:] = True
        wrench = self.wrenches.take(self.snapshot)
        if wrench is not None:
            engine.wrench[:] = wrench

    def _hand_out(self, *, every: bool = False) -> None:
        """Give the state to the source, then to all others, the clock first among them."""
        if self._source is not None and (every or self.snapshot.tick % self._source.period == 0):
            self._source.show(self.snapshot, self.mirror)
        self.events.fire(self.snapshot, every=every)
