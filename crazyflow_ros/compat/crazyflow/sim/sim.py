"""`Sim` as Crazyflow 0.4 has it: staged commands, any rates, pipelines as ordered dictionaries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding

from crazyflow_ros import sim as ours
from crazyflow_ros.compat.crazyflow.control import mellinger
from crazyflow_ros.compat.crazyflow.control.transform import motor_force2rotor_vel
from crazyflow_ros.compat.crazyflow.drones import Drone
from crazyflow_ros.compat.crazyflow.dynamics.core import load_params
from crazyflow_ros.compat.crazyflow.exception import ConfigError
from crazyflow_ros.compat.crazyflow.sim import dynamics as models
from crazyflow_ros.compat.crazyflow.sim import functional as F  # Crazyflow's name
from crazyflow_ros.compat.crazyflow.sim import integration
from crazyflow_ros.compat.crazyflow.sim.data import SimData, SimStateDeriv
from crazyflow_ros.compat.crazyflow.sim.pipeline import append_fn
from crazyflow_ros.compat.crazyflow.sim.sharding import shard
from crazyflow_ros.compat.crazyflow.staged_controls import staged
from crazyflow_ros.compat.crazyflow.utils import pytree_replace, world_mask
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.compile.stepping import step_fn, tick_of
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.sim import seed_sim, sync_sim2mjx, use_box_collision
from crazyflow_ros.sim.stages import clip_floor_pos, increment_steps
from crazyflow_ros.sim.worlds import Worlds

__all__ = [
    "Sim",
    "build_control_fns",
    "clip_floor_pos",
    "clip_rotor_vel_cmd",
    "contacts",
    "increment_steps",
    "requires_mujoco_sync",
    "reset",
    "rotor_vel_limits",
    "seed_sim",
    "select_dynamics_fn",
    "select_integrate_fn",
    "sync_sim2mjx",
    "use_box_collision",
]

Stage = Callable[[SimData], SimData]
"""A stage of a tick."""


class _Worlds(Worlds):
    """Worlds whose arrays are known by `world_mask`, also those of users' plugins."""

    def owned(self, data: SimData) -> list[bool]:
        """Return for each leaf whether a tick may divide it by worlds and drones."""
        sizes, flags = (1, data.core.n_drones), jax.tree.leaves(world_mask(data))
        return [
            own and x.ndim > 1 and x.shape[1] in sizes
            for own, x in zip(flags, jax.tree.leaves(data))
        ]


