"""<drone>/<name>: force and torque of all contacts of a drone, or of those with one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import Wrench, WrenchStamped
from std_msgs.msg import Bool

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.messages.geometry import vector
from crazyflow_ros.ros.sensors.device_topics import (
    MARKERS,
    DeviceTopics,
    Scene,
    marker_array,
    put_header,
)
from crazyflow_ros.ros.sensors.devices import Device, SensorFile, Topic
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sensors import (
    ContactMatch,
    ContactSensor,
    ContactSensorCfg,
    MirrorBackend,
    ShapeRecorder,
)

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_MOST_DRAWN = 8  # contacts of a drone that are drawn at most
_WRENCH, _IN_CONTACT, _MARKERS = 0, 1, 2  # numbers of the topics


class ContactTopics(DeviceTopics):
    """Total force and torque of the contacts, about the drone's origin and in its axes.

    Contacts and their forces are those of the physics.
    """

    in_drone_model = False

    def __init__(self, simulator: Host, file: SensorFile, device: Device[ContactSensorCfg]) -> None:
        super().__init__(simulator, file, device)
        self._cfg = device.cfg
        if self._cfg.secondary is not None:
            try:
                self._cfg.secondary.names(simulator.physics.mirror.model)
            except ValueError as error:
                text = f"secondary of {self._cfg.name}: {error}"
                raise ParameterError("sensors", text) from None

    @staticmethod
    def topics(device: Device[Any]) -> list[Topic]:
        """Return the topics of the wrench, of whether there is a contact, and of the markers."""
        del device
        return [Topic(WrenchStamped, display="Wrench"), Topic(Bool, "/in_contact"), MARKERS]

    def _initialize(self, scene: Scene) -> None:
        self._backend = MirrorBackend(scene.mirrored, scene.names)
        self._sensors = {drone: self._sensor(drone, drawn=False) for drone in self._drones}
        self._drawn = {drone: self._sensor(drone, drawn=True) for drone in self._drones}

    def _sensor(self, drone: str, *, drawn: bool) -> ContactSensor:
        """Build the sensor for the sum of all contacts, or for the individual contacts to draw."""
        sensor = ContactSensorCfg(
            name=drone,
            primary=ContactMatch("subtree", "drone", entity=drone),
            secondary=self._cfg.secondary,
            secondary_policy=self._cfg.secondary_policy,
            fields=("found", "force", "torque", "pos"),
            reduce="maxforce" if drawn else "netforce",
            num_slots=_MOST_DRAWN if drawn else 1,
            debug_vis=drawn,
        ).build()
        sensor.initialize(self._backend)
        return sensor

    def sense(self, snapshots: Sequence[Snapshot], scene: Scene) -> None:
        """Read the contacts, and publish them to subscribers."""
        (snapshot,) = snapshots
        self._backend.update(snapshot, snapshot.contact)
        listeners = self.listeners
        for drone in self._drones:
            row = scene.names.index(drone)
            if {(drone, _WRENCH), (drone, _IN_CONTACT)} & listeners.keys():
                self._sensors[drone].update(1 / self._device.rate)
            if (drone, _IN_CONTACT) in listeners:
                found = self._sensors[drone].data.found
                self._publish(drone, _IN_CONTACT, Bool(data=bool(np.any(found))))
            if (drone, _WRENCH) in listeners:
                message = self._wrench(drone, snapshot.pos[row], snapshot.quat[row])
                put_header(message, snapshot.time_ns, self._device.frame(drone))
                self._publish(drone, _WRENCH, message)
            if (drone, _MARKERS) in listeners:
                self._drawn[drone].update(1 / self._device.rate)
                self._drawn[drone].debug_vis(shapes := ShapeRecorder(self._backend.model))
                drawn = marker_array(shapes, snapshot.time_ns, self._device.rate)
                self._publish(drone, _MARKERS, drawn)

    def _wrench(self, drone: str, pos: np.ndarray, quat: np.ndarray) -> WrenchStamped:
        data = self._sensors[drone].data
        assert data.force is not None and data.torque is not None and data.pos is not None
        # The sensor reports the drone's action on the others, about the centre of the contacts.
        force, torque, place = (-data.force[0, 0], -data.torque[0, 0], data.pos[0, 0])
        torque = torque + np.cross(place - pos, force)
        force, torque = world_to_body(quat, force), world_to_body(quat, torque)
        return WrenchStamped(wrench=Wrench(force=vector(force), torque=vector(torque)))
