"""Rays and pictures of a scene with 100 boxes, compared with direct calls of MuJoCo."""

from __future__ import annotations

import time
from collections.abc import Callable

import mujoco
import numpy as np

from crazyflow_ros.scene import RenderingUnavailable, build_spec
from crazyflow_ros.sensors import (
    CameraSensor,
    CameraSensorCfg,
    LidarPatternCfg,
    MujocoBackend,
    ObjRef,
    RayCastSensor,
    RayCastSensorCfg,
    SensorContext,
)

N_BOXES = 100
CHANNELS, SAMPLES = 16, 1024
WIDTH, HEIGHT = 320, 240
GROUPS = (0, 1, 3)
ROUNDS = 20


def main() -> None:
    """Print a table."""
    model, data = scene()
    print("| what | ours | bare | ratio |\n|---|---:|---:|---:|")
    ours, bare = rays(model, data)
    ours, bare = (1e-6 * CHANNELS * SAMPLES / seconds for seconds in (ours, bare))
    print(f"| M rays/s, with normals | {ours:.2f} | {bare:.2f} | {ours / bare:.2f} |")
    try:
        ours, bare = (1 / seconds for seconds in pictures(model, data))
    except RenderingUnavailable as error:
        print(f"\nNo pictures: {error}")
    else:
        what = f"{WIDTH} x {HEIGHT} rgb and depth, 1/s"
        print(f"| {what} | {ours:.1f} | {bare:.1f} | {ours / bare:.2f} |")


def scene() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Build a scene with a drone at 1 m among boxes."""
    spec = build_spec("cf2x_L250", ["cf0"], poses=[[0, 0, 1, 0, 0, 0, 1]])
    rng = np.random.default_rng(0)
    for _ in range(N_BOXES):
        pos = rng.uniform(-5, 5, 3).tolist()
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.2, 0.2, 0.2], pos=pos)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def rays(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, float]:
    """Return the CPU times [s] of a scan, ours and MuJoCo's."""
    elevations = np.linspace(-15, 15, CHANNELS).tolist()
    lidar = RayCastSensor(
        RayCastSensorCfg(
            name="lidar",
            frame=ObjRef("xbody", "drone", "cf0"),
            pattern=LidarPatternCfg(samples=SAMPLES, elevations=elevations),
            include_geom_groups=GROUPS,
        )
    )
    lidar.initialize(MujocoBackend(model, data))
    body, n_rays = data.body("drone:cf0"), lidar.num_rays
    vectors = (lidar.directions @ body.xmat.reshape(3, 3).T).ravel()
    groups = np.isin(np.arange(mujoco.mjNGROUP), GROUPS).astype(np.uint8)
    geoms, distances = np.empty(n_rays, np.int32), np.empty(n_rays)
    normals = np.empty(3 * n_rays)

    def bare() -> None:
        mujoco.mj_multiRay(
            m=model, d=data, pnt=body.xpos, vec=vectors, geomgroup=groups, flg_static=True,
            bodyexclude=body.id, geomid=geoms, dist=distances, normal=normals, nray=n_rays,
            cutoff=mujoco.mjMAXVAL,
        )  # fmt: skip

    return fastest(lidar.sense, bare, time.thread_time)


def pictures(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, float]:
    """Return the times [s] of a picture with depth, ours and MuJoCo's, both without shadows.

    Raises:
        RenderingUnavailable: Rendering is not available.
    """
    camera = CameraSensor(
        CameraSensorCfg(
            name="eye",
            camera_name="fpv_cam:cf0",
            width=WIDTH,
            height=HEIGHT,
            data_types=("rgb", "depth"),
        )
    )
    backend = MujocoBackend(model, data)
    camera.initialize(backend)
    context = SensorContext(backend, [camera])
    camera.sense()
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:

        def bare() -> None:
            renderer.update_scene(data, camera.camera_idx)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
            renderer.render()
            renderer.enable_depth_rendering()
            renderer.render()
            renderer.disable_depth_rendering()

        times = fastest(camera.sense, bare, time.perf_counter)
    context.close()
    return times


def fastest(
    ours: Callable[[], None], bare: Callable[[], None], clock: Callable[[], float]
) -> tuple[float, float]:
    """Return the shortest times [s] of two functions called in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for act, kept in zip((ours, bare), times):
            start = clock()
            act()
            kept.append(clock() - start)
    return min(times[0]), min(times[1])
