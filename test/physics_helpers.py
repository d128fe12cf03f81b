"""What tests of the physics thread have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread
from crazyflow_ros.scene import Mirror


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
