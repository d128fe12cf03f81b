"""Bodies that move besides the drones: those of a world with joints of their own.

MuJoCo computes their motion, see `engine.moving_bodies`; everyone else only shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from crazyflow_ros.scene.collision_shapes import only_for_mujoco
from crazyflow_ros.scene.drone_bodies import drones_in

_PARTS = mujoco.mjtState
KEPT = int(
    _PARTS.mjSTATE_FULLPHYSICS
    | _PARTS.mjSTATE_CTRL
    | _PARTS.mjSTATE_EQ_ACTIVE
    | _PARTS.mjSTATE_MOCAP_POS
    | _PARTS.mjSTATE_MOCAP_QUAT
    | _PARTS.mjSTATE_WARMSTART
)
"""Parts of MuJoCo's state on which the future of bodies depends, besides forces from outside."""

N_POSITIONS, N_VELOCITIES = (7, 4, 1, 1), (6, 3, 1, 1)
"""Sizes of free, ball, slide and hinge joints in qpos and in qvel."""


class Touches(NamedTuple):
    """All C contacts at an instant, between the geoms of two bodies each."""

    geoms: np.ndarray
    """Numbers of the geoms, (C, 2)."""
    pos: np.ndarray
    """In the world [m], (C, 3)."""
    normal: np.ndarray
    """Of length 1, from the first geom to the second, (C, 3)."""
    force: np.ndarray
    """Of the first on the second in the world [N], (C, 3)."""
    depth: np.ndarray
    """By how far the shapes overlap [m], (C,)."""

    @staticmethod
    def of(model: mujoco.MjModel, data: mujoco.MjData) -> Touches:
        """Return a copy of those of the last tick."""
        found, wrench = data.contact, np.zeros((data.ncon, 6))
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, wrench[i])
        axes = found.frame.reshape(-1, 3, 3)
        force = np.einsum("ci,cij->cj", wrench[:, :3], axes)
        geoms = found.geom.reshape(-1, 2).copy()
        return Touches(
            geoms, found.pos.reshape(-1, 3).copy(), axes[:, 0].copy(), force, -found.dist
        )


@dataclass(frozen=True, eq=False)
class Bodies:
    """State of all bodies of a world at one instant, in MuJoCo's arrays, drones included."""

    signature: int
    """Of the model to which the arrays belong, see `MjModel.signature`."""
    state: np.ndarray
    """Result of `mj_getState` for the parts `KEPT`."""
    qacc: np.ndarray
    """Accelerations of all joints, shape (nv,)."""
    touches: Touches | None = None
    """Their contacts, if somebody wants to know."""

    @staticmethod
    def of(model: mujoco.MjModel, data: mujoco.MjData) -> Bodies:
        """Return a copy of the state in `data`."""
        state = np.empty(mujoco.mj_stateSize(model, KEPT))
        mujoco.mj_getState(model, data, state, KEPT)
        return Bodies(int(model.signature), state, data.qacc.copy())

    def edited(self, model: mujoco.MjModel, edit: Callable[[mujoco.MjData], None]) -> Bodies:
        """Return the state after changes of positions and velocities."""
        data = mujoco.MjData(model)
        self.write(model, data)
        edit(data)
        return Bodies.of(model, data)

    def is_of(self, model: mujoco.MjModel) -> bool:
        """Return whether this is a state of a model."""
        return self.signature == model.signature and len(self.qacc) == model.nv

    def write(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the state to `data`, unless it is of a model that has just been replaced."""
        if self.is_of(model):
            mujoco.mj_setState(model, data, self.state, KEPT)
            data.qacc[:] = self.qacc


def needs_mujoco(model: mujoco.MjModel) -> bool:
    """Return whether MuJoCo has to integrate a world.

    It has joints or constraints besides those of its drones, or shapes that stand, and with which
    only MuJoCo computes contacts.
    """
    others = ~np.isin(model.body_rootid[model.dof_bodyid], [*drones_in(model)])
    uneven = only_for_mujoco(model).any()
    return bool(others.any() or model.neq or model.ntendon or uneven)


def carry_over(
    old: mujoco.MjModel, state: mujoco.MjData, new: mujoco.MjModel, data: mujoco.MjData
) -> None:
    """Give joints, actuators and constraints of a new model the state of their namesakes.

    What has no name is known by its place: a body among its siblings, a joint among those of its
    body.

    Args:
        old: The model until now.
        state: Its state.
        new: The new model.
        data: Its initial state, to be changed.
    """
    for before, after in _common(_joints(old), _joints(new)):
        kind = old.jnt_type[before]
        if kind != new.jnt_type[after]:
            continue
        source, target = old.jnt_qposadr[before], new.jnt_qposadr[after]
        n = N_POSITIONS[kind]
        data.qpos[target : target + n] = state.qpos[source : source + n]
        source, target, n = old.jnt_dofadr[before], new.jnt_dofadr[after], N_VELOCITIES[kind]
        for name in ("qvel", "qacc", "qacc_warmstart"):
            getattr(data, name)[target : target + n] = getattr(state, name)[source : source + n]
    for before, after in _common(_actuators(old), _actuators(new)):
        data.ctrl[after] = state.ctrl[before]
        n = old.actuator_actnum[before]
        if n and n == new.actuator_actnum[after]:
            source, target = old.actuator_actadr[before], new.actuator_actadr[after]
            data.act[target : target + n] = state.act[source : source + n]
    for before, after in _common(_equalities(old), _equalities(new)):
        data.eq_active[after] = state.eq_active[before]
    places_before, places = _places(old), _places(new)
    for before, after in _common(places_before, places):
        source, target = old.body_mocapid[before], new.body_mocapid[after]
        if source >= 0 and target >= 0:
            data.mocap_pos[target] = state.mocap_pos[source]
            data.mocap_quat[target] = state.mocap_quat[source]


def _common(old: dict[Hashable, int], new: dict[Hashable, int]) -> list[tuple[int, int]]:
    return [(i, new[key]) for key, i in old.items() if key in new]


def _places(model: mujoco.MjModel) -> dict[Hashable, int]:
    """Return the bodies by name, or by their parent's key and their number among its children."""
    keys: list[Hashable] = ["world"]
    n_children = np.zeros(model.nbody, int)
    for body in range(1, model.nbody):
        parent = int(model.body_parentid[body])
        keys.append(model.body(body).name or (keys[parent], int(n_children[parent])))
        n_children[parent] += 1
    return {key: body for body, key in enumerate(keys)}


def _joints(model: mujoco.MjModel) -> dict[Hashable, int]:
    keys = list(_places(model))
    return {
        model.joint(i).name or (keys[body], i - int(model.body_jntadr[body])): i
        for i, body in enumerate(model.jnt_bodyid.tolist())
    }


def _actuators(model: mujoco.MjModel) -> dict[Hashable, int]:
    return {name: i for i in range(model.nu) if (name := model.actuator(i).name)}


def _equalities(model: mujoco.MjModel) -> dict[Hashable, int]:
    return {name: i for i in range(model.neq) if (name := model.equality(i).name)}
