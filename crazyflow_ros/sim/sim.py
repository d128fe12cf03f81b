"""`Sim`: batched quadrotor simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh
from jax.typing import ArrayLike

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import Control, Controller, PowerDistribution
from crazyflow_ros.drones import AnyDrone, Drone
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.sim import functional, stages
from crazyflow_ros.sim.arguments import (
    check_mesh,
    check_obstacles,
    device_of,
    forces_of,
    mask_of,
    models_of,
    positioning_of,
    rates_of,
    steps_of,
    whole,
)
from crazyflow_ros.sim.cascade import check_controller, levels
from crazyflow_ros.sim.common_step import (
    are_shared,
    common_derivative,
    common_ending,
    common_rate_of,
    common_reset_fn,
    common_step,
    common_step_fn,
    rate_of,
    step_stages,
)
from crazyflow_ros.sim.compile.live_data import LiveData
from crazyflow_ros.sim.compile.programs import Program, Stepping
from crazyflow_ros.sim.compile.stepping import (
    StepFn,
    compiled_derivative,
    count,
    deriving,
    step_fn,
    tick_of,
)
from crazyflow_ros.sim.compile.ticks import Ending
from crazyflow_ros.sim.contacts import Contact, ContactSlots, listed, touching_geoms
from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.functional import seed_sim
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.memories import Memories
from crazyflow_ros.sim.mujoco_view import MujocoView, sync_sim2mjx
from crazyflow_ros.sim.one_thread import OneThread
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.reset import ResetFn, reset_fn, restoring
from crazyflow_ros.sim.stages import Stage
from crazyflow_ros.sim.worlds import Worlds, repeated
from crazyflow_ros.xla.kernels import inlined
from crazyflow_ros.xla.on_device import on_device

if TYPE_CHECKING:
    import mujoco
    from mujoco import mjx

    from crazyflow_ros.scene.markers import Marker

_MODES = ("human", "rgb_array", "depth_array", "rgbd_tuple")


class Sim:
    """Quadrotors in parallel worlds, stepped as one compiled function.

    Attributes:
        step_pipeline: Stages of a tick, in order. Assign a changed tuple to change the physics,
            see `pipeline`.
        reset_pipeline: Stages that run after the state has been reset.
        forces: External forces that every evaluation of the dynamics adds; they cannot be changed.
        default_data: Data that a reset restores.
        device: The device of the data; None if the worlds are divided among those of a mesh.
        max_visual_geom: Maximum number of lines, points and capsules in a picture; the last ones
            drawn are kept. A change applies to renderers and windows that are created afterwards.
    """

    max_visual_geom = 10_000

    def __init__(
        self,
        n_worlds: int = 1,
        n_drones: int | None = None,
        drone: AnyDrone | Sequence[AnyDrone] = Drone["default"],
        dynamics: str = Dynamics.default,
        control: str = Control.default,
        integrator: str = Integrator.default,
        freq: int = 500,
        state_freq: int | None = None,
        attitude_freq: int | None = None,
        body_rate_freq: int | None = None,
        force_torque_freq: int | None = None,
        scene: str = "floor",
        forces: Sequence[External | str] | None = None,
        rng_key: int = 0,
        true_mass: bool = False,
        obstacles: Obstacles | None = None,
        mesh: Mesh | None = None,
        controller: str = Controller.default,
        estimator: str = Estimator.default,
        positioning: Positioning | None = None,
        device: str | jax.Device | None = None,
        fused_mjx_model: bool = False,
        power_distribution: str = PowerDistribution.default,
    ) -> None:
        """Build a simulation.

        Args:
            n_worlds: Number of independent worlds.
            n_drones: Number of drones in each world: 1 by default, or as many as `drone` names.
            drone: A `Drone`, or the path of a drone's folder, or one for each drone of a world.
            dynamics: A `Dynamics`.
            control: A `Control`, the meaning of commands.
            integrator: An `Integrator`.
            freq: Physics ticks per second.
            state_freq: Rate of the position controller, Hz. Like the other rates, it must divide
                `freq` if commands pass through that controller. The default is 100, or `freq` if
                that is lower.
            attitude_freq: Rate of the attitude controller, Hz; by default 500 or `freq`.
            body_rate_freq: Rate of the body rate controller, Hz; by default 500 or `freq`.
            force_torque_freq: Rate of the motor mixer, Hz; by default 500 or `freq`.
            scene: Name or path of the MJCF scene.
            forces: External forces, e.g. `floor_contact(drone, freq)`, for the same drones and
                frequency, or names of such, e.g. "floor_contact", also of other packages. None
                means no forces, and a floor that stops drones as Crazyflow's does.
            rng_key: Seed of `data.core.rng_key`.
            true_mass: Whether the position controller uses the thrust that balances gravity, so
                that drones hover at the commanded height; the firmware's value leaves an error.
            obstacles: `data.params.obstacles`, which drones collide with if `forces` contains
                `obstacle_contact` or a similar force of your own. They are not rendered.
            mesh: Devices among which the worlds are divided, evenly and along all its axes, e.g.
                `jax.make_mesh((jax.device_count(),), ("worlds",))`; None for one device.
            controller: A `Controller`, of position and attitude; of attitude alone if commands are
                attitudes. Other control modes have only the default one.
            estimator: An `Estimator`: the source of the state that the controllers use.
            positioning: Source of the estimator's position; by default a Flow deck.
            device: Where the simulation computes: a device of JAX, or a platform (`cpu`, `gpu`,
                `tpu`) for its first device; by default JAX's present default device.
            fused_mjx_model: Whether a drone is drawn as one box, without rotors and LEDs. The MJX
                data then need 40 % of the memory, which matters for swarms in many worlds.
            power_distribution: A `PowerDistribution`: what happens when the rotors cannot give
                thrust and torque together. The default is Crazyflow's, not the firmware's.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        self._one_thread = OneThread()
        models = models_of(drone, n_drones)
        n_worlds, n_drones, freq = whole("n_worlds", n_worlds), len(models), whole("freq", freq)
        check_mesh(mesh, device)
        if not isinstance(rng_key, int | np.integer):
            raise ValueError(f"rng_key must be an integer, got {rng_key!r}")
        self.drone: str | tuple[str, ...]
        self.drone = models[0] if isinstance(drone, str | os.PathLike) else models
        self.dynamics = member(Dynamics, dynamics)
        self.control = member(Control, control)
        self.controller = member(Controller, controller)
        self.integrator = member(Integrator, integrator)
        self.estimator = member(Estimator, estimator)
        positioning = positioning_of(self.estimator, positioning)
        self.n_worlds, self.n_drones, self.freq = n_worlds, n_drones, freq
        self.forces = forces_of(() if forces is None else forces, models, freq)
        check_obstacles(obstacles, self.forces)
        given = {
            Control.state: state_freq,
            Control.attitude: attitude_freq,
            Control.body_rate: body_rate_freq,
            Control.force_torque: force_torque_freq,
        }
        check_controller(self.controller, self.control, self.dynamics)
        rates = rates_of(levels(self.control, self.dynamics), given, freq)

        kind = self.dynamics, self.control, self.integrator
        estimated, clipped = positioning is not None, forces is None
        self._stepping: Stepping | None = None
        shared, stages_of = are_shared(self.forces), (*kind, self.forces, estimated, clipped)
        if shared:
            self._step_pipeline, self._stepping = common_step(*stages_of)
        else:
            self._step_pipeline = step_stages(*stages_of)
        self._reset_pipeline: tuple[ResetStage, ...] = ()
        self._memories = Memories()
        # On a mesh, each process makes its own worlds. Random numbers of estimates differ by world.
        repeats = mesh is not None and positioning is None
        data = SimData.create(
            1 if repeats else n_worlds,
            n_drones,
            drone=self.drone,
            dynamics=self.dynamics,
            control=self.control,
            controller=self.controller,
            freq=freq,
            control_freqs=rates,
            seed=rng_key,
            true_mass=true_mass,
            estimator=self.estimator,
            positioning=positioning,
            power_distribution=member(PowerDistribution, power_distribution),
        )
        data = data.replace(params=data.params.replace(obstacles=obstacles))
        if repeats:
            data = repeated(data, n_worlds)
        self._worlds = Worlds(data, not isinstance(self.drone, str), mesh)
        data = self._worlds.placed(data)
        self.device = None if mesh is not None else device_of(device, data.states.pos)
        if device is not None or self.device not in (None, jax.local_devices()[0]):
            # Stay on the present default device, even if it changes later.
            data = jax.device_put(data, self.device)
        self._first = self.default_data = data
        self._rate = (common_rate_of if shared else rate_of)(self.forces)
        self._ending = common_ending(self.forces) if shared else deriving(self._rate)
        compiled = common_derivative if shared else compiled_derivative
        self._live = LiveData(data, self._worlds, compiled(self._rate, self._worlds))
        self._contact_wrench = inlined(partial(stages.contact_wrench, forces=self.forces))
        self._reset: ResetFn | None = None
        self.scene, self.fused_mjx_model = scene, fused_mjx_model
        sharding = data.states.pos.sharding
        self._view = MujocoView(
            *(self.drone, n_worlds, n_drones, scene),
            fused=fused_mjx_model,
            sharding=sharding,
            renumbered=self._renumber,
        )
        self._markers: list[Marker] = []  # for the next picture

    @property
    def data(self) -> SimData:
        """The present data. Assign to change it.

        Assignment checks shapes and dtypes, but not numbers, for which it would have to wait for
        the device. NaN or a zero quaternion makes the state of its drone NaN.

        Raises:
            ValueError: Something assigned has another shape or dtype; the message names it.
        """
        with self._one_thread:
            return self._live.data

    @data.setter
    def data(self, data: SimData) -> None:
        with self._one_thread:
            self._live.data = data

    @property
    def step_pipeline(self) -> tuple[Stage, ...]:
        """The stages of a tick."""
        return self._step_pipeline

    @step_pipeline.setter
    def step_pipeline(self, pipeline: tuple[Stage, ...]) -> None:
        pipeline = tuple(pipeline)
        before = (self.data, self.default_data)
        self._memories, after = self._memories.following(pipeline, before)
        self.data, self.default_data = map(self._worlds.placed, after)
        self._live.forget_programs()
        self._step_pipeline, self._stepping = pipeline, None

    @property
    def reset_pipeline(self) -> tuple[ResetStage, ...]:
        """The stages that run after a reset."""
        return self._reset_pipeline

    @reset_pipeline.setter
    def reset_pipeline(self, pipeline: tuple[ResetStage, ...]) -> None:
        self._reset_pipeline, self._reset = tuple(pipeline), None

    def step(self, n_steps: int = 1) -> None:
        """Advance all worlds by `n_steps` ticks. A new number of ticks does not recompile.

        Raises:
            ValueError: `n_steps` is not an integer from 1 to `MAX_STEPS`.
            RuntimeError: Another thread is working on this simulation.
        """
        if self._stepping is None:
            self._stepping = Stepping(tick_of(self._step_pipeline))
        n = count(steps_of(n_steps))
        with self._one_thread:
            self._live.run(self._stepping, n)

    def run(self, program: Program, *inputs: Any) -> Any:
        """Advance the data by a custom program, e.g. `Composed(fn)`, and return its results.

        Data stay packed while the same program runs, so this costs less than calling a compiled
        function of `data` and assigning its result.

        Args:
            program: Compiled when it runs for the first time.
            *inputs: Its arguments, pytrees of arrays.

        Raises:
            RuntimeError: Another thread is working on this simulation.
        """
        with self._one_thread:
            return self._live.run(program, *inputs)

    def reset(self, mask: ArrayLike | None = None) -> None:
        """Reset worlds to `default_data`.

        Args:
            mask: (n_worlds,) bool, the worlds to reset; None for all.

        Raises:
            ValueError: The mask has another shape or dtype.
        """
        if mask is not None:
            mask = self._worlds.placed_array(mask_of(mask, self.n_worlds))
        if self._reset is None:
            make = reset_fn if self._reset_pipeline else common_reset_fn
            self._reset = make(self._reset_pipeline, None, self._worlds)
        with self._one_thread:
            data, default = self._live.data, self.default_data
            if mask is None:  # then only the random numbers of the present data matter
                data = default.replace(core=data.core, estimate=data.estimate)
            data = data.replace(states_deriv=default.states_deriv)  # which no stage reads
            self._live.restart(self._reset(data, default, mask))

    def state_control(self, cmd: ArrayLike) -> None:
        """See `functional.state_control`."""
        self._command(Control.state, cmd)

    def attitude_control(self, cmd: ArrayLike) -> None:
        """See `functional.attitude_control`."""
        self._command(Control.attitude, cmd)

    def body_rate_control(self, cmd: ArrayLike) -> None:
        """See `functional.body_rate_control`."""
        self._command(Control.body_rate, cmd)

    def force_torque_control(self, cmd: ArrayLike) -> None:
        """See `functional.force_torque_control`."""
        self._command(Control.force_torque, cmd)

    def rotor_vel_control(self, cmd: ArrayLike) -> None:
        """See `functional.rotor_vel_control`."""
        self._command(Control.rotor_vel, cmd)

    def _command(self, control: Control, cmd: ArrayLike) -> None:
        with self._one_thread:
            self._live.command(control, cmd)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError: compiled functions and user functions cannot be pickled."""
        raise TypeError(
            "a Sim holds compiled functions and cannot be pickled or copied: build another one "
            "with the same arguments, and give it the data, e.g. jax.device_get(sim.data)"
        )

    def seed(self, seed: int) -> None:
        """Set `data.core.rng_key`, and the random numbers of estimates."""
        self.data = seed_sim(self.data, seed, self.device)

    @property
    def time(self) -> Array:
        """(N, 1) time since the last reset, s."""
        return self.data.core.steps / self.freq

    @property
    def control_freq(self) -> int:
        """Rate at which commands take effect, Hz."""
        if self.control is Control.rotor_vel:
            return self.freq
        return int(getattr(self.data.controls, self.control).freq)

    @property
    def controllable(self) -> Array:
        """See `functional.controllable`."""
        return functional.controllable(self.data)

    def build_data(self) -> SimData:
        """Restore the data of a new simulation, except for the random key, and return them.

        Stages start again with their initial memory.
        """
        data, core = self._first, self.data.core
        kept = {"rng_key": core.rng_key, "drone_mocap_ids": core.drone_mocap_ids}
        data = data.replace(core=data.core.replace(**kept))
        _, (data,) = Memories().following(self._step_pipeline, [data])
        self.data = self._worlds.placed(data)
        return self.data

    def build_default_data(self) -> SimData:
        """Make the present data the default data, which a reset restores."""
        self.default_data = self.data
        return self.default_data

    def derivative(self, data: SimData) -> SimStateDeriv:
        """Return the time derivative of `data.states` under the commands in force."""
        return self._rate(data)

    def contact_wrench(self, data: SimData) -> Array:
        """Return the wrench of the contacts among `forces`, computed from `data.states_deriv`.

        Returns:
            (N, M, 6) force [N] and torque [N m] on the centre of mass, world frame.
        """
        return self._contact_wrench(data)

    def build_step_fn(self, derivative: bool = True, last: Ending | None = None) -> StepFn:
        """Return the present pipeline as a pure function of data and number of ticks.

        A plain call is compiled, once for all numbers of ticks. Inside `jax.jit`, `jax.vmap` or
        `jax.grad` the function becomes part of the transformed one; `jax.grad` needs an int as the
        number of ticks.

        Args:
            derivative: Whether to evaluate `states_deriv` at the end, which takes about as long as
                a tick.
            last: Function of the data before and after the ticks, which runs at the end instead of
                that evaluation.
        """
        if last is None and derivative:
            last = self._ending
        stepping = self._stepping
        if stepping and stepping.is_shared and last in (None, self._ending):
            return common_step_fn(stepping.tick, last, self._worlds)
        return step_fn(tick_of(self._step_pipeline), last, self._worlds)

    # The scene in MuJoCo.

    @property
    def spec(self) -> mujoco.MjSpec:
        """The scene before compilation. Edit it, then call `build_mjx`."""
        return self._view.spec

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled scene, one world."""
        return self._view.mj_model

    @property
    def mj_data(self) -> mujoco.MjData:
        """Scratch data of `mj_model`."""
        return self._view.mj_data

    @property
    def mjx_model(self) -> mjx.Model:
        """The compiled scene in MJX, shared by all worlds."""
        return self._view.mjx_model

    @property
    def mjx_data(self) -> mjx.Data:
        """Time, poses and contacts of all worlds, as of the last `sync`."""
        return self._view.mjx_data

    @mjx_data.setter
    def mjx_data(self, mjx_data: mjx.Data) -> None:
        self._view.mjx_data = mjx_data
        self.data = self.data  # no longer synchronised: bodies may have moved

    def build_mjx(self) -> None:
        """Compile the edited `spec`. Closes the viewer."""
        self._view.rebuild()
        self.data = self.data  # no longer synchronised

    def _renumber(self, mocap_ids: np.ndarray) -> None:
        """Let pure functions of the data know the mocap bodies of the drones."""
        ids = on_device(mocap_ids)
        self.data, self.default_data = (
            data.replace(core=data.core.replace(drone_mocap_ids=ids))
            for data in (self.data, self.default_data)
        )

    def sync(self) -> None:
        """Update `mjx_data` from `data`, if it is out of date."""
        if not self._live.is_synced:
            self._view.show(self.data)
            self._live.mark_synced()

    def contacts(self, body: str | None = None) -> Array:
        """Return which contacts exist.

        Args:
            body: Name of a body, to return only the contacts of its own geoms, not those of bodies
                fixed to it.

        Returns:
            (n_worlds, n_slots) bool; see `contact_slots` and `contact_list` for details.
        """
        slots = self.contact_slots()
        if body is None:
            return slots.touching
        owner = self.mj_model.body(body)
        first = int(owner.geomadr[0])
        touching: Array = touching_geoms(slots, first, first + int(owner.geomnum[0]))
        return touching

    def contact_list(self, world: int = 0, body: str | None = None) -> list[Contact]:
        """Return the contacts in a world, deepest first; with `body`, only those of that body.

        Raises:
            ValueError: The world does not exist, or is that of another process.
        """
        self._check_world(world)
        touching = self.contacts(body)
        return listed(self.contact_slots(), world, touching, self.mj_model)

    def contact_slots(self) -> ContactSlots:
        """Return the positions of geoms in all worlds that touch or may touch."""
        self.sync()
        return self._view.contact_slots()

    def render(
        self,
        mode: str = "human",
        world: int = 0,
        camera: int | str = -1,
        cam_config: Mapping[str, Any] | None = None,
        width: int = 640,
        height: int = 480,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray] | None:
        """Render one world.

        Args:
            mode: `human` (a viewer window), `rgb_array`, `depth_array` or `rgbd_tuple`.
            world: Index of the world.
            camera: Name or id of a camera, -1 for the free camera.
            cam_config: Where the free camera is: `distance` [m], `azimuth` and `elevation`
                [degrees], `lookat` (3,) [m], `trackbodyid`; by default the scene's view.
            width: Pixels.
            height: Pixels.

        Returns:
            (height, width, 3) uint8 or (height, width) float32 or both, according to `mode`. Depth
            is in metres along the optical axis, infinite where there is nothing.

        Raises:
            ValueError: The mode, world, camera or its configuration is unknown, the world is that
                of another process, or the size is not positive.
            RenderingUnavailable: OpenGL is not available, or there is no display for a window.
        """
        if mode not in _MODES:
            raise ValueError(f"unknown render mode {mode!r}")
        self._check_world(world)
        self.sync()
        view, size = (camera, cam_config), (width, height)
        drawn = self._view.draw(mode, world, view, size, self._markers, self.max_visual_geom)
        self._markers = []
        return drawn

    @property
    def viewer(self) -> Any:
        """The handle of MuJoCo's viewer that `render` has opened, or None."""
        return self._view.viewer

    def mark(self, markers: list[Marker]) -> None:
        """Draw markers in the next picture; see `visualize`."""
        self._markers = (self._markers + markers)[-self.max_visual_geom :]

    def close(self) -> None:
        """Close the viewer, and free the renderers."""
        self._view.close()

    def _check_world(self, world: int) -> None:
        if not 0 <= world < self.n_worlds:
            raise ValueError(f"world must be one of 0 to {self.n_worlds - 1}, got {world}")

    def owned(self, data: SimData) -> list[bool]:
        """Return for each leaf of data whether its first axis is that of the worlds."""
        return self._worlds.owned(data)

    def build_reset_fn(self, derivative: bool = True) -> ResetFn:
        """Return the reset pipeline as a pure function of data, default data and mask.

        Args:
            derivative: Whether to evaluate `states_deriv`; if so, the function is compiled.
        """
        if derivative:
            shared = not self._reset_pipeline and are_shared(self.forces)
            make = common_reset_fn if shared else reset_fn
            return make(self._reset_pipeline, self._rate, self._worlds)
        return restoring(self._reset_pipeline, self._worlds)


def use_box_collision(sim: Sim, enable: bool = True) -> None:
    """Give the drones boxes, or their default spheres, as collision shapes in MuJoCo.

    This concerns `Sim.contacts` only. It compiles the scene again.

    Args:
        sim: The simulation.
        enable: Whether the shapes are boxes.
    """
    from crazyflow_ros.scene.groups import COLLISION_GROUP, UNUSED_GROUP

    for geom in sim.spec.geoms:
        shape = geom.name.partition(":")[0]
        if shape in ("col_box", "col_sphere"):
            used = (shape == "col_box") == enable
            geom.contype = geom.conaffinity = int(used)
            geom.group = COLLISION_GROUP if used else UNUSED_GROUP
    sim.build_mjx()


__all__ = ["Sim", "seed_sim", "sync_sim2mjx", "use_box_collision"]
