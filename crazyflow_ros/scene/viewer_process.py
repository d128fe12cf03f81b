"""MuJoCo's viewer in a separate process, on its own copy of the model.

    python -m crazyflow_ros.scene.viewer_process DESCRIPTOR

A window or driver that fails may end its process, so that must not be the simulation's process. The
two communicate through a pipe, with `DESCRIPTOR` as one end: the viewer receives model and names
first, and then answers each `ViewerFrame` with an `Input`.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

import mujoco
import numpy as np

from crazyflow_ros.scene.controls import ControlReader
from crazyflow_ros.scene.mirror_state import DroneIndex, MirrorState
from crazyflow_ros.scene.renderers import reach, set_planes


@dataclass(frozen=True)
class ViewerFrame:
    """Data that the viewer shows."""

    state: MirrorState
    labels: str
    """Text at the top left, line by line."""
    values: str
    """Text beside it."""


@dataclass(frozen=True)
class Input:
    """User input since the last frame."""

    keys: list[int]
    """Pressed keys, as GLFW numbers."""
    wrench: np.ndarray
    """Force [N] and torque [N m] of the mouse on each drone, world axes, shape (M, 6)."""


class ViewerScene:
    """The viewer's copy of the world.

    Args:
        model: Model of the mirror.
        names: Names of the drones.
    """

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self._index = DroneIndex(model, names)
        self._controls = ControlReader(self._index)

    def set_state(self, state: MirrorState) -> None:
        """Set the state of the drones, and of bodies of this world."""
        if state.bodies is not None:  # the model has lost its signature on the way to this process
            bodies = replace(state.bodies, signature=int(self.model.signature))
            state = replace(state, bodies=bodies)
        self._index.write(state, self.data)
        mujoco.mj_forward(self.model, self.data)

    def dragged(self, perturb: mujoco.MjvPerturb) -> np.ndarray:
        """Return the wrench of the mouse on the drones: MuJoCo's spring to the cursor.

        Returns:
            Force and torque at the centres of mass, world axes, shape (M, 6).
        """
        self.data.xfrc_applied[:] = 0
        mujoco.mjv_applyPerturbForce(self.model, self.data, perturb)
        wrench, index = np.zeros((self._index.n_drones, 6)), self._index
        for load in self._controls.loads(self.data):
            row = index.row(load.drone)
            wrench[row] += load.wrench(self.data.xmat[index.body[row]].reshape(3, 3))
        # MuJoCo's force acts at the centre of the body alone, without its rotors.
        centres = self.data.xipos[index.body] - self.data.xpos[index.body]
        wrench[:, 3:] += np.cross(centres, self.data.xfrc_applied[index.body, :3])
        return wrench


def show(connection: Connection, model: mujoco.MjModel, names: Sequence[str]) -> None:
    """Show frames until the window or the connection is closed.

    Sends None if a window can be opened, otherwise the reason as a text; later, sends None in place
    of an `Input` when the user has closed the window.
    """
    for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all
        signal.signal(number, signal.SIG_IGN)  # the viewer ends with the simulation
    reason = _why_no_display()
    connection.send(reason)
    if reason is not None:
        return
    import mujoco.viewer

    set_planes(model, reach(model))
    scene, keys = ViewerScene(model, names), []  # type: tuple[ViewerScene, list[int]]
    with mujoco.viewer.launch_passive(
        model, scene.data, key_callback=keys.append, show_left_ui=False, show_right_ui=False
    ) as viewer:
        with viewer.lock():
            mujoco.mjv_defaultFreeCamera(model, viewer.cam)
        try:
            while viewer.is_running():
                frame: ViewerFrame = connection.recv()
                with viewer.lock():
                    scene.set_state(frame.state)
                    wrench = scene.dragged(viewer.perturb)
                viewer.set_texts((None, None, frame.labels, frame.values))
                viewer.sync()
                pressed, keys[:] = list(keys), []
                connection.send(Input(pressed, wrench))
            connection.send(None)
        except (EOFError, BrokenPipeError):
            pass  # the simulation has ended


def _why_no_display() -> str | None:
    import glfw

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if glfw.init():
            return None
    reasons = [str(warning.message) for warning in caught]
    return "; ".join(reasons) or "GLFW cannot be initialised"


if __name__ == "__main__":
    from crazyflow_ros.scene import viewer_process  # whose classes the other process knows

    with Connection(int(sys.argv[1])) as ours:
        viewer_process.show(ours, *ours.recv())
