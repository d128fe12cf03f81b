"""The state of the drones, in the slots of a compiled world; some slots may be free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.compiled_world import WEATHER, CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.form import POS_LOW, Leaves, gust_period, place
from crazyflow_ros.engine.initial_poses import initial_poses
from crazyflow_ros.engine.initial_state import InitialState
from crazyflow_ros.engine.led_drones import LedDrones
from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.output import Output
from crazyflow_ros.engine.slots import slots_for
from crazyflow_ros.engine.snapshot import Fields, Snapshot
from crazyflow_ros.engine.tuned_gains import TunedGains
from crazyflow_ros.scene.conditions import STANDARD, Conditions

_POSE = ("states.pos", "plugins." + POS_LOW, "states.quat")
_BEGUN = ("estimate.quat", "estimate.seen")  # with zeros, the filter starts with the true state
_NONE = np.zeros((0, 0, 0))


class Engine:
    """The state of the drones, and the compiled function that advances it. Not thread-safe.

    Attributes:
        world: The compiled function, and the form of the state.
        names: Names of the drones, in the order of the rows of a snapshot.
        rows: Slots of the drones, to index the four arrays below, which have one row per slot.
        command: Numbers of each drone's command.
        level: Their `Level`.
        door_commands: Numbers (n, r) and levels (n,), among these, of drones that a door flies.
        wrench: External force [N] and torque [N m] on the centre of mass, world frame.
        all_inputs: These arrays side by side, see `form.input_columns`.
        motor_loss: Share of the speed that each rotor loses, 0 to 1.
        wind: Present wind.
        slots: Slots of the drones by name.
        by_door: Number of drones that a door flies; they have the first slots.
        bodies: The bodies of the world that move besides the drones; None if there are none.
        gains: Gains of drones that replace those of their controllers.
        initial: The state after a reset.
        output: Makes snapshots.
        lost: Drones that were lost, see `isolation`, until their reset, with the tick of the loss.
        led: Drones that others lead.
    """

    rows: slice | np.ndarray
    command: np.ndarray
    level: np.ndarray
    door_commands: tuple[np.ndarray, np.ndarray]
    wrench: np.ndarray
    motor_loss: np.ndarray
    wind: Wind

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        *,
        n_slots: int = 0,
        by_door: Sequence[str] = (),
        contacts: bool = True,
        conditions: Conditions = STANDARD,
    ) -> None:
        """Build the simulation.

        Args:
            config: Configuration; its control mode is ignored if a door flies all drones.
            names: Names of the drones.
            n_slots: Drones for which there is room without recompiling; at least those given.
            by_door: Drones that a door flies, in its order; they keep the first slots.
            contacts: See `CompiledWorld`; without them, set `bodies`.
            conditions: See `CompiledWorld`.

        Raises:
            ValueError: See `CompiledWorld`.
        """
        self.bodies: MovingBodies | None = None
        self._config, self.by_door = config, len(by_door)
        n_slots, gusts = slots_for(max(n_slots, len(names))), config.gust_intensity > 0
        kind: dict[str, Any] = {"gusts": gusts, "contacts": contacts}
        kind |= {"by_door": self.by_door, "conditions": conditions}
        self.world = world = CompiledWorld(config, n_slots, **kind)
        self.freq, self.control = world.freq, world.control
        self.control_period = world.control_period
        mean = config.wind if any(config.wind) or not world.feels_wind else conditions.wind
        self.blow(Wind(mean, config.gust_intensity, config.gust_altitude))
        self.lost: dict[str, int] = {}
        self.led = LedDrones()
        self.gains = TunedGains(self)
        self._set_inputs(world.inputs)
        self.output = Output(config, world.n_drones, world.form.outputs)
        self.initial = InitialState(self.all_inputs, world.form.n_rotors)
        in_slots = [*by_door, *(name for name in names if name not in by_door)]
        slots = {name: in_slots.index(name) for name in names}
        poses = initial_poses(config, len(names), conditions.floor)
        self.initial.set_poses(list(slots.values()), poses)
        self.set_slots(slots)
        self.reset()

    @property
    def n_slots(self) -> int:
        """Number of drones for which there is room."""
        return self.world.n_drones

    @property
    def config(self) -> SimulationConfig:
        """The configuration, with the present controller."""
        return replace(self._config, controller=self.world.controller.value)

    def slots_of(self, names: Iterable[str]) -> np.ndarray:
        """Return the slots of drones, (n,)."""
        return np.array([self.slots[name] for name in names], int)

    def set_commands(self, names: Sequence[str], commands: np.ndarray) -> None:
        """Set commands of drones, (n, k + 1) with their levels."""
        self._given[self.slots_of(names)] = commands

    def advance(
        self,
        tick: int,
        stretches: Sequence[int],
        epoch: int,
        names: Sequence[str] = (),
        commands: np.ndarray = _NONE,
    ) -> list[Snapshot]:
        """Advance by one or more stretches of ticks.

        Args:
            tick: The present tick.
            stretches: Ticks of each stretch, at most `max_stretches`; 0 only evaluates
                accelerations.
            epoch: Number of resets so far.
            names: Drones whose command differs between stretches.
            commands: (n, m, k + 1) their commands in each stretch, in the form of `set_commands`.

        Returns:
            The state after each stretch.
        """
        later = self.world.later[: len(stretches) - 1]
        if names:
            slots = self.slots_of(names)
            self._given[slots] = commands[0]
            later[:] = self._given
            later[:, slots] = commands[1:]
        else:
            later[:] = self._given
        if self._idle:
            self.level[self._idle] = OUT_OF_SERVICE
        if self.bodies:
            columns, moved = self.bodies.advance(self.world, self.rows, tick, stretches)
        else:
            columns, moved = self.world.advance(tick, stretches).astype(float), None
        if len(later):
            self._given[:] = later[-1]
        if self.led:
            self.led.show(self.slots, columns, self.world.form.outputs)
        lost = columns[:, self.rows, self.world.form.outputs["lost"].start]
        if np.count_nonzero(lost):
            self._note_lost(tick, stretches, lost)
        snapshots = self.output.snapshots(columns, self.rows, self.names, tick, stretches, epoch)
        return [replace(x, bodies=now) for x, now in zip(snapshots, moved)] if moved else snapshots

    def _note_lost(self, tick: int, stretches: Sequence[int], lost: np.ndarray) -> None:
        """Record which drones were lost in each stretch after a tick."""
        for end, row in zip(tick + np.cumsum(stretches), lost):
            self.lost |= dict.fromkeys(np.array(self.names)[row > 0].tolist(), int(end))
        self.set_slots(self.slots)

    # State and inputs of drones.

    def inputs(self, names: Sequence[str]) -> np.ndarray:
        """Return what determines the next ticks of drones besides their state, (n, k).

        These are the command, the level, and the external force and torque.
        """
        return self.all_inputs[self.slots_of(names), : self.world.form.inputs["wrench"].stop]

    def set_inputs(self, names: Sequence[str], inputs: np.ndarray) -> None:
        """Set the result of `inputs`."""
        self.all_inputs[self.slots_of(names), : inputs.shape[1]] = inputs

    def disarm(self, name: str) -> None:
        """Stop the rotors of a drone, until it gets a command."""
        self.level[self.slots[name]] = Level.held

    def put(self, names: Sequence[str], fields: Fields) -> None:
        """Change the state of drones; their controllers keep their memory.

        The estimators of drones that are put elsewhere start again there, because no measurement
        would show the jump.
        """
        slots, leaves = self.slots_of(names), self.world.leaves
        before = [leaves[path][0, slots] for path in _POSE]
        self._fill(leaves, slots, fields)
        if _BEGUN[0] in leaves:
            after = [leaves[path][0, slots] for path in _POSE]
            moved = np.any([(a != b).any(axis=1) for a, b in zip(before, after)], axis=0)
            for path in _BEGUN:
                leaves[path][0, slots[moved]] = 0
            self.world.leaves = leaves

    def reset(self, names: Sequence[str] | None = None) -> None:
        """Return drones to their initial state, with reset controllers and without external forces.

        They are disarmed, unless `capture_initial_state` has stored commands for them. Their
        controllers have their own gains again.

        Args:
            names: Names of the drones; None resets all, and the state that they share.
        """
        if names is None:
            leaves, slots = self.world.fresh(), np.arange(self.n_slots)
            self.lost.clear()
            if self.bodies:
                self.bodies.reset()
        else:
            leaves, slots = self.world.leaves, self.slots_of(names)
            self._refresh(leaves, slots)
            self.lost = {name: tick for name, tick in self.lost.items() if name not in names}
        self.all_inputs[slots] = self.initial.inputs[slots]
        self.set_slots(self.slots)
        self._fill(leaves, slots, self.initial.fields(slots))
        for name in self.names if names is None else names:
            self.gains.forget(name)

    def _refresh(self, leaves: Leaves, slots: np.ndarray) -> None:
        """Reset the controllers, and whatever else is stored for a drone, except its air."""
        for path, values in self.world.fresh().items():
            if self.world.is_own(path) and path != WEATHER:
                leaves[path][0, slots] = values[0, slots]

    def _fill(self, leaves: Leaves, slots: np.ndarray, fields: Fields) -> None:
        """Replace some fields in leaves, and make these the state."""
        for name in fields.keys() & {"quat", "vel", "ang_vel"}:
            leaves[f"states.{name}"][0, slots] = fields[name]
        if "pos" in fields:
            place(leaves["states.pos"][0], leaves[f"plugins.{POS_LOW}"][0], slots, fields["pos"])
        if "rotor_vel" in fields and self.world.has_rotors:
            leaves["states.rotor_vel"][0, slots] = fields["rotor_vel"] / RPM
        self.output.set_rotors(slots, fields)
        self.world.leaves = leaves

    def set_leaves(self, name: str, leaves: Mapping[str, ArrayLike]) -> None:
        """Set a drone's part of leaves of the state."""
        present = self.world.leaves
        for path, values in leaves.items():
            present[path][0, self.slots[name]] = values
        self.world.leaves = present

    def capture_initial_state(self, state: Snapshot) -> None:
        """Make a state the initial one, with the commands in force, except those of a door."""
        if self.bodies:
            self.bodies.capture_initial_state()
        slots, inputs = self.slots_of(state.names), self.initial.inputs
        self.initial.set_fields(slots, vars(state))
        inputs[slots] = 0
        commanded = slots[slots >= self.by_door]
        inputs[commanded, : self._given.shape[1]] = self._given[commanded]

    # The wind, which they share.

    def blow(self, wind: Wind) -> None:
        """Change the wind, unless `CompiledWorld.check_wind` refuses it."""
        self.world.check_wind(wind)
        self.wind = wind
        self.world.wind[:] = wind.numbers(gust_period(self.freq) / self.freq)

    # Drones that come and go, in slots of this world or another.

    def add(self, name: str, pose: np.ndarray) -> None:
        """Put a drone into a free slot.

        Args:
            name: A new name.
            pose: (7,) its initial position and attitude (xyzw).
        """
        free = min(set(range(self.n_slots)).difference(self.slots.values()))
        self.initial.set_poses([free], pose[None])
        self.set_slots(self.slots | {name: free})
        self.reset([name])

    def remove(self, names: Sequence[str]) -> None:
        """Free the slots of drones."""
        for name in names:
            self.led.pop(name, None)
            self.initial.park(self.slots[name])
        self.reset(names)
        gone = set(names)
        self.set_slots({other: i for other, i in self.slots.items() if other not in gone})

    def arrange(self, names: Sequence[str]) -> None:
        """Change the order of the drones."""
        self.set_slots({name: self.slots[name] for name in names})

    def set_slots(self, slots: dict[str, int]) -> None:
        """Record which slots are in use, and which of them by drones that are not lost."""
        used, everything = list(slots.values()), range(self.n_slots)
        self.slots, self.names = slots, tuple(slots)
        self.rows = slice(None) if used == list(everything) else np.array(used)
        in_service = {slots[name] for name in slots.keys() - self.lost.keys() - self.led.keys()}
        self._idle = [slot for slot in everything if slot not in in_service]

    def _set_inputs(self, inputs: np.ndarray) -> None:
        columns = self.world.form.inputs
        self.all_inputs, self._given = inputs, inputs[:, : columns["level"].stop]
        self.command, self.level = inputs[:, columns["command"]], inputs[:, columns["level"].start]
        n, size = self.by_door, self.world.form.n_rotors
        self.door_commands = self.command[:n, :size], self.level[:n]
        self.wrench = inputs[:, columns["wrench"]]
        self.motor_loss = inputs[:, columns["motor_loss"]]

    def other_world(self, n_slots: int, *, controller: Controller, **kind: Any) -> CompiledWorld:
        """Return a world of a kind with at least as many slots, for `move_to`. Thread-safe."""
        config = replace(self._config, controller=controller.value)
        return CompiledWorld(config, n_slots, by_door=self.by_door, **kind)

    def move_to(self, world: CompiledWorld) -> None:
        """Continue in another world; the state of the drones is copied.

        If the controller changes, the new one begins as in its first run.
        """
        before, n_slots, leaves = self.n_slots, world.n_drones, self.world.leaves
        world.wind[:] = self.world.wind
        self.world = world
        world.take_inputs(self.all_inputs)
        self._set_inputs(world.inputs)
        self.output.extend(n_slots)
        self.initial = self.initial.extended(world.inputs)
        self.set_slots(self.slots)
        self.gains.give(world)
        more = self.world.fresh()
        for path in leaves.keys() & more.keys():
            if world.is_own(path):
                more[path][:, :before] = leaves[path]
            else:
                more[path] = leaves[path]
        added = np.arange(before, n_slots)
        self._fill(more, added, self.initial.fields(added))
