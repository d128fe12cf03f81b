"""The drones among the bodies of a world: what passes between MuJoCo and the compiled function.

See `moving_bodies`. The indices are kept, because a tick takes less time than it takes to find
the drones in the arrays of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.compiled_world import CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import POS_LOW, gust_period
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.engine.rotor_ground import RotorGround
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.scene.mirror_state import DroneIndex

_LOW = f"plugins.{POS_LOW}"
_POSE = ("states.pos", "states.quat")
_VELOCITIES = ("states.vel", "states.ang_vel", "states.rotor_vel")
_HEAVY = 1e9  # kg and kg m^2, added to drones that are held, so that nothing moves them
_RIGID = 1.0  # kg m^2, added to rotors: contacts do not change their speed relative to the drone
_ROUNDING = 1e-6  # m/s^2 and rad/s^2, of what drones feel

Rows: TypeAlias = slice | np.ndarray


class CoupledDrones:
    """The drones in MuJoCo and in the compiled world, see above. Not thread-safe.

    Args:
        model: Model of the mirror; its drones are changed.
        names: Names of the M drones, in the order of all arrays.
        config: The simulation.

    Attributes:
        index: Their places in MuJoCo's arrays.
        held: Which of them do not move, (M,).
        felt: (M, 6) accelerations by contacts, cables and the like in the last tick.
        nothing: (M, 6) zeros.
        before: (M, 6 + n) velocities of their joints before the last tick.
        tells: Whether the compiled world has to know what they feel.
        data: MuJoCo's state of drones and bodies.
    """

    def __init__(
        self, model: mujoco.MjModel, names: Sequence[str], config: SimulationConfig
    ) -> None:
        self._model, self.index, self._freq = model, DroneIndex(model, names), config.freq
        figures = load_drone(config.drone_model)
        self._mass, self._inertia = figures["mass"], np.array(figures["J"])
        self._dofs, self._free = self.index.qvel, self.index.qvel[:, :6]
        self._pose = self.index.qpos[:, :7]
        model.dof_armature[self._dofs[:, 6:]] = _RIGID
        motors = self.index.ctrl
        model.actuator_gainprm[motors] = model.actuator_biasprm[motors] = 0.0
        trees = model.dof_treeid[self._free[:, 0]]
        model.tree_sleep_policy[trees] = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
        if not config.drone_collisions:
            owners = model.body_rootid[model.geom_bodyid]
            model.geom_conaffinity[np.isin(owners, self.index.body)] = 0
        self.held, self._any_held = np.zeros(len(names), bool), False
        self.felt = self._told = self.nothing = np.zeros((len(names), 6))
        self.tells = config.estimator != Estimator.none
        self._in_air = bool(model.opt.density or model.opt.viscosity or model.body_gravcomp.any())
        self._rates, self._forces = np.zeros(model.nv), np.zeros(model.nv)
        self._units = np.ones(self._dofs.shape[1])
        self._units[6:] = RPM
        self._speeds = self.before = np.zeros(self._dofs.shape)
        self._ground: RotorGround | None = None
        if config.ground_effect:
            radius = figures["geometry"]["rotor_radius"]
            position = figures["rotors"].position
            self._ground = RotorGround(model, self.index.body, position, radius)
        self.data = mujoco.MjData(model)
        self._world: CompiledWorld
        self._slots: Rows | None = None

    def use(self, world: CompiledWorld, slots: Rows) -> None:
        """Exchange numbers with these slots of a compiled world, and take its state over."""
        if self._slots is not slots or self._world is not world:
            self._world, self._slots, self._state = world, slots, world.state
            places = world.form.views(np.arange(world.state.size))

            def of(*paths: str) -> np.ndarray:
                return np.concatenate([places[path][0][slots] for path in paths], axis=1)

            self._at_low, self._at_velocity = of(_LOW), of(*_VELOCITIES)
            self._at_motion = np.hstack((of(*_POSE), self._at_velocity[:, :6]))
        state, pose = self._state, self._state[self._at_motion[:, :7]].astype(float)
        pose[:, :3] += state[self._at_low]
        self.data.qpos[self._pose] = pose
        self._speeds = state[self._at_velocity] * self._units
        self.data.qvel[self._dofs] = self._speeds

    def hold(self) -> None:
        """Let nothing move drones without a command, or out of service: `WorldFunction.is_held`."""
        world = self._world
        level = world.inputs[:, world.form.inputs["level"].start]
        held = level < Level.held
        held[: world.by_door] = level[: world.by_door] <= Level.held
        held = held[self._slots]
        if (held != self.held).any():
            self.held, self._any_held = held, bool(held.any())
            self._model.dof_armature[self._free] = np.where(held, _HEAVY, 0.0)[:, None]

    def alone(self, tick: int, n_ticks: int) -> np.ndarray:
        """Compute some ticks of each drone alone in the compiled world; return its output.

        It is told what is below their rotors, as often as gusts change. And what drones have felt
        in the last tick, for accelerometers of estimators. This moves no drone, because `rate`
        takes it off again.
        """
        world = self._world
        if self._ground is not None and tick % gust_period(self._freq) == 0:
            pose, floor = self.data.qpos[self._pose], world.conditions.ground
            found = self._ground.heights(self.data, pose, floor)
            world.inputs[self._slots, world.form.inputs["ground"]] = found
        if not self.tells:
            return world.advance(tick, [n_ticks])[0]
        self._told = told = self.felt
        turn = rotation_matrix(world.numbers["states.quat"][self._slots].astype(float))
        torque = turn @ (told[:, 3:] @ self._inertia.T)[..., None]
        wrench = world.inputs[:, world.form.inputs["wrench"]]
        given = wrench.copy()
        wrench[self._slots, :3] += self._mass * told[:, :3]
        wrench[self._slots, 3:] += torque[..., 0]
        row = world.advance(tick, [n_ticks])[0]
        wrench[:] = given
        return row

    def rate(self) -> np.ndarray:
        """Return the accelerations of the drones' joints in the tick of `alone`, (M, 6 + n)."""
        self.before, self._speeds = self._speeds, self._state[self._at_velocity] * self._units
        rate = (self._speeds - self.before) * self._freq
        return self._without_told(rate)

    def present_rate(self, row: np.ndarray) -> np.ndarray:
        """Return the accelerations of the drones in the output of no ticks, (M, 6 + n)."""
        own, out = row[self._slots], self._world.form.outputs
        rate = np.zeros(self._dofs.shape)
        rate[:, :3], rate[:, 3:6] = own[:, out["acc"]], own[:, out["ang_acc"]]
        return self._without_told(rate)

    def _without_told(self, rate: np.ndarray) -> np.ndarray:
        if self.tells:
            rate[:, :6] -= self._told
        if self._any_held:
            rate[self.held, :6] = 0.0
        return rate

    def push(self, rate: np.ndarray) -> None:
        """Apply the forces that give the drones these accelerations, unless something stops them.

        Springs and dampers of cables, actuators and constraints act in addition.
        """
        data, dofs, forces = self.data, self._dofs, self._forces
        self._rates[dofs] = rate
        mujoco.mj_mulM(self._model, data, forces, self._rates)
        own = forces[dofs]
        own += data.qfrc_bias[dofs]
        if self._in_air:
            own -= data.qfrc_gravcomp[dofs]
            own -= data.qfrc_fluid[dofs]
        data.qfrc_applied[dofs] = own

    def forget(self) -> None:
        """Forget what the drones have felt."""
        self.felt = self._told = self.nothing

    def feel(self, rate: np.ndarray) -> None:
        """Find what the drones have felt in a tick in which they had these accelerations alone."""
        felt = (self.data.qvel[self._free] - self.before[:, :6]) * self._freq
        felt -= rate[:, :6]
        if self._any_held:
            felt[self.held] = 0.0
        self.felt = felt

    def contact(self) -> np.ndarray:
        """Return the present contacts' force in the world and torque in the body, (M, 6)."""
        data = self.data
        if not np.count_nonzero(data.qfrc_constraint[self._free]):
            return self.nothing
        others = data.ne + data.nf + data.nl  # constraints that are no contacts come first
        forces = data.efc_force.copy()
        forces[:others] = 0.0
        mujoco.mj_mulJacTVec(self._model, data, self._forces, forces)
        return self._forces[self._free]

    def store(self) -> None:
        """Let both continue from MuJoCo's state of the drones, rounded."""
        data, state = self.data, self._state
        place, motion = data.qpos[self._pose], np.empty(self._at_motion.shape, state.dtype)
        motion[:, :7], motion[:, 7:] = place, data.qvel[self._free]
        low = (place[:, :3] - motion[:, :3]).astype(state.dtype)
        if self._any_held:
            held = self.held
            motion[held], low[held] = state[self._at_motion[held]], state[self._at_low[held]]
        state[self._at_motion], state[self._at_low] = motion, low
        place[:], self._speeds[:, :6] = motion[:, :7], motion[:, 7:]
        place[:, :3] += low
        data.qpos[self._pose], data.qvel[self._dofs] = place, self._speeds

    def corrected(
        self,
        row: np.ndarray,
        rate: np.ndarray,
        felt: np.ndarray,
        contact: np.ndarray,
    ) -> np.ndarray:
        """Return the output with the motion of MuJoCo.

        Args:
            row: The output of the compiled world, float64; it is changed.
            rate: (M, 6) accelerations of the drones alone.
            felt: (M, 6) accelerations by everything else. For drones that feel nothing, the output
                has the right ones already.
            contact: (M, 6) see `contact`.
        """
        out, numbers, slots = self._world.form.outputs, self._world.numbers, self._slots
        own = row[slots]
        turn = rotation_matrix(own[:, out["quat"]])
        gravity = own[:, out["acc"]] - (turn @ own[:, out["specific_force"], None])[..., 0]
        for name, path in (
            ("pos", "states.pos"),
            (POS_LOW, _LOW),
            ("quat", "states.quat"),
            ("vel", "states.vel"),
            ("ang_vel", "states.ang_vel"),
        ):
            own[:, out[name]] = numbers[path][slots]
        differs = np.maximum(np.abs(felt), np.abs(self._told)).max(axis=1) > _ROUNDING
        total = rate + felt
        own[differs, out["acc"]] = total[differs, :3]
        own[differs, out["ang_acc"]] = total[differs, 3:]
        back = rotation_matrix(own[:, out["quat"]]).swapaxes(1, 2)
        own[:, out["body_vel"]] = (back @ own[:, out["vel"], None])[..., 0]
        force = own[:, out["acc"]] - gravity
        own[:, out["specific_force"]] = (back @ force[..., None])[..., 0]
        contact = np.where(self.held[:, None], 0.0, contact)
        own[:, out["contact"]][:, :3] = contact[:, :3]
        own[:, out["contact"]][:, 3:] = (contact[:, None, 3:] @ back)[:, 0]
        row[slots] = own
        return row
