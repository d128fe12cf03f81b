"""The state of the drones, in the slots of a compiled world; some slots may be free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.air import gust_period
from crazyflow_ros.engine.compiled_world import SHARED, CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import (
    BatteryCharge,
    Disturbance,
    MotorEfficiency,
    Wind,
)
from crazyflow_ros.engine.form import CONTACT, LOST, N_BELIEVED, N_DESIRED, Leaves
from crazyflow_ros.engine.initial_poses import initial_poses
from crazyflow_ros.engine.isolation import OUT_OF_SERVICE
from crazyflow_ros.engine.snapshot import SIZES, Believed, Snapshot
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.estimation.estimate import restarted
from crazyflow_ros.sim.actuation import CRAZYFLIE_BATTERY
from crazyflow_ros.sim.cascade import check_controller
from crazyflow_ros.sim.policy import MEMORY
from crazyflow_ros.sim.wind import N_FILTERS

Fields = Mapping[str, np.ndarray]
"""Some of the fields of `SIZES`, with the units and frames of `MirrorState`, one row per drone."""

_PARKED = 1e5  # m, altitude of free slots: far from the drones, and side by side
_BATTERY, _POLICY = "plugins.battery", f"plugins.{MEMORY}"
_NEVER = -1  # tick of loss of a drone that is not lost
_TURN = 2 * np.pi  # rad
_NONE = np.zeros((0, 0, 0))
_MANY = 1_000_000  # poses from outside, after which their numbers start again


class Engine:
    """The state of the drones, and the compiled function that advances it. Not thread-safe.

    Attributes:
        names: Names of the drones, in the order of the rows of a snapshot.
        rows: Slots of the drones, to index the four arrays below, which have one row per slot.
        command: Command of each drone, in the form of the control mode, or of its level.
        armed: 0 stops the rotors, 1 arms the drone; with levels, the drone's `Level`.
        wrench: External force [N] and torque [N m] on the centre of mass, world frame.
        motor_loss: Share of the speed that each rotor loses, 0 to 1.
        wind: Present wind.
        lost: Drones that were lost, see `isolation`, and have not been reset since, with the tick
            by which they were lost.
    """

    rows: slice | np.ndarray
    command: np.ndarray
    armed: np.ndarray
    wrench: np.ndarray
    motor_loss: np.ndarray
    wind: Wind

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        *,
        n_slots: int = 0,
        levels: bool = False,
    ) -> None:
        """Build the simulation.

        Args:
            config: Configuration; its control mode is ignored with `levels`.
            names: Names of the drones.
            n_slots: Number of drones for which there is room without recompiling; at least the
                given ones.
            levels: Command each drone at a `Level` of its own.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`.
        """
        self._config, self._levels = config, levels
        self._world = world = CompiledWorld(
            config,
            max(n_slots, len(names)),
            levels=levels,
            gusts=config.gust_intensity > 0,
        )
        self.freq, self.control, self.control_period = (
            world.freq,
            world.control,
            world.control_period,
        )
        self._blow(Wind(config.wind, config.gust_intensity, config.gust_altitude))
        poses = initial_poses(config, len(names))
        self.lost: dict[str, int] = {}
        self._tuned: dict[str, dict[Controller, dict[str, np.ndarray]]] = {}
        self._set_inputs(world.inputs)
        self._rotor_angle = self._rotor_vel = np.zeros((world.n_drones, 4))
        self._initial = _parked(0, world.n_drones)
        self._initial["pos"][: len(names)] = poses[:, :3]
        self._initial["quat"][: len(names)] = poses[:, 3:]
        self._initial_inputs = np.zeros_like(self._inputs)
        self._set_slots({name: slot for slot, name in enumerate(names)})
        self.reset()

    @property
    def n_slots(self) -> int:
        """Number of drones for which there is room."""
        return self._world.n_drones

    @property
    def world(self) -> CompiledWorld:
        """The compiled function, and the form of the state."""
        return self._world

    @property
    def config(self) -> SimulationConfig:
        """The configuration, with the present controller."""
        return replace(self._config, controller=self._world.controller.value)

    @property
    def has_estimator(self) -> bool:
        """Whether drones fly on an estimate of their state."""
        return self._config.estimator != Estimator.none

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles that the drones collide with, besides the floor z = 0 and one another."""
        return self._world.obstacles

    @property
    def max_stretches(self) -> int:
        """Maximum number of stretches of ticks in one call of `advance`."""
        return self._world.max_stretches

    def initial_poses(self) -> np.ndarray:
        """Return position and attitude (xyzw) of each drone after a reset, shape (M, 7)."""
        slots = self._slots_of(self.names)
        return np.hstack((self._initial["pos"][slots], self._initial["quat"][slots]))

    def set_commands(self, names: Sequence[str], commands: np.ndarray) -> None:
        """Set commands of drones, in the form of the control mode, and arm the drones."""
        slots = self._slots_of(names)
        self.command[slots], self.armed[slots] = commands, True

    def disarm(self, name: str) -> None:
        """Stop the rotors of a drone, until it gets a command."""
        self.armed[self._slots[name]] = False

    def reset(self, names: Sequence[str] | None = None) -> None:
        """Return drones to their initial state, with reset controllers and without external forces.

        They are disarmed, unless `capture_initial_state` has stored commands for them.

        Args:
            names: Names of the drones; None resets all, and the state that they share.
        """
        if names is None:
            leaves, slots = self._world.fresh(), np.arange(self.n_slots)
            self.lost.clear()
        else:
            leaves, slots = self._world.leaves, self._slots_of(names)
            self._refresh(leaves, slots)
            self.lost = {name: tick for name, tick in self.lost.items() if name not in names}
        self._inputs[slots] = self._initial_inputs[slots]
        self._set_slots(self._slots)
        self._fill(leaves, slots, {name: values[slots] for name, values in self._initial.items()})

    def withdraw(self, name: str, tick: int) -> None:
        """Take a drone out of service: hold it where it is with stopped rotors, until a reset."""
        self.lost |= {name: tick}
        self._set_slots(self._slots)
        self.put([name], {"rotor_vel": np.zeros((1, SIZES["rotor_vel"]))})

    def put(self, names: Sequence[str], fields: Fields) -> None:
        """Change the state of drones; their controllers keep their memory."""
        self._fill(self._world.leaves, self._slots_of(names), fields)

    def capture_initial_state(self, state: Snapshot, *, commands: bool) -> None:
        """Make a state the initial one; with `commands`, include the commands in force."""
        slots = self._slots_of(state.names)
        for name, values in self._initial.items():
            values[slots] = getattr(state, name)
        self._initial_inputs[slots] = self._inputs[slots] if commands else 0
        self._initial_inputs[slots, self.control.sizes[0] + 1 :] = 0  # the rest is not a command

    def add(self, name: str, pose: np.ndarray) -> None:
        """Put a drone into a free slot.

        Args:
            name: A new name.
            pose: (7,) its initial position and attitude (xyzw).
        """
        free = [slot for slot in range(self.n_slots) if slot not in self._slots.values()]
        self._initial["pos"][free[0]], self._initial["quat"][free[0]] = pose[:3], pose[3:]
        self._set_slots(self._slots | {name: free[0]})
        self.reset([name])

    def remove(self, name: str) -> None:
        """Free the slot of a drone."""
        slot = self._slots[name]
        self._tuned.pop(name, None)
        self._world.tune(slot, {})
        for field, values in _parked(slot, slot + 1).items():
            self._initial[field][slot] = values[0]
        self._initial_inputs[slot] = 0
        self.reset([name])
        self._set_slots({other: i for other, i in self._slots.items() if other != name})

    def arrange(self, names: Sequence[str]) -> None:
        """Change the order of the drones."""
        self._set_slots({name: self._slots[name] for name in names})

    def other_world(self, n_slots: int, *, gusts: bool, controller: Controller) -> CompiledWorld:
        """Return a world with at least as many slots, for `move_to`. Thread-safe."""
        config = replace(self._config, controller=controller.value)
        return CompiledWorld(config, n_slots, levels=self._levels, gusts=gusts)

    def move_to(self, world: CompiledWorld) -> None:
        """Continue in another world; the state of the drones is copied.

        If its controller is another one, that begins as in its first run.
        """
        before, n_slots, leaves = self.n_slots, world.n_drones, self._world.leaves
        world.wind[:] = self._world.wind
        self._world = world
        parked = _parked(before, n_slots)
        self._initial = {k: np.concatenate((v, parked[k])) for k, v in self._initial.items()}
        self._rotor_angle = np.concatenate((self._rotor_angle, parked["rotor_angle"]))
        self._rotor_vel = np.concatenate((self._rotor_vel, parked["rotor_vel"]))
        inputs = self._world.inputs
        inputs[:before] = self._inputs
        initial_inputs = np.zeros_like(inputs)
        initial_inputs[:before] = self._initial_inputs
        self._initial_inputs = initial_inputs
        self._set_inputs(inputs)
        self._set_slots(self._slots)
        self._tune_all()
        more = self._world.fresh()
        for path in leaves.keys() & more.keys():
            if world.is_own(path):
                more[path][:, :before] = leaves[path]
            else:
                more[path] = leaves[path]
        self._fill(more, np.arange(before, n_slots), parked)

    def capture(self) -> dict[str, np.ndarray]:
        """Return all that determines the drones' future, in the order of their names."""
        slots = self._slots_of(self.names)
        leaves = self._world.leaves
        own = {
            f"state/{path}": v[:, slots] if self._world.is_own(path) else v.ravel()
            for path, v in leaves.items()
        }
        initial = {f"initial/{name}": values[slots] for name, values in self._initial.items()}
        no_gust = {f"state/{SHARED}": np.zeros(N_FILTERS, self.command.dtype)}
        return (
            no_gust
            | own
            | initial
            | {
                "inputs": self._inputs[slots],
                "initial_inputs": self._initial_inputs[slots],
                "rotor_angle": self._rotor_angle[slots],
                "rotor_vel": self._rotor_vel[slots],
                "lost": np.array([self.lost.get(name, _NEVER) for name in self.names]),
            }
        )

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from the result of `capture` for the same drones."""
        slots, leaves = self._slots_of(self.names), self._world.leaves
        for path, values in leaves.items():
            if self._world.is_own(path):
                values[:, slots] = arrays[f"state/{path}"]
            else:
                leaves[path] = arrays[f"state/{path}"].reshape(values.shape)
        for name, values in self._initial.items():
            values[slots] = arrays[f"initial/{name}"]
        self._inputs[slots] = arrays["inputs"]
        self._initial_inputs[slots] = arrays["initial_inputs"]
        self._rotor_angle = _with(self._rotor_angle, slots, arrays["rotor_angle"])
        self._rotor_vel = _with(self._rotor_vel, slots, arrays["rotor_vel"])
        self.lost = {n: t for n, t in zip(self.names, arrays["lost"].tolist()) if t != _NEVER}
        self._world.leaves = leaves
        self._set_slots(self._slots)

    def restart_estimate(self, name: str, initial: np.ndarray) -> None:
        """Let the estimator of a drone start again.

        Args:
            name: Name of the drone.
            initial: (4,) where it believes to stand: position [m] and yaw [rad].
        """
        self._set_estimate(name, restarted(initial))

    def tell_pose(self, name: str, pose: np.ndarray, std: Sequence[float]) -> None:
        """Let the estimator of a drone measure a pose from outside in its next run.

        Args:
            name: Name of the drone.
            pose: (7,) position [m] and attitude (xyzw), zeros if that is unknown.
            std: Standard deviations of position [m] and attitude [rad].
        """
        number = self._world.leaves["estimate.external"][0, self._slots[name], -1] + 1
        told = np.array([*pose, *std, number % _MANY])
        self._set_estimate(name, {"external": told})

    def _set_estimate(self, name: str, fields: Fields) -> None:
        leaves = self._world.leaves
        for field, values in fields.items():
            leaves[f"estimate.{field}"][0, self._slots[name]] = values
        self._world.leaves = leaves

    def disturb(self, disturbance: Disturbance) -> None:
        """Apply a disturbance.

        Raises:
            ValueError: It has no effect on these drones.
        """
        match disturbance:
            case Wind():
                self._blow(disturbance)
            case MotorEfficiency(drone, motor, efficiency):
                if not self._world.has_rotors:
                    raise ValueError(
                        "there are no motors: expected dynamics first_principles, "
                        f"got {self._config.dynamics}"
                    )
                self.motor_loss[self._slots[drone], motor] = 1 - np.sqrt(efficiency)
            case BatteryCharge(drone, charge):
                if not self._config.battery:
                    raise ValueError("the drones have no batteries: expected battery=true at start")
                drawn = (1 - charge) * CRAZYFLIE_BATTERY.capacity
                leaves = self._world.leaves
                leaves[_BATTERY][0, self._slots[drone]] = drawn
                self._world.leaves = leaves

    def check_wind(self, wind: Wind) -> None:
        """Check that wind has an effect, unless it is calm.

        Raises:
            ValueError: The dynamics have no drag.
        """
        if not (self._world.feels_wind or wind.is_calm):
            expected = "expected dynamics first_principles or so_rpy_rotor_drag"
            raise ValueError(f"wind has no effect: {expected}, got {self._config.dynamics}")

    def policy_failed(self, name: str) -> bool:
        """Return whether a policy flew the drone, and its output was not a number."""
        memory = self._world.leaves.get(_POLICY)
        return memory is not None and not np.isfinite(memory[0, self._slots[name]]).all()

    def check_controller(self, controller: Controller) -> None:
        """Check that commands pass through a controller.

        Raises:
            ValueError: They do not, in this control mode or with these dynamics, or as a policy
                flies the drones.
        """
        if self._config.policy:
            raise ValueError("a policy flies the drones in place of the controllers")
        check_controller(controller, self.control, Dynamics(self._config.dynamics))

    def tune(self, name: str, controller: Controller, gains: Mapping[str, np.ndarray]) -> None:
        """Change gains of a drone, now if it flies with their controller; a reset keeps them.

        Args:
            name: Name of the drone.
            controller: Whose gains they are.
            gains: New values by name, see `control.gains`; the others stay.

        Raises:
            ValueError: A gain has no effect.
        """
        tuned = self._tuned.get(name, {})
        new = tuned | {controller: tuned.get(controller, {}) | dict(gains)}
        if controller is self._world.controller:
            self._world.tune(self._slots[name], new[controller])
        self._tuned[name] = new

    def _blow(self, wind: Wind) -> None:
        self.check_wind(wind)
        self.wind = wind
        self._world.wind[:] = wind.numbers(gust_period(self.freq) / self.freq)

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
            commands: (n, m, k) their commands in each stretch, in the form of `set_commands`.

        Returns:
            The state after each stretch.
        """
        later = self._world.later[: len(stretches) - 1]
        if names:
            self.set_commands(names, commands[0])
        later[:] = self.command
        if names:
            later[:, self._slots_of(names)] = commands[1:]
        if self._idle:
            self.armed[self._idle] = OUT_OF_SERVICE
        columns = self._world.advance(tick, stretches).astype(float)
        if len(later):
            self.command[:] = later[-1]
        rotor_vel = columns[:, :, 25:29] * RPM
        columns = columns[:, self.rows]
        self._note_lost(tick, stretches, columns)
        snapshots = []
        for n, rows, speeds in zip(stretches, columns, rotor_vel):
            tick += n
            turned = (self._rotor_vel + speeds) * (n / self.freq / 2)
            self._rotor_angle = angle = (self._rotor_angle + turned) % _TURN
            self._rotor_vel = speeds
            snapshots.append(self._snapshot(tick, epoch, rows, angle, speeds))
        return snapshots

    def _note_lost(self, tick: int, stretches: Sequence[int], columns: np.ndarray) -> None:
        """Record which drones were lost in each stretch after a tick; columns (n, M, 36)."""
        if np.count_nonzero(columns[:, :, LOST]):
            for end, row in zip(tick + np.cumsum(stretches), columns[:, :, LOST]):
                self.lost |= dict.fromkeys(np.array(self.names)[row > 0].tolist(), int(end))
            self._set_slots(self._slots)

    def _snapshot(
        self, tick: int, epoch: int, rows: np.ndarray, angle: np.ndarray, speeds: np.ndarray
    ) -> Snapshot:
        # Assigning the fields of a frozen dataclass takes seven times longer.
        snapshot = object.__new__(Snapshot)
        vars(snapshot).update(
            names=self.names,
            time_ns=self.time_ns(tick),
            pos=rows[:, :3],
            quat=rows[:, 3:7],
            vel=rows[:, 7:10],
            ang_vel=rows[:, 10:13],
            acc=rows[:, 13:16],
            ang_acc=rows[:, 16:19],
            body_vel=rows[:, 19:22],
            specific_force=rows[:, 22:25],
            rotor_angle=angle[self.rows],
            rotor_vel=speeds[self.rows],
            tick=tick,
            epoch=epoch,
            contact=rows[:, CONTACT],
            battery=rows[:, CONTACT.stop : CONTACT.stop + 3] if self._config.battery else None,
            believed=self._believed(rows),
            desired=self._desired(rows),
        )
        return snapshot

    def _desired(self, rows: np.ndarray) -> np.ndarray | None:
        if not self._world.has_desired:
            return None
        start = CONTACT.stop + 3 * self._config.battery
        return rows[:, start : start + N_DESIRED]

    def _believed(self, rows: np.ndarray) -> Believed | None:
        if not self.has_estimator:
            return None
        columns = rows[:, -N_BELIEVED:].copy()
        starts = ~columns[:, 3:7].any(axis=1)  # with the true state, in the next tick
        columns[starts, :10] = rows[starts, :10]
        return Believed(*np.split(columns, [3, 7, 10], axis=1))

    def time_ns(self, tick: int) -> int:
        """Return the simulation time of a tick [ns]."""
        return tick * 1_000_000_000 // self.freq

    def _slots_of(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._slots[name] for name in names], int)

    def _set_inputs(self, inputs: np.ndarray) -> None:
        k = self.control.sizes[0]
        self._inputs = inputs
        self.command, self.armed = inputs[:, :k], inputs[:, k]
        self.wrench, self.motor_loss = inputs[:, k + 1 : k + 7], inputs[:, k + 7 :]

    def _set_slots(self, slots: dict[str, int]) -> None:
        """Record which slots are in use, and which of them by drones that are not lost."""
        used, everything = list(slots.values()), range(self.n_slots)
        self._slots, self.names = slots, tuple(slots)
        self.rows = slice(None) if used == list(everything) else np.array(used)
        in_service = {slot for name, slot in slots.items() if name not in self.lost}
        self._idle = [slot for slot in everything if slot not in in_service]

    def _tune_all(self) -> None:
        """Give the present controller the gains that drones have."""
        world = self._world
        for name, slot in self._slots.items():
            tuned = self._tuned.get(name, {}).get(world.controller, {})
            world.tune(slot, {gain: tuned[gain] for gain in tuned.keys() & world.gains})

    def _refresh(self, leaves: Leaves, slots: np.ndarray) -> None:
        """Reset the controllers, and whatever else is stored for a drone."""
        for path, values in self._world.fresh().items():
            if self._world.is_own(path):
                leaves[path][0, slots] = values[0, slots]

    def _fill(self, leaves: Leaves, slots: np.ndarray, fields: Fields) -> None:
        """Set the state to leaves, with some fields replaced."""
        for name in fields.keys() & {"pos", "quat", "vel", "ang_vel"}:
            leaves[f"states.{name}"][0, slots] = fields[name]
        if "rotor_vel" in fields:
            if self._world.has_rotors:
                leaves["states.rotor_vel"][0, slots] = fields["rotor_vel"] / RPM
            self._rotor_vel = _with(self._rotor_vel, slots, fields["rotor_vel"])
        if "rotor_angle" in fields:
            self._rotor_angle = _with(self._rotor_angle, slots, fields["rotor_angle"])
        self._world.leaves = leaves


def _with(values: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return a copy with other rows, because snapshots hold the present array."""
    values = values.copy()
    values[rows] = new
    return values


def _parked(first: int, stop: int) -> dict[str, np.ndarray]:
    """Return the state of free slots."""
    fields = {name: np.zeros((stop - first, size)) for name, size in SIZES.items()}
    fields["pos"][:, 0], fields["pos"][:, 2] = np.arange(first, stop), _PARKED
    fields["quat"][:, 3] = 1.0
    return fields
