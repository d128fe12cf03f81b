"""Pictures of the room from many worlds by rays, compared with MuJoCo's renderers.

`MUJOCO_WARP_PYTHON` may name a Python that has mujoco-warp, of the same version as mujoco here, and
`HYPERLUX_PYTHON` one that has hyperlux and trimesh, for its renderer on the CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from crazyflow_ros import Sim
from crazyflow_ros.scene import RenderingUnavailable
from crazyflow_ros.sensors import CameraSensorCfg, SensorSet, SimBackend, SimPictures
from crazyflow_ros.sim.data import SimData

N_WORLDS, SIZE = 256, 64
DRAWN = 16  # worlds of MuJoCo's renderers
KINDS = ("depth", "segmentation", "normals", "rgb")
DUE = 10
ROUNDS = 10
WARP = """
import sys, time, warnings
import mujoco, mujoco_warp as mjw, numpy as np, warp as wp
wp.config.quiet = True
model, poses, size, rounds = mujoco.MjModel.from_binary_path(sys.argv[1]), *sys.argv[2:5]
poses, size, rounds = np.load(poses), int(size), int(rounds)
data = mujoco.MjData(model)
with wp.ScopedDevice("cpu"):
    m = mjw.put_model(model)
    d = mjw.put_data(model, data, nworld=len(poses))
    d.mocap_pos.assign(poses[:, None, :3]); d.mocap_quat.assign(poses[:, None, [6, 3, 4, 5]])
    mjw.kinematics(m, d); mjw.com_pos(m, d); mjw.camlight(m, d)
    for kind in ("depth", "rgb"):
        context = mjw.create_render_context(
            model, nworld=len(poses), cam_res=(size, size), cam_active=["fpv_cam:0"],
            render_rgb=kind == "rgb", render_depth=kind == "depth", render_skybox=kind == "rgb")
        times = []
        for _ in range(rounds):
            start = time.process_time()
            mjw.refit_bvh(m, d, context); mjw.render(m, d, context)
            times.append(time.process_time() - start)
        print(kind, len(poses) / min(times))
"""


def main() -> None:
    """Print a table."""
    sim = Sim(n_worlds=N_WORLDS, drone="cf2x_L250", scene="room")
    place(sim)
    print(f"Pictures of {SIZE} x {SIZE} from {N_WORLDS} worlds, 1/s of processor time and 1/s:\n")
    print("| pictures | processor | all cores |\n|---|---:|---:|")
    for kind in KINDS:
        pictures = SimPictures(sim, camera(kind))
        row(f"{kind}, rays", N_WORLDS, partial(_taken, pictures, sim.data))
    pictures = SimPictures(sim, camera("rgb", use_shadows=True))
    row("rgb with shadows, rays", N_WORLDS, partial(_taken, pictures, sim.data))
    due = jnp.arange(N_WORLDS) % DUE == 0
    before = pictures(sim.data)
    few = partial(_taken, partial(pictures, due=due, before=before), sim.data)
    row(f"the same of each {DUE}th world", int(due.sum()), few)
    drawn = Sim(n_worlds=DRAWN, drone="cf2x_L250", scene="room")
    place(drawn)
    for kind in ("depth", "rgb"):
        sensors = SensorSet([camera(kind, renderer="opengl")])
        sensors.initialize(SimBackend(drawn))
        try:
            row(f"{kind}, mujoco.Renderer", DRAWN, sensors.sense)
        except RenderingUnavailable as error:
            print(f"\nNo pictures by OpenGL: {error}")
    if python := os.environ.get("MUJOCO_WARP_PYTHON"):
        warp(python, drawn)
    if python := os.environ.get("HYPERLUX_PYTHON"):
        hyperlux(python, sim)


def _taken(pictures: Callable[[SimData], object], data: SimData) -> None:
    jax.block_until_ready(pictures(data))


def place(sim: Sim) -> None:
    """Put the drones at random places in the room."""
    rng = np.random.default_rng(0)
    n = sim.n_worlds
    pos = rng.uniform([-2.4, -2.0, 0.3], [2.4, 2.0, 2.0], (n, 1, 3))
    half = rng.uniform(0, np.pi, (n, 1))
    zero = np.zeros_like(half)
    quat = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
    states = sim.data.states.replace(pos=jnp.float32(pos), quat=jnp.float32(quat))
    sim.data = sim.data.replace(states=states)


def camera(kind: Any, **options: Any) -> CameraSensorCfg:
    """Return the configuration of the drone's camera."""
    options = {"renderer": "rays", "width": SIZE, "height": SIZE, **options}
    return CameraSensorCfg(name="eye", camera_name="fpv_cam:0", data_types=(kind,), **options)


