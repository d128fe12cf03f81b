"""`Sim`: batched quadrotor simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import Control, Controller, PowerDistribution
from crazyflow_ros.drones import AnyDrone, Drone
from crazyflow_ros.dynamics import Dynamics, SlungLoad
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.estimation import Estimator, Positioning
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.sim.arguments import (
    check_mesh,
    check_obstacles,
    device_of,
    forces_of,
    models_of,
    positioning_of,
    rates_of,
    whole,
)
from crazyflow_ros.sim.batched_worlds import BatchedWorlds
from crazyflow_ros.sim.cascade import CASCADE, check_controller, levels
from crazyflow_ros.sim.conditioned import conditions_in
from crazyflow_ros.sim.contacts import Contact, ContactSlots, listed, touching_geoms
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.functional import seed_sim
from crazyflow_ros.sim.hanging import carrying
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.mujoco_view import MujocoView, sync_sim2mjx
from crazyflow_ros.sim.worlds import Worlds, repeated
from crazyflow_ros.xla.on_device import on_device

if TYPE_CHECKING:
    import mujoco
    from mujoco import mjx

    from crazyflow_ros.scene.markers import Marker

_MODES = ("human", "rgb_array", "depth_array", "rgbd_tuple")


class Sim(BatchedWorlds):
    """Quadrotors in parallel worlds, stepped as one compiled function.

    Attributes:
        drone: Name of the drone, or the names of the drones of a world.
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
        payload: SlungLoad | None = None,
        conditions: Conditions | None = None,
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
            state_freq: Rate of the position controller, Hz; by default 100 or `freq`. Like the
                other rates, it must divide `freq` if commands pass through that controller.
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
            fused_mjx_model: Draw a drone as one box; MJX data then need 40 % of the memory.
            power_distribution: A `PowerDistribution`: what happens when the rotors cannot give
                thrust and torque together. The default is Crazyflow's, not the firmware's.
            payload: A load on cables from all drones of a world; None for none.
            conditions: Gravity, air and floor; by default those of the scene, without its wind.

        Raises:
            ValueError: An argument is out of range; the message names it.
        """
        models = models_of(drone, n_drones)
        n_worlds, n_drones, freq = whole("n_worlds", n_worlds), len(models), whole("freq", freq)
        check_mesh(mesh, device)
        if not isinstance(rng_key, int | np.integer):
            raise ValueError(f"rng_key must be an integer, got {rng_key!r}")
        self.drone: str | tuple[str, ...]
        self.drone = models[0] if isinstance(drone, str | os.PathLike) else models
        model, meaning = member(Dynamics, dynamics), member(Control, control)
        method = member(Integrator, integrator)
        self.controller = member(Controller, controller)
        self.estimator = member(Estimator, estimator)
        positioning = positioning_of(self.estimator, positioning)
        acting = forces_of(() if forces is None else forces, models, freq)
        check_obstacles(obstacles, acting)
        asked = state_freq, attitude_freq, body_rate_freq, force_torque_freq
        check_controller(self.controller, meaning, model)
        rates = rates_of(levels(meaning, model), dict(zip(CASCADE, asked)), freq)

        # On a mesh, each process makes its own worlds. Random numbers of estimates differ by world.
        repeats = mesh is not None and positioning is None
        data = SimData.create(
            1 if repeats else n_worlds,
            n_drones,
            drone=self.drone,
            dynamics=model,
            control=meaning,
            controller=self.controller,
            freq=freq,
            control_freqs=rates,
            seed=rng_key,
            true_mass=true_mass,
            estimator=self.estimator,
            positioning=positioning,
            power_distribution=member(PowerDistribution, power_distribution),
            conditions=conditions_in(scene) if conditions is None else conditions,
        )
        data = data.replace(params=data.params.replace(obstacles=obstacles))
        data = carrying(data, payload, model, method, None if forces is None else acting)
        if repeats:
            data = repeated(data, n_worlds)
        worlds = Worlds(data, not isinstance(self.drone, str), mesh)
        data = worlds.placed(data)
        own = None if mesh is not None else device_of(device, data.states.pos)
        if device is not None or own not in (None, jax.local_devices()[0]):
            # Stay on the present default device, even if it changes later.
            data = jax.device_put(data, own)
        super().__init__(data, worlds, model, method, acting, forces is None, own)
        self.scene, self.fused_mjx_model = scene, fused_mjx_model
        self._view = MujocoView(
            *(self.drone, n_worlds, n_drones, scene),
            fused=fused_mjx_model,
            sharding=data.states.pos.sharding,
            renumbered=self._renumber,
        )
        self._markers: list[Marker] = []  # for the next picture

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
        """Store the drones' mocap ids in the data, where pure functions read them."""
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
            ValueError: The world does not exist, or belongs to another process.
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