class Sim(ours.Sim):
    """A simulation with the interface of Crazyflow's; rendering and contacts are this package's.

    Attributes:
        data: The present data; they are not checked when they are assigned.
        step_pipeline: The stages of a tick by name. `build_step_fn` puts a change into effect.
        reset_pipeline: The stages of a reset by name. `build_reset_fn` puts a change into effect.
    """

    # Plain attributes in place of properties, which check what is assigned.
    data: Any = None
    drone: str
    step_pipeline: OrderedDict[str, Stage] = None  # type: ignore[assignment]
    reset_pipeline: OrderedDict[str, Any] = None  # type: ignore[assignment]

    def __init__(
        self,
        n_worlds: int = 1,
        n_drones: int = 1,
        drone: str = Drone.cf21B_500,
        dynamics: str = Dynamics.default,
        control: str = Control.default,
        integrator: str = Integrator.default,
        freq: int = 500,
        state_freq: int = 100,
        attitude_freq: int = 500,
        body_rate_freq: int = 500,
        force_torque_freq: int = 500,
        device: str = "cpu",
        xml_path: Path | None = None,
        rng_key: int = 0,
        fused_mjx_model: bool = False,
        mesh: Mesh | None = None,
    ) -> None:
        """Build a simulation; see `crazyflow_ros.sim.Sim`.

        Raises:
            ConfigError: The model does not take such commands.
            ValueError: An argument is out of range.
        """
        rotor_commands = (Control.body_rate, Control.force_torque, Control.rotor_vel)
        if dynamics != Dynamics.first_principles and control in rotor_commands:
            raise ConfigError(f"Control mode {control} requires first principles dynamics")
        if freq > 10_000 and not jax.config.read("jax_enable_x64"):
            raise ConfigError("High frequency simulations require double precision mode")
        super().__init__(
            n_worlds,
            n_drones,
            drone,
            dynamics,
            control,
            integrator,
            freq,
            *(freq,) * 4,  # of the controllers, whose data are replaced below
            scene="floor" if xml_path is None else str(xml_path),
            rng_key=rng_key,
            fused_mjx_model=fused_mjx_model,
            device=device,
        )
        self.mesh = mesh
        self._freqs = (state_freq, attitude_freq, body_rate_freq, force_torque_freq)
        self.data = self.init_data(*self._freqs, rng_key)
        if mesh is not None:
            self.shard(mesh)
        self.build_default_data()
        self.reset_pipeline = OrderedDict(reset=reset)
        self.step_pipeline = OrderedDict(build_control_fns(self.control, self.dynamics))
        lower, upper = rotor_vel_limits(self.dynamics, self.drone)
        clip = partial(clip_rotor_vel_cmd, lower=lower, upper=upper, dynamics=self.dynamics)
        append_fn(self.step_pipeline, clip, "clip_rotor_vel_cmd")
        advance = select_integrate_fn(self.integrator, select_dynamics_fn(self.dynamics))
        append_fn(self.step_pipeline, advance, "integration")
        append_fn(self.step_pipeline, clip_floor_pos)
        append_fn(self.step_pipeline, increment_steps)
        self.build_reset_fn()
        self.build_step_fn()

    def init_data(
        self,
        state_freq: int,
        attitude_freq: int,
        body_rate_freq: int,
        force_torque_freq: int,
        rng_key: int | Array,
    ) -> SimData:
        """Return the data of a new simulation with these rates of the controllers [Hz]."""
        names = (Control.state, Control.attitude, Control.body_rate, Control.force_torque)
        rates = (state_freq, attitude_freq, body_rate_freq, force_torque_freq)
        first, size = self._first, (self.n_worlds, self.n_drones)
        controls = staged(first.controls, size, self.drone, dict(zip(names, rates)))
        key = jax.random.key(rng_key) if isinstance(rng_key, int) else rng_key
        ids = [self.mj_model.body(f"drone:{i}").mocapid.item() for i in range(self.n_drones)]
        core = first.core.replace(rng_key=key, drone_mocap_ids=jnp.array(ids, jnp.int32))
        return jax.device_put(first.replace(controls=controls, core=core), self.device)

    def build_data(self) -> SimData:
        """Restore the data of a new simulation, except for the random key, and return them."""
        data = self.init_data(*self._freqs, self.data.core.rng_key)
        self.data = data if self.mesh is None else shard(data, self.mesh)
        return self.data

    def shard(self, mesh: Mesh) -> SimData:
        """Divide the worlds among the devices of a mesh, see `sharding`, and return the data."""
        self.mesh = mesh
        self.data = shard(self.data, mesh)
        if hasattr(self, "default_data"):
            self.default_data = shard(self.default_data, mesh)
        return self.data

    # Steps and resets.

    def build_step_fn(self) -> Any:  # type: ignore[override]
        """Put the present step pipeline into effect; return it as a function of data and ticks."""
        tick, first = tick_of(tuple(self.step_pipeline.values())), self._first
        within = self.mesh  # of data that a transformation traces, which do not say where they are

        @cache
        def on(mesh: Mesh | None) -> Any:
            worlds = _Worlds(first, False, mesh)
            return jax.jit(step_fn(tick, None, worlds), static_argnames="n_steps")

        def step(data: SimData, n_steps: int = 1) -> SimData:
            pos, mesh = data.states.pos, within
            if not isinstance(pos, jax.core.Tracer):
                sharding = pos.sharding
                mesh = None
                if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
                    mesh = sharding.mesh
            advanced: SimData = on(mesh)(data, n_steps=n_steps)
            return advanced

        step._cache_size = on(None)._cache_size  # type: ignore[attr-defined]
        self._step = step
        return step

    def build_reset_fn(self) -> Any:  # type: ignore[override]
        """Put the present reset pipeline into effect; return it as a function.

        Its arguments are data, default data, and a mask (n_worlds,) bool or None.
        """
        stages = tuple(self.reset_pipeline.values())

        @jax.jit
        def reset(data: SimData, default_data: SimData, mask: Array | None = None) -> SimData:
            for stage in stages:
                data = stage(data, default_data, mask)
            return data.replace(core=data.core.replace(mjx_synced=jnp.array(False)))

        self._reset = reset
        return reset

    def step(self, n_steps: int = 1) -> None:
        """Advance all worlds by a number of ticks. A new number compiles again."""
        assert n_steps > 0, "Number of steps must be positive"
        self.data = self._step(self.data, n_steps=n_steps)

    def reset(self, mask: Any = None) -> None:
        """Reset the worlds of a mask (n_worlds,) bool, or all."""
        assert mask is None or mask.shape == (self.n_worlds,), f"Mask shape mismatch {mask.shape}"
        assert self._reset is not None
        self.data = self._reset(self.data, self.default_data, mask)

    def run(self, *_: Any) -> NoReturn:
        """Raise NotImplementedError: programs run in `crazyflow_ros.sim.Sim` only."""
        raise NotImplementedError("run needs crazyflow_ros.sim.Sim; here, use build_step_fn")

    def _command(self, control: Control, cmd: Any) -> None:
        self.data = getattr(F, f"{control}_control")(self.data, cmd)

    @property
    def controllable(self) -> Array:
        """Whether a command takes effect in the next tick of each world, (N, 1) bool."""
        return F.controllable(self.data)

    @property
    def control_freq(self) -> int:
        """Rate of the controller that commands go to, Hz."""
        if self.control is Control.rotor_vel:
            raise NotImplementedError("Control mode rotor_vel has no controller")
        return int(getattr(self.data.controls, self.control).freq)

    # The scene.

    def sync(self) -> None:
        """Update `mjx_data` from `data`, if they are out of date."""
        if not self.data.core.mjx_synced:
            self._view.show(self.data)
            core = self.data.core
            synced = jnp.ones_like(core.mjx_synced)
            self.data = self.data.replace(core=core.replace(mjx_synced=synced))

    def build_mjx_spec(self) -> mujoco.MjSpec:
        """Return the scene before compilation."""
        return self.spec.copy()


