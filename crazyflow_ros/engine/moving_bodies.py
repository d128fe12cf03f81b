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

from crazyflow_ros.engine.attachments import Attachment
from crazyflow_ros.engine.compiled_world import CompiledWorld
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.coupled_drones import CoupledDrones, Rows
from crazyflow_ros.engine.levels import OUT_OF_SERVICE, Level
from crazyflow_ros.engine.wakes import Wakes
from crazyflow_ros.scene.bodies import Bodies, Touches, carry_over
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.scene.frames import wxyz_to_xyzw, xyzw_to_wxyz

_MOST_SUBSTEPS = 64
_FAR = 1e6  # m, rad, and m/s or rad/s: what is beyond has lost its state


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
        self._substeps = min(_MOST_SUBSTEPS, math.ceil(1 / config.freq / model.opt.timestep - 1e-6))
        model.opt.timestep = 1 / config.freq / self._substeps
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self._is_rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self._drones, self._freq = CoupledDrones(model, names, config), config.freq
        self._wakes = Wakes(model, self._drones.index, config.drone_model)
        self._have_wakes = config.downwash
        self.data = self._drones.data
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
        self._drones.forget()
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
        if body in self._drones.index.body:
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
            "felt": self._drones.felt.copy(),
        }

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Continue from the result of `captured` for the same bodies."""
        signature, qacc = int(self._model.signature), np.zeros(self._model.nv)
        Bodies(signature, kept["state"], qacc).write(self._model, self.data)
        own = Bodies.of(self._model, mujoco.MjData(self._model))
        self._initial = Bodies(signature, kept["initial"], qacc)
        self._is_captured = not np.array_equal(kept["initial"], own.state)
        self._drones.felt = kept["felt"].copy()

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
        self._drones.use(world, slots)
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
        out, level = world.form.outputs, world.form.inputs["level"].start
        lost, turns = out["lost"].start, out["rotor_vel"]
        drones, gone = self._drones, np.zeros(world.n_drones, bool)
        impact = np.zeros(len(drones.held))
        drones.use(world, slots)
        drones.hold()
        for k in range(n_ticks):
            row = drones.alone(tick + k, 1)
            if np.count_nonzero(row[:, lost]):
                gone |= row[:, lost] > 0
                world.inputs[gone, level] = OUT_OF_SERVICE
                drones.hold()
            rate = drones.rate()
            for call in self._before_tick:
                call(self._model, self.data)
            self._integrate(rate, row[slots, turns], world.conditions)
            if not self._is_sound():
                self._put_back(rate)
            if drones.tells or k == n_ticks - 1:
                drones.feel(rate)
            contact = drones.contact()
            if contact is not drones.nothing:
                np.maximum(impact, np.abs(contact[:, :3]).max(axis=1), out=impact)
            drones.store()
        output = drones.corrected(row.astype(float), rate[:, :6], drones.felt, contact)
        output[:, lost] = gone
        output[slots, out["impact"].start] = impact
        return output

    def _evaluate(self, world: CompiledWorld, slots: Rows, tick: int, _: int) -> np.ndarray:
        """Return the output at a tick, without any effect on the next one."""
        data, drones = self.data, self._drones
        drones.use(world, slots)
        row = drones.alone(tick, 0).astype(float)
        drones.hold()
        rate = drones.present_rate(row)
        warm = data.qacc_warmstart.copy()
        mujoco.mj_step1(self._model, data)
        drones.push(rate)
        mujoco.mj_forward(self._model, data)
        data.qacc_warmstart[:] = warm
        felt = data.qacc[drones.index.qvel[:, :6]] - rate[:, :6]
        felt[drones.held] = 0.0
        return drones.corrected(row, rate[:, :6], felt, drones.contact())

    def _integrate(self, rate: np.ndarray, turns: np.ndarray, conditions: Conditions) -> None:
        """Advance drones and bodies by a tick.

        Args:
            rate: (M, 6 + n) accelerations of the drones' joints alone.
            turns: (M, n) speeds of their rotors [RPM].
            conditions: The air.
        """
        data, model, pushed = self.data, self._model, self.data.xfrc_applied
        for _ in range(self._substeps):
            mujoco.mj_step1(model, data)
            self._drones.push(rate)
            blown = self._wakes.forces(data, turns, conditions) if self._have_wakes else None
            if blown is not None:
                bodies, forces = blown
                before = pushed[bodies, :3]
                pushed[bodies, :3] += forces
            if self._is_rk4:
                mujoco.mj_step(model, data)
            else:
                mujoco.mj_step2(model, data)
            if blown is not None:
                pushed[bodies, :3] = before

    def _is_sound(self) -> bool:
        """Return whether MuJoCo's state is one."""
        data = self.data
        qpos, qvel, qacc = data.qpos, data.qvel, data.qacc
        size = qpos.dot(qpos) + qvel.dot(qvel)
        return bool(size < _FAR**2) and math.isfinite(qacc.dot(qacc))

    def _put_back(self, rate: np.ndarray) -> None:
        """Return the bodies to their initial state; the drones move as they do alone."""
        data, drones, index = self.data, self._drones, self._drones.index
        pose = index.qpos[:, :7]
        self.failed = "their state was no longer a number or out of bounds"
        here = data.qpos[pose]
        self._initial.write(self._model, data)
        data.qpos[pose] = here
        data.qvel[index.qvel[:, :6]] = (drones.before + rate / self._freq)[:, :6]
