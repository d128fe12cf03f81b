"""A policy as the controller of drones in state control, whose commands are its goals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.policy.network import column_by_column
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.sim.cascade import control_stages
from crazyflow_ros.sim.data import POLICY, BodyRateControl, SimData
from crazyflow_ros.sim.sim import Sim
from crazyflow_ros.sim.stages import measured, run_every


def follow_policy(sim: Sim, policy: Policy) -> None:
    """Let a policy fly the drones of a simulation in state control.

    A command is then its goal: position, velocity and yaw, see `Policy.act_towards`.

    Args:
        sim: A simulation with `control="state"` and a `state_freq` of `policy.freq`.
        policy: The policy.

    Raises:
        ValueError: The simulation has another control mode or rate, its dynamics do not accept the
            policy's commands, or the policy sees pictures.
    """
    if policy.observation.eye is not None:
        raise ValueError("a policy that sees pictures flies in an Environment with its eye")
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
