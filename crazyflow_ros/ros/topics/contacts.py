"""~/contacts: all contacts between bodies of the world, drones among them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import mujoco
from crazyflow_ros_interfaces.msg import Contact, Contacts
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

from crazyflow_ros.ros.messages.frame_ids import MAP
from crazyflow_ros.ros.messages.geometry import point, vector
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.worker import Worker
from crazyflow_ros.scene.bodies import Touches
from crazyflow_ros.sensors import MirrorBackend

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

TOPIC = "~/contacts"
_RATE = 50  # Hz of simulated time, at most
_QOS = QoSProfile(depth=10)
_MOST_WAITING = 2  # messages; older ones are dropped


class ContactsTopic:
    """Publishes contacts while somebody listens, from a thread of its own.

    In a world whose bodies move, contacts and forces are those of MuJoCo in the last tick. Where
    nothing but drones moves, they are as in the contact sensors of drones.
    """

    def __init__(self, simulator: Host) -> None:
        self._physics, self._listeners = simulator.physics, simulator.listeners
        self._publisher = self._listeners.create_publisher(Contacts, TOPIC, _QOS)
        self._is_heard = False
        self._backend: MirrorBackend | None = None
        self._waiting: deque[tuple[int, mujoco.MjModel, Touches]] = deque(maxlen=_MOST_WAITING)
        self._worker = Worker("contacts")
        freq = simulator.physics.freq
        rate = next(rate for rate in range(_RATE, 0, -1) if freq % rate == 0)
        simulator.physics.every(rate, self._take, "contacts", observes=True)
        self._listeners.follow(self._look)

    def _look(self) -> None:
        self._is_heard = self._listeners.count(TOPIC) > 0
        if TOPIC in self._listeners.newly_heard and self._physics.paused:
            self._physics.show_to(self._show)

    def _take(self, now: Snapshot) -> None:
        """Take the contacts of a state. In the physics thread."""
        bodies = self._physics.simulation.engine.bodies
        if bodies is not None:
            bodies.tells_touches = self._is_heard
        if self._is_heard and now.names == self._physics.mirror.names:
            self._put(now, now.bodies.touches if now.bodies is not None else self._of_drones(now))

    def _show(self, now: Snapshot) -> None:
        """Take the present contacts, for who begins to listen. In the physics thread."""
        bodies = self._physics.simulation.engine.bodies
        self._put(now, self._of_drones(now) if bodies is None else bodies.touches)

    def _put(self, now: Snapshot, touches: Touches | None) -> None:
        if touches is not None:
            self._waiting.append((now.time_ns, self._physics.mirror.model, touches))
            self._worker.ask(self._send)

    def _of_drones(self, now: Snapshot) -> Touches:
        """Return the contacts of drones in a world in which nothing else moves."""
        backend, model = self._backend, self._physics.mirror.model
        if backend is None or backend.model is not model:
            self._backend = backend = MirrorBackend(model, now.names)
        backend.update(now, now.contact)
        found = backend.contacts()
        assert found.force is not None
        axes, force = found.axes[0], found.force[0]
        return Touches(
            found.geoms[0],
            found.pos[0],
            axes[:, :, 0],
            (axes @ force[..., None])[..., 0],
            -found.dist[0],
        )

    def _send(self) -> None:
        """Publish a message. In the worker."""
        try:
            time_ns, model, touches = self._waiting.popleft()
        except IndexError:  # it was dropped
            return
        header = Header(stamp=time_of(time_ns), frame_id=MAP)
        message = Contacts(header=header)
        names: dict[int, str] = {}
        for geoms, pos, normal, force, depth in zip(*touches):
            one, other = (
                names.get(i) or names.setdefault(i, name_of(model, i)) for i in geoms.tolist()
            )
            message.contacts.append(
                Contact(
                    body1=one,
                    body2=other,
                    position=point(pos),
                    normal=vector(normal),
                    force=vector(force),
                    depth=max(0.0, float(depth)),
                )
            )
        self._publisher.publish(message)


def name_of(model: mujoco.MjModel, geom: int) -> str:
    """Return the name of the drone or body of a geom; that of the next body above without one."""
    body = int(model.geom_bodyid[geom])
    root = model.body(model.body_rootid[body]).name
    if root.startswith("drone:"):
        return root.removeprefix("drone:")
    while body and not model.body(body).name:
        body = int(model.body_parentid[body])
    return str(model.body(body).name)
