"""The state of the drones, in the slots of a compiled world; some slots may be free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.gains import Tuned
from crazyflow_ros.drones import load_battery
from crazyflow_ros.dynamics import RPM, Dynamics
from crazyflow_ros.engine.compiled_world import SHARED, CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import BatteryCharge, Disturbance, MotorEfficiency, Wind
from crazyflow_ros.engine.form import POS_LOW, Leaves, gust_period
from crazyflow_ros.engine.initial_poses import initial_poses
from crazyflow_ros.engine.initial_state import InitialState
from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level, rows
from crazyflow_ros.engine.output import Output
from crazyflow_ros.engine.slots import slots_for
from crazyflow_ros.engine.snapshot import SIZES, Fields, Snapshot
from crazyflow_ros.engine.tuned_gains import TunedGains
from crazyflow_ros.scene.frames import yaw
from crazyflow_ros.sim.cascade import check_controller
from crazyflow_ros.sim.policies import POLICY
from crazyflow_ros.sim.wind import N_FILTERS

_DRAWN = "plugins.battery"  # leaf with the charge drawn from each battery
_POSE = ("states.pos", "plugins." + POS_LOW, "states.quat")
_BEGUN = ("estimate.quat", "estimate.seen")  # with zeros, the filter starts with the true state
_NEVER = -1  # tick of loss of a drone that is not lost
_NONE = np.zeros((0, 0, 0))
_MANY = 1_000_000  # external poses, after which their numbers start again


class Engine:
    """The state of the drones, and the compiled function that advances it. Not thread-safe.

    Attributes:
        world: The compiled function, and the form of the state.
        names: Names of the drones, in the order of the rows of a snapshot.
        rows: Slots of the drones, to index the four arrays below, which have one row per slot.
        command: Numbers of each drone's command.
        level: Their `Level`.
        wrench: External force [N] and torque [N m] on the centre of mass, world frame.
        motor_loss: Share of the speed that each rotor loses, 0 to 1.
        wind: Present wind.
        lost: Drones that were lost, see `isolation`, and have not been reset since, each with the
            tick by which it was lost.
    """

    rows: slice | np.ndarray
    command: np.ndarray
    level: np.ndarray
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
    ) -> None:
        """Build the simulation.

        Args:
            config: Configuration; its control mode is ignored if a door flies all drones.
            names: Names of the drones.
            n_slots: Number of drones for which there is room without recompiling; at least the
                given ones.
            by_door: Those of the drones that a door flies, in its order; they stay, and have the
                first slots.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`.
        """
        self._config, self._by_door = config, len(by_door)
        n_slots, gusts = slots_for(max(n_slots, len(names))), config.gust_intensity > 0
        self.world = world = CompiledWorld(config, n_slots, by_door=self._by_door, gusts=gusts)
        self.freq, self.control = world.freq, world.control
        self.control_period = world.control_period
        self._blow(Wind(config.wind, config.gust_intensity, config.gust_altitude))
        self.lost: dict[str, int] = {}
        self._gains = TunedGains()
        self._set_inputs(world.inputs)
        self._output = Output(config, world.n_drones, world.form.outputs)
        self._initial = InitialState(self._inputs)
        in_slots = [*by_door, *(name for name in names if name not in by_door)]
        slots = {name: in_slots.index(name) for name in names}
        self._initial.set_poses(list(slots.values()), initial_poses(config, len(names)))
        self._set_slots(slots)
        self.reset()

    @property
    def n_slots(self) -> int:
        """Number of drones for which there is room."""
        return self.world.n_drones

    @property
    def config(self) -> SimulationConfig:
        """The configuration, with the present controller."""
        return replace(self._config, controller=self.world.controller.value)

    def initial_poses(self) -> np.ndarray:
        """Return position and attitude (xyzw) of each drone after a reset, shape (M, 7)."""
        return self._initial.poses(self._slots_of(self.names))

    @property
    def door_commands(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (n, 4) and levels (n,) of the commands of a door, to write to."""
        n, size = self._by_door, Control.rotor_vel.sizes[0]
        return self.command[:n, :size], self.level[:n]

    def set_commands(self, names: Sequence[str], commands: np.ndarray) -> None:
        """Set commands of drones, (n, k + 1) with their levels."""
        self._given[self._slots_of(names)] = commands

    @property
    def rotors_obey(self) -> bool:
        """Whether commands are rotor speeds, and no door gives them."""
        return self.control is Control.rotor_vel and not self._by_door

    def command_rotors(self, names: Sequence[str], speeds: np.ndarray) -> np.ndarray:
        """Command rotor speeds [rad/s], (n, 4), where they are new; no effect unless they obey.

        Drones that have no command keep none if their rotors are to stand still.

        Returns:
            (n,) bool, which were new.
        """
        if not self.rotors_obey:
            return np.zeros(len(names), bool)
        slots = self._slots_of(names)
        present = np.where(self.level[slots, None] > Level.held, self.command[slots], 0)
        new = (speeds / RPM).astype(present.dtype)
        is_new: np.ndarray = (new != present).any(axis=1)
        self._given[slots[is_new]] = rows(Level.rotor_vel, new[is_new])
        return is_new

    def inputs(self, names: Sequence[str]) -> np.ndarray:
        """Return what determines the next ticks of drones besides their state, (n, k).

        It is the command, the level, and the external force and torque.
        """
        return self._inputs[self._slots_of(names), : self.world.form.inputs["wrench"].stop]

    def set_inputs(self, names: Sequence[str], inputs: np.ndarray) -> None:
        """Set the result of `inputs`."""
        self._inputs[self._slots_of(names), : inputs.shape[1]] = inputs

    def disarm(self, name: str) -> None:
        """Stop the rotors of a drone, until it gets a command."""
        self.level[self._slots[name]] = Level.held

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
        else:
            leaves, slots = self.world.leaves, self._slots_of(names)
            self._refresh(leaves, slots)
            self.lost = {name: tick for name, tick in self.lost.items() if name not in names}
        self._inputs[slots] = self._initial.inputs[slots]
        self._set_slots(self._slots)
        self._fill(leaves, slots, self._initial.fields(slots))
        for name in self.names if names is None else names:
            self.untune(name)

    def restart(self, name: str, fields: Fields, *, charged: bool) -> None:
        """Reset a drone in a given state, with its rotors at rest, as after its power was off.

        Args:
            name: Name of the drone.
            fields: The state; its estimator begins there.
            charged: Whether its battery is full afterwards; otherwise it keeps its charge.
        """
        slots, leaves = self._slots_of([name]), self.world.leaves
        drawn = leaves.get(_DRAWN)
        kept = None if drawn is None or charged else drawn[0, slots].copy()
        self.reset([name])
        self.disarm(name)
        self.put([name], fields)
        if kept is not None:
            self._set_leaves(name, {_DRAWN: kept})
        if self.world.leaves.get("estimate.initial") is not None:
            pos, quat = np.asarray(fields["pos"])[0], np.asarray(fields["quat"])[0]
            self.restart_estimate(name, np.array([*pos, float(yaw(quat))]))

    def withdraw(self, name: str, tick: int) -> None:
        """Take a drone out of service: hold it where it is with stopped rotors, until a reset."""
        self.lost |= {name: tick}
        self._set_slots(self._slots)
        self.put([name], {"rotor_vel": np.zeros((1, SIZES["rotor_vel"]))})

    def put(self, names: Sequence[str], fields: Fields) -> None:
        """Change the state of drones; their controllers keep their memory.

        The estimators of drones that are put elsewhere start again there: nothing that a drone
        measures would tell it.
        """
        slots, leaves = self._slots_of(names), self.world.leaves
        before = [leaves[path][0, slots] for path in _POSE]
        self._fill(leaves, slots, fields)
        if _BEGUN[0] in leaves:
            after = [leaves[path][0, slots] for path in _POSE]
            moved = np.any([(a != b).any(axis=1) for a, b in zip(before, after)], axis=0)
            for path in _BEGUN:
                leaves[path][0, slots[moved]] = 0
            self.world.leaves = leaves

    def capture_initial_state(self, state: Snapshot) -> None:
        """Make a state the initial one, with the commands in force, except those of a door."""
        slots, inputs = self._slots_of(state.names), self._initial.inputs
        self._initial.set_fields(slots, vars(state))
        inputs[slots] = 0
        commanded = slots[slots >= self._by_door]
        inputs[commanded, : self._given.shape[1]] = self._given[commanded]

    def add(self, name: str, pose: np.ndarray) -> None:
        """Put a drone into a free slot.

        Args:
            name: A new name.
            pose: (7,) its initial position and attitude (xyzw).
        """
        free = min(set(range(self.n_slots)).difference(self._slots.values()))
        self._initial.set_poses([free], pose[None])
        self._set_slots(self._slots | {name: free})
        self.reset([name])

    def remove(self, names: Sequence[str]) -> None:
        """Free the slots of drones."""
        for name in names:
            self._initial.park(self._slots[name])
        self.reset(names)
        gone = set(names)
        self._set_slots({other: i for other, i in self._slots.items() if other not in gone})

    def arrange(self, names: Sequence[str]) -> None:
        """Change the order of the drones."""
        self._set_slots({name: self._slots[name] for name in names})

    def other_world(self, n_slots: int, *, gusts: bool, controller: Controller) -> CompiledWorld:
        """Return a world with at least as many slots, for `move_to`. Thread-safe."""
        config = replace(self._config, controller=controller.value)
        return CompiledWorld(config, n_slots, by_door=self._by_door, gusts=gusts)

    def move_to(self, world: CompiledWorld) -> None:
        """Continue in another world; the state of the drones is copied.

        If the controller changes, the new one begins as in its first run.
        """
        before, n_slots, leaves = self.n_slots, world.n_drones, self.world.leaves
        world.wind[:] = self.world.wind
        self.world = world
        world.inputs[:before] = self._inputs
        self._set_inputs(world.inputs)
        self._output.extend(n_slots)
        self._initial = self._initial.extended(world.inputs)
        self._set_slots(self._slots)
        self._gains.give(world, self._slots)
        more = self.world.fresh()
        for path in leaves.keys() & more.keys():
            if world.is_own(path):
                more[path][:, :before] = leaves[path]
            else:
                more[path] = leaves[path]
        added = np.arange(before, n_slots)
        self._fill(more, added, self._initial.fields(added))

    def capture(self) -> dict[str, np.ndarray]:
        """Return everything that determines the drones' future, in the order of their names."""
        slots = self._slots_of(self.names)
        leaves = self.world.leaves
        own = {
            f"state/{path}": v[:, slots] if self.world.is_own(path) else v.ravel()
            for path, v in leaves.items()
        }
        initial = {f"initial/{name}": v for name, v in self._initial.fields(slots).items()}
        return {
            f"state/{SHARED}": np.zeros(N_FILTERS, self.command.dtype),  # unless there are gusts
            **own,
            **initial,
            "inputs": self._inputs[slots],
            "initial_inputs": self._initial.inputs[slots],
            "rotor_angle": self._output.rotor_angle[slots],
            "rotor_vel": self._output.rotor_vel[slots],
            "lost": np.array([self.lost.get(name, _NEVER) for name in self.names]),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from the result of `capture` for the same drones."""
        slots, leaves = self._slots_of(self.names), self.world.leaves
        for path, values in leaves.items():
            if self.world.is_own(path):
                values[:, slots] = arrays[f"state/{path}"]
            else:
                leaves[path] = arrays[f"state/{path}"].reshape(values.shape)
        self._initial.set_fields(slots, {name: arrays[f"initial/{name}"] for name in SIZES})
        self._inputs[slots] = arrays["inputs"]
        self._initial.inputs[slots] = arrays["initial_inputs"]
        self._output.set_rotors(slots, arrays)
        self.lost = {n: t for n, t in zip(self.names, arrays["lost"].tolist()) if t != _NEVER}
        self.world.leaves = leaves
        self._set_slots(self._slots)

    def restart_estimate(self, name: str, initial: np.ndarray) -> None:
        """Let the estimator of a drone start again.

        Args:
            name: Name of the drone.
            initial: (4,) initial estimate: position [m] and yaw [rad].
        """
        from crazyflow_ros.estimation.estimate import restarted  # which few simulations need

        fresh = restarted(initial)
        self._set_leaves(name, {f"estimate.{field}": value for field, value in fresh.items()})

    def tell_pose(self, name: str, pose: np.ndarray, std: Sequence[float]) -> None:
        """Let the estimator of a drone use an external pose as a measurement in its next run.

        Args:
            name: Name of the drone.
            pose: (7,) position [m] and attitude (xyzw), zeros if the attitude is unknown.
            std: Standard deviations of position [m] and attitude [rad].
        """
        number = self.world.leaves["estimate.external"][0, self._slots[name], -1] + 1
        self._set_leaves(name, {"estimate.external": [*pose, *std, number % _MANY]})

    def _set_leaves(self, name: str, leaves: Mapping[str, ArrayLike]) -> None:
        """Set a drone's part of leaves."""
        present = self.world.leaves
        for path, values in leaves.items():
            present[path][0, self._slots[name]] = values
        self.world.leaves = present

    def disturb(self, disturbance: Disturbance) -> None:
        """Apply a disturbance.

        Raises:
            ValueError: It has no effect on these drones.
        """
        match disturbance:
            case Wind():
                self._blow(disturbance)
            case MotorEfficiency(drone, motor, efficiency):
                if not self.world.has_rotors:
                    dynamics = self._config.dynamics
                    raise ValueError(f"dynamics {dynamics} have no motors, first_principles do")
                self.motor_loss[self._slots[drone], motor] = 1 - np.sqrt(efficiency)
            case BatteryCharge(drone, charge):
                if not self._config.battery:
                    raise ValueError("the drones have no batteries; start with battery=true")
                drawn = (1 - charge) * load_battery(self._config.drone_model)["capacity"]
                self._set_leaves(drone, {_DRAWN: drawn})

    def check_wind(self, wind: Wind) -> None:
        """Check that wind has an effect, unless it is calm.

        Raises:
            ValueError: The dynamics have no drag.
        """
        if not (self.world.feels_wind or wind.is_calm):
            need = "wind needs dynamics first_principles or so_rpy_rotor_drag"
            raise ValueError(f"{need}, got {self._config.dynamics}")

    def policy_failed(self, name: str) -> bool:
        """Return whether a policy flew the drone, and its output was not a number."""
        memory = self.world.leaves.get(f"plugins.{POLICY}")
        return memory is not None and not np.isfinite(memory[0, self._slots[name]]).all()

    def check_controller(self, controller: Controller) -> None:
        """Check that commands pass through a controller.

        Raises:
            ValueError: They do not, in this control mode or with these dynamics, or because a
                policy flies the drones.
        """
        if self._config.policy:
            raise ValueError("a policy flies the drones in place of the controllers")
        check_controller(controller, self.control, Dynamics(self._config.dynamics))

    def tune(self, name: str, controller: Controller, gains: Mapping[str, np.ndarray]) -> None:
        """Change gains of a drone until its next reset, at once if it flies with their controller.

        Args:
            name: Name of the drone.
            controller: Controller that the gains belong to.
            gains: New values by name, see `control.gains`; the other gains stay.

        Raises:
            ValueError: A gain has no effect.
        """
        self._gains.tune(self.world, name, self._slots[name], controller, gains)

    def untune(self, name: str) -> None:
        """Give a drone the controllers' own gains."""
        self._gains.forget(self.world, name, self._slots[name])

    @property
    def tuned(self) -> Mapping[str, Tuned]:
        """Gains by drone that replace those of the controllers."""
        return self._gains.captured(self.names)

    @tuned.setter
    def tuned(self, tuned: Mapping[str, Tuned]) -> None:
        self._gains.restore(self.world, self._slots, tuned)

    def _blow(self, wind: Wind) -> None:
        self.check_wind(wind)
        self.wind = wind
        self.world.wind[:] = wind.numbers(gust_period(self.freq) / self.freq)

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
            slots = self._slots_of(names)
            self._given[slots] = commands[0]
            later[:] = self._given
            later[:, slots] = commands[1:]
        else:
            later[:] = self._given
        if self._idle:
            self.level[self._idle] = OUT_OF_SERVICE
        columns = self.world.advance(tick, stretches).astype(float)
        if len(later):
            self._given[:] = later[-1]
        lost = columns[:, self.rows, self.world.form.outputs["lost"].start]
        if np.count_nonzero(lost):
            self._note_lost(tick, stretches, lost)
        return self._output.snapshots(columns, self.rows, self.names, tick, stretches, epoch)

    def _note_lost(self, tick: int, stretches: Sequence[int], lost: np.ndarray) -> None:
        """Record which drones were lost in each stretch after a tick."""
        for end, row in zip(tick + np.cumsum(stretches), lost):
            self.lost |= dict.fromkeys(np.array(self.names)[row > 0].tolist(), int(end))
        self._set_slots(self._slots)

    def time_ns(self, tick: int) -> int:
        """Return the simulation time of a tick [ns]."""
        return self._output.time_ns(tick)

    def _slots_of(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._slots[name] for name in names], int)

    def _set_inputs(self, inputs: np.ndarray) -> None:
        columns = self.world.form.inputs
        self._inputs, self._given = inputs, inputs[:, : columns["level"].stop]
        self.command, self.level = inputs[:, columns["command"]], inputs[:, columns["level"].start]
        self.wrench = inputs[:, columns["wrench"]]
        self.motor_loss = inputs[:, columns["motor_loss"]]

    def _set_slots(self, slots: dict[str, int]) -> None:
        """Record which slots are in use, and which of them by drones that are not lost."""
        used, everything = list(slots.values()), range(self.n_slots)
        self._slots, self.names = slots, tuple(slots)
        self.rows = slice(None) if used == list(everything) else np.array(used)
        in_service = {slot for name, slot in slots.items() if name not in self.lost}
        self._idle = [slot for slot in everything if slot not in in_service]

    def _refresh(self, leaves: Leaves, slots: np.ndarray) -> None:
        """Reset the controllers, and whatever else is stored for a drone."""
        for path, values in self.world.fresh().items():
            if self.world.is_own(path):
                leaves[path][0, slots] = values[0, slots]

    def _fill(self, leaves: Leaves, slots: np.ndarray, fields: Fields) -> None:
        """Replace some fields in leaves, and make these the state."""
        for name in fields.keys() & {"quat", "vel", "ang_vel"}:
            leaves[f"states.{name}"][0, slots] = fields[name]
        if "pos" in fields:
            _place(leaves["states.pos"][0], leaves[f"plugins.{POS_LOW}"][0], slots, fields["pos"])
        if "rotor_vel" in fields and self.world.has_rotors:
            leaves["states.rotor_vel"][0, slots] = fields["rotor_vel"] / RPM
        self._output.set_rotors(slots, fields)
        self.world.leaves = leaves


def _place(high: np.ndarray, low: np.ndarray, slots: np.ndarray, pos: np.ndarray) -> None:
    """Write positions as sums of two numbers; those of drones that stay keep all their digits."""
    moves = pos != high[slots] + low[slots].astype(float)
    high[slots] = np.where(moves, pos, high[slots])
    low[slots] = np.where(moves, pos - high[slots].astype(float), low[slots])
