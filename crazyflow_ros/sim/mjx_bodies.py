"""Bodies that move in batches of worlds: MJX integrates them and the drones among them.

As in the node (`engine.moving_bodies`), MuJoCo's side gets what each drone does alone as its
acceleration without constraints, and adds contacts and other constraints, which act both ways. It
takes some hundred times as long as drones alone: take `SlungLoad` for loads on cables.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array
from mujoco import mjx

from crazyflow_ros.drones import AnyDrone, load_drone
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.description import Description
from crazyflow_ros.scene.frames import wxyz_to_xyzw, xyzw_to_wxyz
from crazyflow_ros.sim import pipeline
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.stages import Stage

if TYPE_CHECKING:
    from crazyflow_ros.sim.sim import Sim

_PREFIX = "mjx_"
_KEPT = ("qpos", "qvel", "qacc_warmstart", "act", "ctrl")
"""Arrays of MJX on which the next tick depends."""


class MjxBodies:
    """A stage that moves drones and bodies, in place of an integrator; see `move_bodies`.

    The state of the bodies of N worlds is in `data.plugins`: `mjx_qpos` (N, 1, nq) and `mjx_qvel`
    (N, 1, nv), and `mjx_act` and `mjx_ctrl` if `model` has actuators; resets put it back. The
    drones are where `data.states` has them.

    Args:
        integrate: Moves the drones alone.
        drone: Model of the drones.
        n_drones: Drones in each world.
        freq: Ticks in a second.
        scene: As for `build_spec`.

    Raises:
        ValueError: There is no such scene, or MJX cannot compute it.

    Attributes:
        model: The model in MuJoCo; its drones are the free bodies `drone:0` and so on.
    """

    def __init__(
        self,
        integrate: Stage,
        drone: AnyDrone,
        n_drones: int,
        freq: int,
        scene: str | Path | Description,
    ) -> None:
        self._integrate = integrate
        names = [str(i) for i in range(n_drones)]
        spec = build_spec(drone, names, scene=scene, mocap=True, fused=True)
        figures = load_drone(drone)
        self._mass, self._inertia = float(figures["mass"]), np.array(figures["J"])
        feet = build_spec(drone, ["0"]).compile().geom("col_box:0")  # as drones stand, unlike above
        for name in names:
            box = _free(spec.body(f"drone:{name}"), self._mass, self._inertia)
            box.size, box.pos = feet.size, feet.pos
        spec.delete(spec.body("anchor"))  # which is for scenes in which nothing moves
        spec.option.timestep = 1 / freq
        self.model = model = spec.compile()
        try:
            self._mjx = mjx.put_model(model)
        except NotImplementedError as error:
            raise ValueError(f"MJX cannot compute this scene: {error}") from None
        start = mjx.make_data(self._mjx).replace(qpos=jnp.asarray(model.qpos0))
        kept = {name: getattr(start, name) for name in _KEPT}
        self._start = {name: array for name, array in kept.items() if array.size}
        joints = [model.joint(f"free:{name}").id for name in names]
        self._pose = model.jnt_qposadr[joints][:, None] + np.arange(7)
        self._dofs = model.jnt_dofadr[joints][:, None] + np.arange(6)

    def begin(self, data: SimData) -> SimData:
        """Add the initial state of the bodies."""
        n_worlds = len(data.states.pos)
        kept = {_PREFIX + k: jnp.tile(x, (n_worlds, 1, 1)) for k, x in self._start.items()}
        return data.replace(plugins=data.plugins | kept)

    def __call__(self, data: SimData) -> SimData:
        """Advance drones and bodies by a tick."""
        states, alone = data.states, self._integrate(data)
        pose = jnp.concatenate((states.pos, xyzw_to_wxyz(states.quat)), axis=-1)
        velocity = jnp.concatenate((states.vel, states.ang_vel), axis=-1)
        rate = jnp.concatenate((alone.states.vel, alone.states.ang_vel), axis=-1) - velocity
        kept = {name: data.plugins[_PREFIX + name][:, 0] for name in self._start}
        kept["qpos"] = kept["qpos"].at[:, self._pose].set(pose)
        kept["qvel"] = kept["qvel"].at[:, self._dofs].set(velocity)
        kept = jax.vmap(self._moved)(kept, rate * data.core.freq)
        pose, velocity = kept["qpos"][:, self._pose], kept["qvel"][:, self._dofs]
        plugins = {_PREFIX + name: array[:, None] for name, array in kept.items()}
        moved = alone.states.replace(
            pos=pose[..., :3],
            quat=wxyz_to_xyzw(pose[..., 3:]),
            vel=velocity[..., :3],
            ang_vel=velocity[..., 3:],
        )
        return alone.replace(states=moved, plugins=alone.plugins | plugins)

    def _moved(self, before: dict[str, Array], rate: Array) -> dict[str, Array]:
        """Return the state of one world after a tick, given the rates (M, 6) of drones alone."""
        turn = before["qvel"][self._dofs[:, 3:]]
        # What MuJoCo takes off for the turning of a body, and, by gravcomp, not for its weight.
        torque = rate[:, 3:] @ self._inertia.T + jnp.cross(turn, turn @ self._inertia.T)
        force = jnp.concatenate((self._mass * rate[:, :3], torque), axis=-1)
        data = mjx.make_data(self._mjx).replace(**before)
        data = data.replace(qfrc_applied=data.qfrc_applied.at[self._dofs].set(force))
        after = mjx.step(self._mjx, data)
        return {name: getattr(after, name) for name in before}


def move_bodies(sim: Sim, scene: str | Path | Description) -> MjxBodies:
    """Let the bodies of a scene move in all worlds of a simulation, and return the stage for it.

    The bodies start as in the scene. Contacts, also with the floor, are then MJX's: it knows no
    signed distance fields, and no contacts of cylinders and ellipsoids with some other shapes.

    Args:
        sim: The simulation; its pipeline gets the stage instead of its integrator and floor.
        scene: As for `build_spec`.

    Raises:
        ValueError: There is no such scene, MJX cannot compute it, the drones are of several models,
            or there is no integrator.
    """
    if not isinstance(sim.drone, str):
        raise ValueError(f"all drones must be of one model, got {sim.drone!r}")
    found = dict(zip(pipeline.names(sim.step_pipeline), sim.step_pipeline))
    if "integrate" not in found:
        raise ValueError(f"the pipeline must have a stage 'integrate', got {list(found)}")
    bodies = MjxBodies(found["integrate"], sim.drone, sim.n_drones, sim.freq, scene)
    stages = pipeline.replace(sim.step_pipeline, "integrate", bodies)
    sim.step_pipeline = tuple(s for s in stages if pipeline.name_of(s) != "clip_floor_pos")
    return bodies


def _free(body: mujoco.MjsBody, mass: float, inertia: np.ndarray) -> mujoco.MjsGeom:
    """Let the body of a drone move freely, without gravity of its own; return its only shape."""
    body.mocap, body.gravcomp = False, 1.0
    body.add_freejoint(name=f"free:{body.name.removeprefix('drone:')}")
    body.mass, body.ipos, body.explicitinertial = mass, np.zeros(3), True
    body.inertia = np.zeros(3)
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    shapes = {geom.name.partition(":")[0]: geom for geom in body.find_all("geom")}
    for name, geom in shapes.items():
        geom.contype = geom.conaffinity = int(name == "col_box")
        geom.mass = 0.0
    return shapes["col_box"]
