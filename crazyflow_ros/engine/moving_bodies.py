"""Drones in a world whose bodies move: MuJoCo integrates all of it, tick by tick.

The compiled function computes what a drone does alone, with its controllers, rotors and air. MuJoCo
gets this as the acceleration of the drone without constraints, adds contacts, friction, cables and
welds, which act both ways, and integrates the motion of drones and bodies together. The compiled
function then continues from there. So a stiff cable between a drone and a load of its own mass is
as stable as MuJoCo's implicit constraints are.

The drones' state is rounded as the compiled function has it after each tick, so that a flight does
not depend on how many ticks are computed in a call.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import mujoco
import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.attachments import Attachment
from crazyflow_ros.engine.compiled_world import CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.form import POS_LOW, Leaves
from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.scene.bodies import Bodies, Touches, carry_over
from crazyflow_ros.scene.frames import rotation_matrix, wxyz_to_xyzw, xyzw_to_wxyz
from crazyflow_ros.scene.mirror_state import DroneIndex

_LOW = f"plugins.{POS_LOW}"
_VELOCITIES = ("states.vel", "states.ang_vel", "states.rotor_vel")
_HEAVY = 1e9  # kg and kg m^2, added to drones that are held, so that nothing moves them
_RIGID = 1.0  # kg m^2, added to rotors: contacts do not change their speed relative to the drone
_MOST_SUBSTEPS = 64
_ROUNDING = 1e-6  # m/s^2 and rad/s^2, of what drones feel
_FAR = 1e6  # m, rad, and m/s or rad/s: what is beyond has lost its state


Rows: TypeAlias = slice | np.ndarray

BodiesCallback: TypeAlias = Callable[[mujoco.MjModel, mujoco.MjData], None]
"""Takes the model and the state of drones and bodies before a tick, and may set `ctrl` of actuators
and forces on bodies; the drones are not its own."""


class MovingBodies:
    """The bodies of a world and the drones among them, see above. Not thread-safe.

    Args:
        model: Model of the mirror; it is copied.
        names: Names of the drones, in the order of all arrays.
        config: The simulation.
        before_tick: Called before each tick, see `BodiesCallback`.

    Attributes:
        data: MuJoCo's state of drones and bodies.
        tells_touches: Whether `advance` returns contacts with the states of the bodies.
        failed: Why the bodies were put back to their initial state, until someone takes note.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        names: Sequence[str],
        config: SimulationConfig,
        before_tick: Sequence[BodiesCallback] = (),
    ) -> None:
        self._model = model = copy.copy(model)
        self._before_tick = before_tick
        self._index, self._freq = DroneIndex(model, names), config.freq
        figures = load_drone(config.drone_model)
        self._mass, self._inertia = figures["mass"], np.array(figures["J"])
        self._dofs, self._free = self._index.qvel, self._index.qvel[:, :6]
        self._pose = self._index.qpos[:, :7]
        self._substeps = min(_MOST_SUBSTEPS, math.ceil(1 / config.freq / model.opt.timestep - 1e-6))
        model.opt.timestep = 1 / config.freq / self._substeps
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self._is_rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        model.dof_armature[self._dofs[:, 6:]] = _RIGID
        motors = self._index.ctrl
        model.actuator_gainprm[motors] = model.actuator_biasprm[motors] = 0.0
        trees = model.dof_treeid[self._free[:, 0]]
        model.tree_sleep_policy[trees] = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
        if not config.drone_collisions:
            owners = model.body_rootid[model.geom_bodyid]
            model.geom_conaffinity[np.isin(owners, self._index.body)] = 0
        self._held = np.zeros(len(names), bool)
        self._nothing = np.zeros((len(names), 6))
        self._felt = self._told = self._nothing
        """(M, 6) accelerations by contacts, cables and the like in the last tick, and what of it
        the compiled world knows."""
        self._tells = config.estimator != Estimator.none
        self._in_air = bool(model.opt.density or model.opt.viscosity or model.body_gravcomp.any())
        self._rates, self._forces = np.zeros(model.nv), np.zeros(model.nv)
        self.data = mujoco.MjData(model)
        self._sensed = mujoco.MjData(model) if model.nsensor else None
        self._in_tick = model.sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC
        self._in_tick = np.repeat(self._in_tick, model.sensor_dim)
        self._initial, self._is_captured = Bodies.of(model, self.data), False
        self.failed = ""
        self.tells_touches = False

    @property
    def model(self) -> mujoco.MjModel:
        """The model of drones and bodies. It must not be modified."""
        return self._model

    @property
    def bodies(self) -> Bodies:
        """The present state."""
        return Bodies.of(self._model, self.data)

    def readings(self) -> np.ndarray:
        """Return the readings of MuJoCo's sensors, as in sensordata.

        Positions and velocities are the present ones, accelerations and forces those of the last
        tick, because the next one depends on commands to come.
        """
        sensed = self._sensed
        if sensed is None:
            return np.zeros(0)
        self.bodies.write(self._model, sensed)
        mujoco.mj_step1(self._model, sensed)
        return np.where(self._in_tick, self.data.sensordata, sensed.sensordata)

    @property
    def touches(self) -> Touches:
        """The contacts in the last tick."""
        return Touches.of(self._model, self.data)

    def reset(self) -> None:
        """Return to the initial state, without forces from outside."""
        self._felt = self._told = self._nothing
        self.apply({})
        self.data.qfrc_applied[:] = 0.0
        self._initial.write(self._model, self.data)

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._initial, self._is_captured = self.bodies, True

    def put(self, bodies: Bodies) -> None:
        """Continue from a state of these bodies; drones take theirs from the compiled world."""
        bodies.write(self._model, self.data)

    def place(self, name: str, fields: Mapping[str, np.ndarray]) -> None:
        """Change the state of a body with a free joint.

        Args:
            name: Name of the body.
            fields: Some of pos [m], quat (xyzw), vel [m/s], in world axes, and ang_vel [rad/s], in
                axes of the body.

        Raises:
            ValueError: There is no such body, or it has no free joint.
        """
        model, data, joint = self._model, self.data, self._free_joint(name)
        start, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if "pos" in fields:
            data.qpos[start : start + 3] = fields["pos"]
        if "quat" in fields:
            data.qpos[start + 3 : start + 7] = xyzw_to_wxyz(fields["quat"])
        if "vel" in fields:
            data.qvel[dof : dof + 3] = fields["vel"]
        if "ang_vel" in fields:
            data.qvel[dof + 3 : dof + 6] = fields["ang_vel"]
        data.qacc_warmstart[dof : dof + 6] = 0.0

    def has(self, name: str) -> bool:
        """Return whether there is a body of this name that moves."""
        body = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, name)
        return bool(body > 0 and self._model.body_weldid[body])

    def quat(self, name: str) -> np.ndarray:
        """Return the attitude of a body (xyzw) at the last tick."""
        return wxyz_to_xyzw(self.data.body(name).xquat)

    def apply(self, wrenches: Mapping[str, np.ndarray]) -> None:
        """Apply these forces [N] and torques [N m] at the centres of mass of bodies, and no others.

        Args:
            wrenches: In world axes, each (6,), by the names of the bodies.
        """
        self.data.xfrc_applied[:] = 0.0
        for name, wrench in wrenches.items():
            self.data.body(name).xfrc_applied[:] = wrench

    def _free_joint(self, name: str) -> int:
        model = self._model
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
        if body in self._index.body:
            raise ValueError(f"{name} is a drone")
        joint = int(model.body_jntadr[body]) if body > 0 else -1
        if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            raise ValueError(f"{name} does not move freely: it has no free joint")
        return joint

    def captured(self) -> dict[str, np.ndarray]:
        """Return what `restore` needs to continue bit for bit."""
        return {
            "state": self.bodies.state,
            "initial": self._initial.state,
            "felt": self._felt.copy(),
        }

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Continue from the result of `captured` for the same bodies."""
        signature, qacc = int(self._model.signature), np.zeros(self._model.nv)
        Bodies(signature, kept["state"], qacc).write(self._model, self.data)
        own = Bodies.of(self._model, mujoco.MjData(self._model))
        self._initial = Bodies(signature, kept["initial"], qacc)
        self._is_captured = not np.array_equal(kept["initial"], own.state)
        self._felt = kept["felt"].copy()

    def continue_from(self, before: MovingBodies) -> None:
        """Take over the state of those bodies that the world had before, and a captured one."""
        carry_over(before._model, before.data, self._model, self.data)
        self._is_captured = before._is_captured
        if before._is_captured:
            source, target = mujoco.MjData(before._model), mujoco.MjData(self._model)
            before._initial.write(before._model, source)
            carry_over(before._model, source, self._model, target)
            self._initial = Bodies.of(self._model, target)

    def hold(
        self, world: CompiledWorld, slots: Rows, held: Mapping[str, Attachment]
    ) -> dict[str, Attachment]:
        """Adjust what drones hold, by their names, to where everything is now; return it."""
        self._load(world.numbers, slots)
        mujoco.mj_kinematics(self._model, self.data)
        return {drone: one.adjusted(self._model, self.data, drone) for drone, one in held.items()}

    def advance(
        self, world: CompiledWorld, slots: Rows, tick: int, stretches: Sequence[int]
    ) -> tuple[np.ndarray, list[Bodies]]:
        """Advance by one or more stretches of ticks, as `CompiledWorld.advance` does.

        Args:
            world: Computes the drones, without contacts.
            slots: Their slots.
            tick: The present tick.
            stretches: Ticks of each stretch; 0 only evaluates accelerations.

        Returns:
            The output of the compiled world at the end of each stretch, (n, slots, k) float64, with
            the motion that MuJoCo computed, and the state of all bodies then.
        """
        level, results, bodies = world.form.inputs["level"], [], []
        inputs, later = world.inputs, world.later[: len(stretches) - 1].copy()
        for i, n_ticks in enumerate(stretches):
            if i:
                stays = inputs[:, level.start] < Level.held
                inputs[:, : level.stop] = later[i - 1]
                inputs[stays, level.start] = OUT_OF_SERVICE
            step = self._stretch if n_ticks else self._evaluate
            results.append(step(world, slots, tick, n_ticks))
            touches = self.touches if self.tells_touches else None
            bodies.append(replace(self.bodies, touches=touches))
            tick += n_ticks
        return np.stack(results), bodies

    def _stretch(self, world: CompiledWorld, slots: Rows, tick: int, n_ticks: int) -> np.ndarray:
        """Advance by some ticks, at least one; return the output at the end."""
        lost, level = world.form.outputs["lost"].start, world.form.inputs["level"].start
        gone, impact = np.zeros(world.n_drones, bool), np.zeros(len(self._held))
        self._load(world.numbers, slots)
        for k in range(n_ticks):
            row, rate = self._alone(world, slots, tick + k)
            if row[:, lost].any():
                gone |= row[:, lost] > 0
                world.inputs[gone, level] = OUT_OF_SERVICE
            for call in self._before_tick:
                call(self._model, self.data)
            self._integrate(rate)
            contact = self._contact()
            if contact is not self._nothing:
                np.maximum(impact, np.abs(contact[:, :3]).max(axis=1), out=impact)
            self._store(world.numbers, slots)
        output = self._corrected(world, slots, row, rate[:, :6], self._felt, contact)
        output[:, lost] = gone
        output[slots, world.form.outputs["impact"].start] = impact
        return output

    def _evaluate(self, world: CompiledWorld, slots: Rows, tick: int, _: int) -> np.ndarray:
        """Return the output at a tick, without any effect on the next one."""
        data, out = self.data, world.form.outputs
        row = self._informed(world, slots, tick, 0)
        self._load(world.numbers, slots)
        self._hold(self._are_held(world, slots))
        rate = np.zeros(self._dofs.shape)
        rate[:, :3], rate[:, 3:6] = row[slots, out["acc"]], row[slots, out["ang_acc"]]
        rate[:, :6] -= self._told
        rate[self._held] = 0.0
        warm = data.qacc_warmstart.copy()
        mujoco.mj_step1(self._model, data)
        self._push(rate)
        mujoco.mj_forward(self._model, data)
        data.qacc_warmstart[:] = warm
        felt = data.qacc[self._free] - rate[:, :6]
        felt[self._held] = 0.0
        return self._corrected(world, slots, row, rate[:, :6], felt, self._contact())

    def _alone(self, world: CompiledWorld, slots: Rows, tick: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute a tick of each drone alone.

        Returns:
            The output of the compiled world, and accelerations of the drones' joints, (M, 10).
        """
        before = self.data.qvel[self._dofs]
        row = self._informed(world, slots, tick, 1)
        held = self._are_held(world, slots) | (row[slots, world.form.outputs["lost"].start] > 0)
        self._hold(held)
        rate = self._velocities(world.numbers, slots)
        rate -= before
        rate *= self._freq
        if self._tells:
            rate[:, :6] -= self._told
        if held.any():
            rate[held, :6] = 0.0
        return row, rate

    def _informed(self, world: CompiledWorld, slots: Rows, tick: int, n_ticks: int) -> np.ndarray:
        """Advance the compiled world, and tell it what drones have felt in the last tick.

        This moves no drone, because `_alone` takes it off again: it is for accelerometers of
        estimators.
        """
        if not self._tells:
            return world.advance(tick, [n_ticks])[0].astype(float)
        self._told = told = self._felt
        turn = rotation_matrix(world.numbers["states.quat"][slots].astype(float))
        torque = turn @ (told[:, 3:] @ self._inertia.T)[..., None]
        wrench = world.inputs[:, world.form.inputs["wrench"]]
        given = wrench.copy()
        wrench[slots, :3] += self._mass * told[:, :3]
        wrench[slots, 3:] += torque[..., 0]
        row = world.advance(tick, [n_ticks])[0].astype(float)
        wrench[:] = given
        return row

    def _integrate(self, rate: np.ndarray) -> None:
        """Advance drones and bodies by a tick, given the accelerations of the drones alone."""
        data, model, before = self.data, self._model, self.data.qvel[self._free]
        for _ in range(self._substeps):
            mujoco.mj_step1(model, data)
            self._push(rate)
            if self._is_rk4:
                mujoco.mj_step(model, data)
            else:
                mujoco.mj_step2(model, data)
        if not self._is_sound():
            self._put_back(before, rate)
        felt = data.qvel[self._free]
        felt -= before
        felt *= self._freq
        felt -= rate[:, :6]
        if self._held.any():
            felt[self._held] = 0.0
        self._felt = felt

    def _push(self, rate: np.ndarray) -> None:
        """Apply the forces that give the drones these accelerations, unless something stops them.

        Springs and dampers of cables, actuators and constraints act in addition.
        """
        data, dofs = self.data, self._dofs
        self._rates[dofs] = rate
        mujoco.mj_mulM(self._model, data, self._forces, self._rates)
        self._forces += data.qfrc_bias
        if self._in_air:
            self._forces -= data.qfrc_gravcomp
            self._forces -= data.qfrc_fluid
        data.qfrc_applied[dofs] = self._forces[dofs]

    def _contact(self) -> np.ndarray:
        """Return the present contacts' force in the world and torque in the body, (M, 6)."""
        data = self.data
        others = data.ne + data.nf + data.nl  # constraints that are no contacts come first
        if data.nefc == others:
            return self._nothing
        forces = data.efc_force.copy()
        forces[:others] = 0.0
        mujoco.mj_mulJacTVec(self._model, data, self._forces, forces)
        return self._forces[self._free]

    def _are_held(self, world: CompiledWorld, slots: Rows) -> np.ndarray:
        """Return which drones do not move, (M,), see `WorldFunction.is_held`."""
        held = world.inputs[:, world.form.inputs["level"].start] < Level.held
        if world.by_door:
            flown = world.inputs[: world.by_door, world.form.inputs["level"].start]
            held[: world.by_door] = flown <= Level.held
        return held[slots]

    def _hold(self, held: np.ndarray) -> None:
        """Let nothing move these drones."""
        if (held != self._held).any():
            self._held = held
            self._model.dof_armature[self._free] = np.where(held, _HEAVY, 0.0)[:, None]

    def _velocities(self, numbers: Leaves, slots: Rows) -> np.ndarray:
        """Return the velocities of the drones' joints in the compiled world, (M, 10)."""
        velocities = np.concatenate([numbers[path][slots] for path in _VELOCITIES], axis=1).astype(
            float
        )
        velocities[:, 6:] *= RPM
        return velocities

    def _load(self, numbers: Leaves, slots: Rows) -> None:
        """Give MuJoCo the state of the drones."""
        data, pose = self.data, self._pose
        data.qpos[pose[:, :3]] = numbers["states.pos"][slots].astype(float) + numbers[_LOW][slots]
        data.qpos[pose[:, 3:]] = numbers["states.quat"][slots]
        data.qvel[self._dofs] = self._velocities(numbers, slots)

    def _store(self, numbers: Leaves, slots: Rows) -> None:
        """Let both continue from MuJoCo's state of the drones, rounded."""
        qpos, qvel, moving = self.data.qpos[self._pose], self.data.qvel[self._free], slots
        if self._held.any():
            free = ~self._held
            moving, qpos, qvel = np.arange(len(numbers[_LOW]))[slots][free], qpos[free], qvel[free]
        pos = numbers["states.pos"]
        pos[moving] = qpos[:, :3]
        numbers[_LOW][moving] = qpos[:, :3] - pos[moving]
        numbers["states.quat"][moving] = qpos[:, 3:]
        numbers["states.vel"][moving], numbers["states.ang_vel"][moving] = np.split(qvel, 2, axis=1)
        self._load(numbers, slots)

    def _corrected(
        self,
        world: CompiledWorld,
        slots: Rows,
        row: np.ndarray,
        rate: np.ndarray,
        felt: np.ndarray,
        contact: np.ndarray,
    ) -> np.ndarray:
        """Return the output with the motion of MuJoCo.

        Args:
            world: The compiled world.
            slots: Slots of the drones.
            row: Its output.
            rate: (M, 6) accelerations of the drones alone.
            felt: (M, 6) accelerations by everything else. For drones that feel nothing, the output
                has the right ones already.
            contact: (M, 6) see `_contact`.
        """
        out, numbers = world.form.outputs, world.numbers
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
        contact = np.where(self._held[:, None], 0.0, contact)
        own[:, out["contact"]][:, :3] = contact[:, :3]
        own[:, out["contact"]][:, 3:] = (contact[:, None, 3:] @ back)[:, 0]
        row[slots] = own
        return row

    def _is_sound(self) -> bool:
        """Return whether MuJoCo's state is one."""
        data = self.data
        size = data.qpos @ data.qpos + data.qvel @ data.qvel
        return bool(size < _FAR**2) and math.isfinite(data.qacc @ data.qacc)

    def _put_back(self, before: np.ndarray, rate: np.ndarray) -> None:
        """Return the bodies to their initial state; the drones move as they do alone."""
        data, pose = self.data, self._pose
        self.failed = "their state was no longer a number or out of bounds"
        here = data.qpos[pose]
        self._initial.write(self._model, data)
        data.qpos[pose] = here
        data.qvel[self._free] = before + rate[:, :6] / self._freq
