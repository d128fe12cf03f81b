"""What tests of the physics thread have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import mujoco
import numpy as np

from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.scene import Mirror, scene_path
from crazyflow_ros.scene.description import read, read_text


def until(condition: Callable[[], object], what: str, timeout: float = 20.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
        time.sleep(0.002)


def hover(physics: PhysicsThread, z: float = 1.0) -> None:
    """Send all drones to a height, above where they are."""
    for name, pos in zip(physics.snapshot.names, physics.snapshot.pos):
        physics.command(name, Pose((pos[0], pos[1], z), 0.0))


def applied_wrenches(
    model: mujoco.MjModel, data: mujoco.MjData, names: Sequence[str]
) -> np.ndarray:
    """What `qfrc_applied` and `xfrc_applied` do to drones, by MuJoCo.

    `xfrc_applied` of a drone's own body acts at the centre of mass of the whole drone.

    Returns:
        Force and torque at the centres of mass, world axes, (M, 6).
    """
    mujoco.mj_forward(model, data)
    generalised = data.qfrc_applied.copy()
    for body in range(model.nbody):
        force, torque = np.split(data.xfrc_applied[body], 2)
        is_drone = model.body(body).name.startswith("drone:")
        point = data.xpos[body] if is_drone else data.xipos[body]
        mujoco.mj_applyFT(model, data, force, torque, point, body, generalised)
    wrenches = []
    for name in names:
        dofs = model.joint(f"free:{name}").dofadr[0] + np.arange(6)
        force, torque = np.split(generalised[dofs], 2)
        rotation = data.body(f"drone:{name}").xmat.reshape(3, 3)
        wrenches.append([*force, *rotation @ torque])
    return np.array(wrenches)


def readings(mirror: Mirror, kind: str) -> np.ndarray:
    """Readings of a sensor of all drones, "gyro", "accelerometer" or "orientation" (wxyz)."""
    data = mirror.copy_physics_data()
    return np.array([data.sensor(f"{kind}:{name}").data for name in mirror.names])


@contextmanager
def started(config: SimulationConfig, names: Sequence[str]) -> Iterator[PhysicsThread]:
    """A physics thread that runs, and has not failed at the end."""
    physics = PhysicsThread(config, names)
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None, physics.failed


def load(physics: PhysicsThread, world: str, timeout: float = 300.0) -> None:
    """Let a world, by its text or name, be the present one, and start there anew."""
    scene = read_text(world) if "<" in world else read(scene_path(world))
    physics.world.set_scene(scene).result(timeout)
    physics.state.reset().result(timeout)
