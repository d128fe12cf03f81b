"""The page of a `Sim`, for scripts and notebooks."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.scene.shapes import world_shapes
from crazyflow_ros.sim import Sim
from crazyflow_ros.view.frame import Frame, looks_of
from crazyflow_ros.view.viewer import ADDRESS, PORT, Viewer

_RPM = math.tau / 60  # rad/s


class SimView:
    """A page that shows one world of a `Sim`; a notebook displays it as the result of a cell.

    Args:
        sim: The simulation.
        address: Address to listen on. If other machines can reach it, a browser needs a token.
        port: Port to listen on; the next free one if it is taken.

    Attributes:
        viewer: The page; `viewer.url` is its address.

    Raises:
        OSError: The address does not belong to this machine.
    """

    def __init__(self, sim: Sim, address: str = ADDRESS, port: int = PORT) -> None:
        self._sim = sim
        self.viewer = Viewer(address, port)
        models = [sim.drone] if isinstance(sim.drone, str) else list(sim.drone)
        self.viewer.drawing.set_looks([looks_of(model) for model in models])
        self.viewer.drawing.set_world(world_shapes(sim.mj_model))
        self._names = tuple(f"drone {number}" for number in range(sim.n_drones))
        self._world = None
        if sim.n_worlds > 1:
            most = sim.n_worlds - 1
            self._world = self.viewer.panel.add(
                "number", "World", 0, order=0, min=0, max=most, step=1
            )
        self._time_ns = 0
        self.show()

    def show(self) -> None:
        """Show the present state."""
        sim = self._sim
        world = 0 if self._world is None else int(self._world.value)
        states = sim.data.states
        quat = np.asarray(states.quat[world], float)
        rotors = np.asarray(states.rotor_vel[world], float) * _RPM
        before, self._time_ns = self._time_ns, round(float(sim.time[world, 0]) * 1e9)
        frame = Frame(
            self._time_ns,
            self._names,
            np.asarray(states.pos[world], float),
            quat,
            world_to_body(quat, np.asarray(states.vel[world], float)),
            np.broadcast_to(rotors, (sim.n_drones, rotors.shape[-1])),
        )
        self.viewer.show(frame, abs(self._time_ns - before) * 1e-9)

    def close(self) -> None:
        """Close the page."""
        self.viewer.close()

    def _repr_html_(self) -> str:
        url = escape(self.viewer.url, quote=True)
        return f'<iframe src="{url}" width="100%" height="480" style="border: 0"></iframe>'