def row(name: str, n: int, take: Callable[[], object]) -> None:
    """Print how many pictures a function takes, n at a time."""
    take()
    used, elapsed = [], []
    for _ in range(ROUNDS):
        start, began = time.process_time(), time.perf_counter()
        take()
        used.append(time.process_time() - start)
        elapsed.append(time.perf_counter() - began)
    print(f"| {name} | {n / min(used):,.0f} | {n / min(elapsed):,.0f} |")


def warp(python: str, sim: Sim) -> None:
    """Print how many pictures MuJoCo Warp takes on the CPU, on one core."""
    states = sim.data.states
    poses = np.concatenate([states.pos[:, 0], states.quat[:, 0]], axis=1)
    with tempfile.TemporaryDirectory() as folder:
        model, file = Path(folder) / "model.mjb", Path(folder) / "poses.npy"
        mujoco.mj_saveModel(sim.mj_model, str(model))
        np.save(file, poses.astype(np.float32))
        call = [python, "-c", WARP, str(model), str(file), str(SIZE), str(ROUNDS)]
        output = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        kind, _, speed = line.partition(" ")
        if kind in KINDS:  # Warp prints what it compiles
            print(f"| {kind}, mujoco-warp on a CPU | {float(speed):,.0f} | |")


def hyperlux(python: str, sim: Sim) -> None:
    """Print how many pictures HyperLux takes of the room without the drones, on the CPU."""
    model, data, states = sim.mj_model, mujoco.MjData(sim.mj_model), sim.data.states
    eye, rows = model.camera("fpv_cam:0").id, []
    half = np.tan(np.radians(model.cam_fovy[eye]) / 2)
    for pos, quat in zip(states.pos[:, 0], states.quat[:, 0]):
        data.mocap_pos[0], data.mocap_quat[0] = pos, np.asarray(quat)[[3, 0, 1, 2]]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        right, up, back = data.cam_xmat[eye].reshape(3, 3).T
        first = half * (up - right) - back
        rows.append([*data.cam_xpos[eye], *first, *(2 * half * right), *(-2 * half * up)])
    shapes = []
    for i in np.flatnonzero(model.geom_bodyid == 0):
        kind = mujoco.mjtGeom(model.geom_type[i]).name.removeprefix("mjGEOM_").lower()
        material = model.geom_matid[i]
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[i]
        numbers = data.geom_xpos[i], data.geom_xmat[i], model.geom_size[i], rgba
        shapes.append([kind, *(x.tolist() for x in numbers)])
    with tempfile.TemporaryDirectory() as folder:
        file, script = Path(folder) / "scene.npz", Path(__file__).with_name("hyperlux_pictures.py")
        np.savez(file, cameras=np.array(rows, np.float32), shapes=json.dumps(shapes))
        for kind in ("depth", "rgb"):
            call = [python, str(script), str(file), kind, str(SIZE), str(ROUNDS)]
            environment = {**os.environ, "HYPERLUX_BACKEND": "GENERIC"}
            output = subprocess.check_output(call, env=environment, text=True)
            used, elapsed = map(float, output.split()[-2:])
            print(f"| {kind}, HyperLux on the CPU | {used:,.0f} | {elapsed:,.0f} |")


if __name__ == "__main__":
    main()
