"""A policy as the controller of drones in state control, whose commands are its goals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.control import Control
from crazyflow_ros.drones import check_quadrotor, model_name
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.policy.network import column_by_column
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.policy.policy_files import load
from crazyflow_ros.sim.controls import BodyRateControl
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.hanging import load_motion
from crazyflow_ros.sim.policies import POLICY
from crazyflow_ros.sim.sim import Sim
from crazyflow_ros.sim.stages import control_stages, measured, run_every

_PLACE = ("position", "position_error")


class PolicyFile:
    """A policy of a file, see `FlyingPolicy`.

    Args:
        file: Its path.
        drone: Model of the drones to fly.

    Raises:
        ParameterError: See `sim.policies.policy_of`.
    """

    def __init__(self, file: str, drone: str) -> None:
        self._file, self._drone = file, drone
        try:
            self._policy = load(file, drone)
        except (ValueError, ModuleNotFoundError) as error:
            raise ParameterError("policy", str(error)) from None

    @property
    def freq(self) -> int:
        """See `FlyingPolicy`, as all others."""
        return self._policy.freq

    @property
    def description(self) -> str:
        """What flies the drones."""
        policy, flown = self._policy, model_name(self._drone)
        text = f"the policy {self._file} flies the drones, {policy.freq} actions a second"
        if policy.drone != flown:
            text += f"; it was made for {policy.drone}, and they are {flown}"
        if not any(part.removeprefix("body_") in _PLACE for part in policy.observation.parts):
            text += "; it does not observe where its goal is, so that drones only fly as fast as it"
        return text

    def check(self, freq: int, control: str, dynamics: str, flown_by: str) -> None:
        """Check that it can fly the drones of a node."""
        if control != Control.state:
            raise ParameterError("control", f"a policy needs state, got {control!r}")
        if flown_by:
            name, _, value = flown_by.partition(" ")
            need = "none" if name == "door" else "off"
            raise ParameterError(name, f"a policy needs {need}, got {value!r}")
        if told := self._policy.observation.told:
            only = f"{self._file} observes {', '.join(told)}, which only environments tell"
            raise ParameterError("policy", only)
        if self._policy.observation.eye is not None:
            how = "fly it over topics, with the program `policy`"
            raise ParameterError("policy", f"{self._file} sees pictures: {how}")
        if freq % self.freq:
            raise ParameterError("freq", f"a multiple of the policy's {self.freq} Hz", freq)
        own = self._policy.action.control
        if own is not Control.attitude and not Dynamics(dynamics).has_rotors:
            need = f"a policy that commands {own} needs first_principles"
            raise ParameterError("dynamics", f"{need}, got {dynamics!r}")

    def fly(self, sim: Sim) -> None:
        """Fly the drones of a simulation."""
        follow_policy(sim, self._policy)


def follow_policy(sim: Sim, policy: Policy) -> None:
    """Let a policy fly the drones of a simulation in state control.

    A command is then its goal: position, velocity and yaw, see `Policy.act_towards`.

    Args:
        sim: A simulation with `control="state"` and a `state_freq` of `policy.freq`.
        policy: The policy.

    Raises:
        ValueError: The simulation has another control mode or rate, its dynamics do not accept the
            policy's commands, its drones are no quadrotors, or the policy sees pictures
            or is told terms of a task.
    """
    check_quadrotor(sim.drone, "a policy")
    if policy.observation.eye is not None or policy.observation.told:
        what = "sees pictures" if policy.observation.eye else "observes terms of a task"
        raise ValueError(f"a policy that {what} flies in an Environment")
    level, mode = sim.data.controls.state, policy.action.control
    if level is None:
        raise ValueError(f"a policy needs control=state for its goals, this one has {sim.control}")
    if level.freq != policy.freq:
        raise ValueError(f"the policy needs state_freq={policy.freq}, got {level.freq}")
    own = control_stages(sim.dynamics, Control.state)
    if mode is Control.body_rate:
        sim.data, sim.default_data = (_with_body_rate(sim, x) for x in (sim.data, sim.default_data))
    others = tuple(stage for stage in sim.step_pipeline if stage not in own)
    n_before = next(i for i, stage in enumerate(sim.step_pipeline) if stage in own)
    sim.step_pipeline = (
        *others[:n_before],
        ControlPolicy(policy),
        *control_stages(sim.dynamics, mode),
        *others[n_before:],
    )


@dataclass(frozen=True, eq=False)
class ControlPolicy:
    """Stage that computes the policy's commands at its rate."""

    policy: Policy

    def begin(self, data: SimData) -> SimData:
        """Return the data with the initial memory."""
        size = (data.core.n_worlds, data.core.n_drones)
        memory = jnp.concatenate(self.policy.initial_state(size), axis=-1)
        return data.replace(plugins=data.plugins | {POLICY: memory.astype(data.states.pos.dtype)})

    def __call__(self, data: SimData) -> SimData:
        """Run the policy in the worlds where it is due."""
        return run_every(data, data.core.freq // self.policy.freq, self._act)

    def _act(self, data: SimData) -> SimData:
        controls, states = data.controls, measured(data)
        assert controls.state is not None
        cmd = controls.state.cmd
        is_goal = controls.armed
        start = self.policy.initial_state()
        ends = np.cumsum([part.size for part in start])[:-1].tolist()
        memory = data.plugins[POLICY]
        before = PolicyState(*jnp.split(memory, ends, axis=-1))
        motion = Motion(
            pos=states.pos,
            quat=states.quat,
            vel=states.vel,
            ang_vel=states.ang_vel,
            rotor_vel=states.rotor_vel,
            goal=jnp.where(is_goal, cmd[..., :3], states.pos),
            goal_vel=jnp.where(is_goal, cmd[..., 3:6], 0),
            goal_acc=jnp.where(is_goal, cmd[..., 6:9], 0),
            action=before.action,
            **load_motion(data),
        )
        after, command = self.policy.act_towards(before, motion, cmd[..., 9:13], column_by_column)
        # Rotors stand still until the drone is armed, which is when the policy begins. A policy
        # that has failed begins again only after a reset.
        failed = ~jnp.isfinite(memory).all(axis=-1, keepdims=True)
        kept = jnp.where(
            controls.armed | failed, jnp.concatenate(after, axis=-1), jnp.concatenate(start)
        )
        mode = self.policy.action.control
        if mode is Control.rotor_vel:
            controls = controls.replace(rotor_vel=command)
        else:
            level = getattr(controls, mode).replace(cmd=command)
            controls = controls.replace(**{mode.value: level})
        return data.replace(
            controls=controls, plugins=data.plugins | {POLICY: kept.astype(memory.dtype)}
        )


def _with_body_rate(sim: Sim, data: SimData) -> SimData:
    """Return the data with a body rate controller at the rate of the attitude controller."""
    assert data.controls.attitude is not None
    freq = data.controls.attitude.freq
    level = BodyRateControl.create(sim.n_worlds, sim.n_drones, sim.drone, freq)
    return data.replace(controls=replace(data.controls, body_rate=level))
