"""The MuJoCo side of `Sim`: the scene, its MJX copy for all worlds, contacts and rendering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from crazyflow_ros.extras import extra
from crazyflow_ros.scene import frames
from crazyflow_ros.sim.contacts import ContactQuery, ContactSlots, kinematics, with_drones
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.worlds import of_world, put
from crazyflow_ros.xla.on_device import on_device

# MuJoCo is imported where the scene is needed: most users of `Sim` only step.
if TYPE_CHECKING:
    import mujoco
    from mujoco import mjx

    from crazyflow_ros.scene.markers import Marker
    from crazyflow_ros.sim.pictures import Pictures


class _Shown(NamedTuple):
    """The part of the data that the scene shows."""

    pos: Array
    quat: Array
    steps: Array
    freq: int


class MujocoView:
    """The scene of a simulation, built when it is first needed: steps do not need it.

    Args:
        drone: The drones of a world, see `Sim.drone`.
        n_worlds: Number of worlds.
        n_drones: Number of drones in each world.
        scene: Name or path of the MJCF scene.
        fused: Whether a drone is drawn as one box.
        sharding: Sharding of the drones' positions, (n_worlds, n_drones, 3).
        renumbered: Called with the mocap ids of the drones, (n_drones,) int32, when a compilation
            of the scene changes them; initially they are 0, 1 and so on.
    """

    def __init__(
        self,
        drone: str | tuple[str, ...],
        n_worlds: int,
        n_drones: int,
        scene: str,
        *,
        fused: bool,
        sharding: Sharding,
        renumbered: Callable[[np.ndarray], None],
    ) -> None:
        self._drone, self._n_worlds, self._n_drones = drone, n_worlds, n_drones
        self._scene, self._fused, self._sharding = scene, fused, sharding
        self._renumbered, self._ids = renumbered, np.arange(n_drones, dtype=np.int32)
        self._spec: mujoco.MjSpec | None = None
        self._mj: tuple[mujoco.MjModel, mujoco.MjData] | None = None
        self._mjx: tuple[mjx.Model, mjx.Data] | None = None
        self._shown: _Shown | None = None
        self._is_posed = True  # _mjx has the poses of the shown data
        self._query: ContactQuery | None = None
        self._slots: ContactSlots | None = None
        self._pictures: Pictures | None = None

    @property
    def spec(self) -> mujoco.MjSpec:
        """The scene before compilation."""
        if self._spec is None:
            from crazyflow_ros.scene import build_spec

            names = [str(i) for i in range(self._n_drones)]
            options = {"mocap": True, "fused": self._fused}
            self._spec = build_spec(self._drone, names, scene=self._scene, **options)
        return self._spec

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled scene, one world."""
        return self._compiled()[0]

    @property
    def mj_data(self) -> mujoco.MjData:
        """Scratch data of `mj_model`."""
        return self._compiled()[1]

    @property
    def mjx_model(self) -> mjx.Model:
        """The compiled scene in MJX, shared by all worlds."""
        return self._batched()[0]

    @property
    def mjx_data(self) -> mjx.Data:
        """Time, poses and contacts of all worlds, as of the shown data."""
        model, data = self._batched()
        if not self._is_posed:
            assert self._shown is not None
            *unposed, freq = self._shown
            if len(devices := unposed[0].devices()) == 1:
                # MJX may have another device: arrays not committed to it would
                # recompile.
                unposed = jax.device_put(unposed, *devices)
            data = _posed(*unposed, freq, on_device(self._ids), data, model)
            self._mjx, self._is_posed = (model, data), True
        return data

    @mjx_data.setter
    def mjx_data(self, mjx_data: mjx.Data) -> None:
        self._mjx, self._is_posed = (self.mjx_model, mjx_data), True
        if self._query is not None:
            self._query.take(*self._mjx)

    def show(self, data: SimData) -> None:
        """Show data from now on. The MJX data are computed when they are read."""
        states, core = data.states, data.core
        self._shown = _Shown(states.pos, states.quat, core.steps, core.freq)
        self._sharding, self._is_posed, self._slots = states.pos.sharding, False, None

    def rebuild(self) -> None:
        """Compile the edited `spec`."""
        self.close()
        self._mj = self._mjx = self._query = self._slots = None
        self._is_posed = True
        self._compiled()

    def contact_slots(self) -> ContactSlots:
        """Return the contacts of the shown data."""
        if self._slots is None:
            assert self._shown is not None
            pos, quat, *_ = self._shown
            if self._query is None:
                self._query = ContactQuery(*self._batched(), pos, quat, on_device(self._ids))
            self._slots = self._query(pos, quat)
        return self._slots

    def draw(
        self,
        mode: str,
        world: int,
        view: tuple[int | str, Mapping[str, Any] | None],
        size: tuple[int, int],
        markers: list[Marker],
        max_markers: int,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray] | None:
        """Draw a world of the shown data, see `Sim.render`.

        Args:
            mode: As for `Sim.render`.
            world: As for `Sim.render`.
            view: Camera and configuration of the free camera.
            size: Width and height [pixels].
            markers: What is drawn besides the scene.
            max_markers: Maximum number of markers of renderers that are created now.
        """
        from crazyflow_ros.scene.mirror_state import compute_frames
        from crazyflow_ros.sim.pictures import Pictures

        assert self._shown is not None
        model, data = self._compiled()
        if self._mjx is not None:  # obstacles that have moved
            moved = self._mjx[1]
            data.mocap_pos[:] = of_world(moved.mocap_pos, world)
            data.mocap_quat[:] = of_world(moved.mocap_quat, world)
        pos, quat, *_ = self._shown
        data.mocap_pos[self._ids] = of_world(pos, world)
        data.mocap_quat[self._ids] = frames.xyzw_to_wxyz(np.asarray(of_world(quat, world)))
        compute_frames(model, data)
        if self._pictures is None:
            self._pictures = Pictures(model, max_markers)
        if mode != "human":
            return self._pictures.draw(data, mode, view, size, markers)
        self._pictures.show(data, view, markers)
        return None

    @property
    def viewer(self) -> Any:
        """The handle of the window, or None."""
        return None if self._pictures is None else self._pictures.viewer

    def close(self) -> None:
        """Close the viewer, and free the renderers."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def _compiled(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        if self._mj is None:
            import mujoco

            model = self.spec.compile()
            self._mj = (model, mujoco.MjData(model))
            drones = [model.body(f"drone:{i}") for i in range(self._n_drones)]
            before, self._ids = self._ids, np.array([x.mocapid.item() for x in drones], np.int32)
            if (before != self._ids).any():
                self._renumbered(self._ids)
        return self._mj

    def _batched(self) -> tuple[mjx.Model, mjx.Data]:
        if self._mjx is None:
            with extra("mjx"):
                from mujoco import mjx
            from crazyflow_ros.scene.mjx_scene import fitted_to_mjx

            names = [str(i) for i in range(self._n_drones)]
            model, data = fitted_to_mjx(self.spec, self.mj_model, names)
            scratch = self.mj_data
            data.qpos[:], data.qvel[:] = scratch.qpos, scratch.qvel
            data.mocap_pos[:], data.mocap_quat[:] = scratch.mocap_pos, scratch.mocap_quat
            sharding = self._sharding
            device = next(iter(sharding.addressable_devices))
            batch = jax.tree.map(  # with NumPy, because JAX would compile a function for each shape
                lambda x: np.repeat(np.asarray(x)[None], self._n_worlds, axis=0),
                mjx.put_data(model, data, device=device),  # by default that of the first process
            )
            # The placement after the first sync; otherwise the second sync would
            # recompile.
            whole = sharding
            if isinstance(sharding, NamedSharding):
                whole = NamedSharding(sharding.mesh, PartitionSpec())
            shared = mjx.put_model(model, device=device)
            self._mjx = (
                jax.tree.map(lambda x: put(x, whole), shared),
                jax.tree.map(lambda x: put(x, sharding), batch),
            )
        return self._mjx


@jax.jit
def _posed(
    pos: Array,
    quat: Array,
    steps: Array,
    freq: int,
    ids: Array,
    mjx_data: mjx.Data,
    mjx_model: mjx.Model,
) -> mjx.Data:
    """Return MJX data with the drones at these poses, after a number of steps."""
    from mujoco import mjx

    from crazyflow_ros.scene.mjx_contacts import collision

    time = (steps[:, 0] / freq).astype(mjx_data.time.dtype)
    mjx_data = with_drones(pos, quat, ids, mjx_data).replace(time=time)
    for stage in (kinematics, mjx.com_pos, mjx.camlight, collision):
        mjx_data = jax.vmap(stage, in_axes=(None, 0))(mjx_model, mjx_data)
    return mjx_data


def _synced(data: SimData) -> SimData:
    return data.replace(core=data.core.replace(mjx_synced=jnp.array(True)))


@jax.jit
def sync_sim2mjx(
    data: SimData, mjx_data: mjx.Data, mjx_model: mjx.Model
) -> tuple[SimData, mjx.Data]:
    """Compute time, poses, cameras and contacts of all worlds from the states of the drones.

    Args:
        data: The states.
        mjx_data: Batched over worlds.
        mjx_model: Shared by all worlds.

    Returns:
        `data` with `core.mjx_synced` set, and the new MJX data.
    """
    states, core = data.states, data.core
    return _synced(data), _posed(
        states.pos,
        states.quat,
        core.steps,
        core.freq,
        core.drone_mocap_ids,
        mjx_data,
        mjx_model,
    )