def requires_mujoco_sync(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a `Sim` that updates its `mjx_data` first."""

    @wraps(fn)
    def synced(sim: Sim, *args: Any, **kwargs: Any) -> Any:
        sim.sync()
        return fn(sim, *args, **kwargs)

    return synced


def build_control_fns(control: str, dynamics: str) -> tuple[tuple[str, Stage], ...]:
    """Return the controllers of a control mode, in order, with the names of their stages."""
    state = ("state_controller", mellinger.control_state2attitude)
    attitude = ("attitude_controller", mellinger.control_attitude2force_torque)
    body_rate = ("body_rate_controller", mellinger.control_body_rate2force_torque)
    mixer = ("force_torque_controller", mellinger.control_force_torque2rotor_vel)
    commit = ("commit_attitude", mellinger.control_commit_attitude)
    of_rotors: Mapping[str, tuple[tuple[str, Stage], ...]] = {
        Control.state: (state, attitude, mixer),
        Control.attitude: (attitude, mixer),
        Control.body_rate: (body_rate, mixer),
        Control.force_torque: (mixer,),
        Control.rotor_vel: (),
    }
    fitted = {Control.state: (state, commit), Control.attitude: (commit,)}
    known = of_rotors if dynamics == Dynamics.first_principles else fitted
    if control not in known:
        raise NotImplementedError(f"Control mode {control} not implemented for {dynamics}")
    return known[Control(control)]


def select_dynamics_fn(dynamics: str) -> Callable[[SimData], SimStateDeriv]:
    """Return the derivative of a model as a function of `SimData`."""
    fn: Callable[[SimData], SimStateDeriv] = getattr(models, f"{Dynamics(dynamics)}_dynamics")
    return fn


def select_integrate_fn(integrator: str, dynamics_fn: Callable[[SimData], SimStateDeriv]) -> Stage:
    """Return the stage that advances the state by a tick."""
    return partial(getattr(integration, Integrator(integrator)), deriv_fn=dynamics_fn)


def reset(data: SimData, default_data: SimData, mask: Array | None = None) -> SimData:
    """Restore the default data, but not the random key, in the worlds of a mask."""
    if mask is None:
        return default_data.replace(core=default_data.core.replace(rng_key=data.core.rng_key))
    return pytree_replace(data, default_data, world_mask(data), mask)


@jax.jit
def contacts(geom_start: int, geom_count: int, data: Any) -> Array:
    """Return which contacts of MJX data exist that involve some of the geoms, (N, k) bool."""
    contact, end = data._impl.contact, geom_start + geom_count
    first, second = ((geom >= geom_start) & (geom < end) for geom in (contact.geom1, contact.geom2))
    touching: Array = (contact.dist < 0) & (first | second)
    return touching


def rotor_vel_limits(dynamics: str, drone: str) -> tuple[float, float]:
    """Return the limits of rotor speeds [RPM] or, in a fitted model, of the thrust [N]."""
    params = load_params(dynamics, drone)
    limits = np.array([params["thrust_min"], params["thrust_max"]])
    if dynamics == Dynamics.first_principles:
        low, high = motor_force2rotor_vel(limits, params["rpm2thrust"])
    else:
        low, high = 4 * limits
    return float(low), float(high)


def clip_rotor_vel_cmd(data: SimData, lower: Any, upper: Any, dynamics: str) -> SimData:
    """Limit rotor speeds or, in a fitted model, the thrust of the attitude in force."""
    controls = data.controls
    if dynamics == Dynamics.first_principles:
        clipped = jnp.clip(controls.rotor_vel, lower, upper)
        return data.replace(controls=controls.replace(rotor_vel=clipped, actuators=clipped))
    attitude = controls.attitude
    assert attitude is not None
    cmd = attitude.cmd.at[..., 3].set(jnp.clip(attitude.cmd[..., 3], lower, upper))
    attitude = attitude.replace(cmd=cmd)
    return data.replace(controls=controls.replace(attitude=attitude, actuators=cmd))
