"""Pictures that the drones of an environment see, by cameras with errors of each episode."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import rotate_quat, split, stack
from crazyflow_ros.envs.beginning import KEY, ORIGIN
from crazyflow_ros.envs.task import FurnishedTask, Task
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.raytracing import Frames
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.sensors import CameraSensorCfg, SimPictures
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.randomize import in_worlds

MOUNT = "camera_mount"
"""Plugin: displacement of the camera of each drone, (N, M, 6): a shift [m] and a rotation vector
[rad], in the axes of the drone."""

SEEN = ("pos", "quat", ORIGIN, MOUNT, KEY)
"""All that differs between pictures. With `autoreset="same_step"`, the plugins `final_<name>` hold
it as it was before the latest step's resets."""


@dataclass(frozen=True)
class EyeErrors:
    """Differences of cameras between episodes, and errors of their depths.

    Raises:
        ValueError: A number is negative or not finite.
    """

    shift: float = 0.0
    """Largest shift of the camera along each axis of the drone, m."""
    turn: float = 0.0
    """Largest component of the rotation vector by which the camera is turned, rad."""
    noise: float = 0.0
    """Standard deviation of the Gaussian noise of a depth, as a fraction of the depth; drawn anew
    for each pixel and action."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (isfinite(value) and value >= 0):
                raise ValueError(f"{name} of EyeErrors must be finite and not negative: {value}")


class Eyes:
    """A function from the state of an environment to the pictures of its drones.

    Args:
        sim: The simulation, whose cameras get the field of view of the eye.
        task: The task, which may furnish each world.
        eye: The camera.
        errors: Its errors.

    Raises:
        ValueError: The drone has no such camera.
    """

    def __init__(self, sim: Sim, task: Task, eye: Eye, errors: EyeErrors) -> None:
        self.eye, self._errors, self._task = eye, errors, task
        for i in range(sim.n_drones):
            camera = sim.spec.camera(f"{eye.camera}:{i}")
            if camera is not None:  # otherwise SimPictures names those that there are
                camera.fovy = eye.fovy
        sim.build_mjx()
        cfg = CameraSensorCfg(
            name=eye.camera,
            width=eye.width,
            height=eye.height,
            data_types=(eye.kind,),  # type: ignore[arg-type]
            renderer="rays",
        )
        self._take = SimPictures(sim, cfg)
        model = sim.mj_model
        self._bodies = [model.body(i).name for i in model.body_rootid[model.geom_bodyid]]

    def draw(self, data: SimData, _: SimData, mask: Array) -> SimData:
        """Draw the places of the cameras: a stage of a reset."""
        key, subkey = jax.random.split(data.core.rng_key)
        mount, errors = data.plugins[MOUNT], self._errors
        most = jnp.repeat(jnp.array([errors.shift, errors.turn]), 3)
        drawn = jax.random.uniform(subkey, mount.shape, mount.dtype, -1) * most.astype(mount.dtype)
        plugins = data.plugins | {MOUNT: in_worlds(mask, drawn, mount)}
        return data.replace(plugins=plugins, core=data.core.replace(rng_key=key))

    def __call__(self, data: SimData) -> Array:
        """Return the pictures, (N, M, height, width, channels): depth [m], or colors in bytes.

        Depths are limited to the `far` of the eye, also where there is nothing.
        """
        n, m = data.states.pos.shape[:2]
        geoms = None
        if isinstance(self._task, FurnishedTask):
            origin = data.plugins[ORIGIN][:, 0]
            geoms = self._task.furnished(self._take.geoms, self._bodies, origin)
        taken = self._take(data, geoms, self._cameras(data))
        picture: Array = getattr(taken, self.eye.kind)
        picture = picture.reshape(n, m, *self.eye.shape)
        if self.eye.kind != "depth":
            return picture
        if self._errors.noise:
            picture = picture * (1 + self._errors.noise * self._noise(data, picture))
        return jnp.clip(picture, 0, self.eye.far)

    def final(self, data: SimData) -> Array:
        """Return the pictures before the resets of the latest step, see `SEEN`."""
        plugins = data.plugins
        states = data.states.replace(**{x: plugins[f"final_{x}"] for x in ("pos", "quat")})
        before = {x: plugins[f"final_{x}"] for x in SEEN if x in plugins}
        return self(data.replace(states=states, plugins=plugins | before))

    def _cameras(self, data: SimData) -> Frames | None:
        """Return the poses of the cameras on their drones, if cameras are displaced."""
        if MOUNT not in data.plugins:
            return None
        rest, mount = self._take.cameras, data.plugins[MOUNT]
        shift, rotvec = jnp.split(mount, 2, axis=-1)
        zero = jnp.zeros_like(rotvec[..., 0])
        quat = stack(rotate_quat((zero, zero, zero, zero + 1), split(rotvec)))  # type: ignore[arg-type]
        return Frames(rest.pos + shift, rotation_matrix(quat) @ rest.axes)

    def _noise(self, data: SimData, picture: Array) -> Array:
        """Return normal random numbers in the shape of pictures, by the episode and the step."""
        keys = jax.random.wrap_key_data(data.plugins[KEY][:, 0])
        keys = jax.vmap(jax.random.fold_in)(keys, data.core.steps[:, 0].astype(jnp.uint32))
        shape = picture.shape[1:]
        return jax.vmap(lambda key: jax.random.normal(key, shape, picture.dtype))(keys)
