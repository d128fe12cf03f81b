"""Logging of the drones: <drone>/pose, scan, odom, status, imu, and topics with chosen variables.

The services <drone>/add_logging and <drone>/remove_logging add and remove topics.

Messages are sent at exact multiples of their periods. Poses are the drones' own estimates, or the
true poses if they have no estimators. All reference frames coincide with the world.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from crazyflie_interfaces.msg import LogDataGeneric, Status
from crazyflie_interfaces.srv import AddLogging, RemoveLogging
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.exceptions import InvalidHandle
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, LaserScan
from std_msgs.msg import Header

from crazyflow_ros.crazyflie import deck_readings
from crazyflow_ros.crazyflie.crtp import CTYPES, DATA_SIZE
from crazyflow_ros.crazyflie.telemetry import Telemetry
from crazyflow_ros.crazyflie.variables import RANGES, VARIABLES, as_ctype
from crazyflow_ros.crazyswarm.log_configuration import STEPS, LogTopic
from crazyflow_ros.flight.commander import FlightStatus
from crazyflow_ros.ros.commands.flight_services import ALL
from crazyflow_ros.ros.messages.numeric_message import (
    EXACT,
    ODOMETRY,
    POSE,
    READINGS,
    NumericMessage,
    diagonal,
    elements,
    stamped,
)
from crazyflow_ros.ros.messages.outbox import Row, SerialisedMessages
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import rotation_matrix, world_to_body

if TYPE_CHECKING:
    from crazyflow_ros.crazyswarm.crazyflies import Crazyflies

_QOS = QoSProfile(depth=10)
_NEAREST, _FARTHEST = 0.01, 3.49  # m, of a scan
_AROUND = [1, 3, 0, 2]  # back, right, front, left of the range sensors
_MOST_BYTES = DATA_SIZE - 4  # of the values of a block
_STATUS = ("supervisor.info", "pm.vbatMV", "pm.state", "radio.rssi")


def _messages(reference_frame: Callable[[str], str]) -> dict[str, NumericMessage[_Moment]]:
    """Return the messages in which only numbers change, by the names of their topics."""
    exact = diagonal([EXACT] * 3)
    imu = Imu(angular_velocity_covariance=exact, linear_acceleration_covariance=exact)
    imu.orientation_covariance[0] = -1.0  # an IMU does not measure its orientation (REP 145)
    covariances = [
        [f"pose.covariance.{7 * i}" for i in range(6)],
        [f"twist.covariance.{7 * i}" for i in range(3)],
    ]

    def odometry(drone: str) -> Odometry:
        header = Header(frame_id=reference_frame(drone))
        odometry = Odometry(header=header, child_frame_id=drone)
        odometry.twist.covariance = diagonal([EXACT] * 6)
        return odometry

    return {  # the frame of a drone has its name
        "pose": NumericMessage(stamped(PoseStamped(), reference_frame), POSE, _believed_pose),
        "odom": NumericMessage(odometry, [*ODOMETRY, *covariances], _believed_motion),
        "imu": NumericMessage(stamped(imu, str), READINGS, _readings),
        "scan": NumericMessage(stamped(_scan(), str), [elements("ranges", len(_AROUND))], _ranges),
    }


def _scan() -> LaserScan:
    return LaserScan(
        angle_min=-math.pi,
        angle_max=math.pi / 2,
        angle_increment=math.pi / 2,
        range_min=_NEAREST,
        range_max=_FARTHEST,
        ranges=[0.0] * len(_AROUND),
    )


def _readings(now: _Moment) -> list[np.ndarray]:
    return [now.snapshot.ang_vel, now.snapshot.specific_force]


def _ranges(now: _Moment) -> list[np.ndarray]:
    ranges = now.distances()[:, _AROUND]
    return [np.where(ranges > _FARTHEST, np.inf, ranges)]


def _believed_pose(now: _Moment) -> list[np.ndarray]:
    return [now.snapshot.known.pos, now.snapshot.known.quat]


def _believed_motion(now: _Moment) -> list[np.ndarray]:
    snapshot, known = now.snapshot, now.snapshot.believed
    vel = snapshot.body_vel if known is None else world_to_body(known.quat, known.vel)
    return [*_believed_pose(now), vel, snapshot.ang_vel, *variances(snapshot)]


def variances(snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """Return the diagonals of the covariances of an odometry message, `EXACT` for what is exact.

    Returns:
        (M, 6) of position [m] and of the rotation about the axes of the world [rad], and (M, 3) of
        the velocity in the axes of the drone [m/s].
    """
    known = snapshot.believed
    if known is None:
        return np.full((len(snapshot.names), 6), EXACT), np.full((len(snapshot.names), 3), EXACT)
    place, vel, turn = np.split(known.variances, 3, axis=1)
    turn = (np.square(rotation_matrix(known.quat)) @ turn[..., None])[..., 0]
    return np.hstack((place, turn)), vel


_TYPES = {"pose": PoseStamped, "odom": Odometry, "scan": LaserScan, "status": Status, "imu": Imu}


@dataclass(frozen=True)
class Block:
    """A topic of a drone."""

    drone: str
    topic: LogTopic
    publisher: Any


class _Rows:
    """The messages of one type and period."""

    def __init__(self, message: NumericMessage[_Moment], blocks: Sequence[Block]) -> None:
        self._values, self._drones = message.values, [block.drone for block in blocks]
        messages = SerialisedMessages(message.layout(self._drones))
        self._row = Row(messages, [(i, block.publisher) for i, block in enumerate(blocks)])

    def send(self, now: _Moment) -> None:
        """Send the state."""
        rows = [now.snapshot.names.index(drone) for drone in self._drones]
        values = [block[rows] for block in self._values(now)]
        self._row.send(now.snapshot.time_ns, values)


class _Moment:
    """The state at one tick; expensive values are computed on first use."""

    def __init__(self, crazyflies: Crazyflies, snapshot: Snapshot) -> None:
        self._crazyflies, self.snapshot = crazyflies, snapshot
        self._physics = crazyflies.host.physics
        self._flights: list[FlightStatus] | None = None
        self._distances: np.ndarray | None = None

    def distances(self) -> np.ndarray:
        """Return the readings of the decks, see `deck_readings.read`."""
        if self._distances is None:
            self._distances = deck_readings.read(self._physics, self.snapshot)
        return self._distances

    def telemetry(self, drone: str, with_ranges: bool) -> Telemetry:
        """Return the data from which the log variables of a drone are computed."""
        if self._flights is None:
            self._flights = self._physics.commands.commanders.flights(self.snapshot.names)
        row = self.snapshot.names.index(drone)
        ranges = self.distances()[row] if with_ranges else None
        firmware = self._crazyflies.firmware(drone)
        return firmware.telemetry(self.snapshot, row, self._flights[row], ranges)


class LogTopics:
    """Publishes logged values of the drones in the physics thread; services select them."""

    def __init__(self, crazyflies: Crazyflies) -> None:
        self._simulator = simulator = crazyflies.host
        self._crazyflies, self._logger = crazyflies, simulator.log
        self._listeners, self._swarm = simulator.listeners, crazyflies.swarm
        swarm = self._swarm
        self._messages = _messages(lambda drone: swarm.settings(drone).reference_frame)
        self._blocks: dict[tuple[str, str], Block] = {}
        self._in_order = threading.Lock()  # guards the three below
        self._due: dict[int, list[Callable[[_Moment], None]]] = {}
        self._names: tuple[str, ...] = ()
        self._latest = (-1, -1)
        simulator.for_each_drone(self._add)
        simulator.physics.every(STEPS, self._send, "firmware_logging", observes=True)
        self._listeners.follow(self._address)

    def topics(self, drone: str) -> list[str]:
        """Return the names of a drone's log topics."""
        return [name for owner, name in self._blocks if owner == drone]

    def add(self, drone: str, topic: LogTopic) -> None:
        """Start to publish a log topic.

        Raises:
            ValueError: The topic exists already, or its variables cannot be logged together.
        """
        name = f"{drone}/{topic.name}"
        resolved = self._simulator.resolve_topic_name(name)
        if resolved in {publisher.topic_name for publisher in self._simulator.node.publishers}:
            raise ValueError(f"{name} is published already")
        check_variables(topic)
        kind = _TYPES.get(topic.name, LogDataGeneric)
        publisher = self._listeners.create_publisher(kind, name, _QOS)
        self._blocks[drone, topic.name] = Block(drone, topic, publisher)
        self._address()

    def remove(self, drone: str, name: str) -> None:
        """Stop publishing a log topic.

        Raises:
            ValueError: There is no such topic.
        """
        if (drone, name) not in self._blocks:
            known = ", ".join(self.topics(drone)) or "none"
            raise ValueError(f"{drone} does not log {name!r}, but {known}")
        del self._blocks[drone, name]
        self._address()
        self._listeners.remove(f"{drone}/{name}")

    def _add(self, drone: str) -> None:
        create = self._simulator.create_service
        create(AddLogging, f"{drone}/add_logging", partial(self._begin, drone))
        create(RemoveLogging, f"{drone}/remove_logging", partial(self._end, drone))
        # Those left from before have lost their publishers.
        self._blocks = {key: block for key, block in self._blocks.items() if key[0] != drone}
        for topic in self._swarm.settings(drone).log_topics:
            try:
                self.add(drone, topic)
            except ValueError as error:
                self._logger.warning(f"{drone} does not log {topic.name}: {error}")

    def _begin(self, drone: str, request: AddLogging.Request, response: Any) -> Any:
        variables = list(request.vars)
        topic = LogTopic.of(request.topic_name, request.frequency, variables, "add_logging")
        self.add(drone, topic)
        response.success = True
        return response

    def _end(self, drone: str, request: RemoveLogging.Request, response: Any) -> Any:
        self.remove(drone, request.topic_name)
        response.success = True
        return response

    def _address(self) -> None:
        """Select the topics that have subscribers."""
        freq, drones = self._simulator.physics.freq, self._simulator.drones
        heard = [
            block
            for (drone, name), block in self._blocks.items()
            if drone in drones and self._listeners.count(f"{drone}/{name}")
        ]
        due: dict[int, list[Callable[[_Moment], None]]] = {}

        def key(block: Block) -> tuple[int, str]:
            return (
                block.topic.period,
                block.topic.name if block.topic.name in self._messages else "",
            )

        for (period, name), group in groupby(sorted(heard, key=key), key):
            blocks, senders = list(group), due.setdefault(period * freq // STEPS, [])
            if name:
                senders.append(_Rows(self._messages[name], blocks).send)
            else:
                senders += [self._sender(block) for block in blocks]
        with self._in_order:
            self._due, self._names = due, drones

    def _send(self, snapshot: Snapshot) -> None:
        instant = (snapshot.epoch, snapshot.tick)  # also called when time stands still
        with self._in_order:
            if snapshot.names != self._names or instant == self._latest:
                return
            self._latest = instant
            now = _Moment(self._crazyflies, snapshot)
            for period, senders in self._due.items():
                if snapshot.tick % period == 0:
                    for send in senders:
                        with suppress(InvalidHandle):  # it has just been removed
                            send(now)

    def _sender(self, block: Block) -> Callable[[_Moment], None]:
        drone, traffic = block.drone, self._crazyflies.traffic
        frame = self._swarm.settings(drone).reference_frame

        def status(now: _Moment) -> None:
            telemetry = now.telemetry(drone, with_ranges=False)
            info, millivolts, state, rssi = (VARIABLES[v].value(telemetry) for v in _STATUS)
            broadcast, unicast = traffic.news(block, ALL), traffic.news(block, drone)
            message = Status(
                supervisor_info=int(info),
                battery_voltage=millivolts / 1000,
                pm_state=int(state),
                rssi=int(rssi),
                num_rx_broadcast=broadcast,
                num_tx_broadcast=broadcast,
                num_rx_unicast=unicast,
                num_tx_unicast=unicast,
            )
            message.header.stamp, message.header.frame_id = time_of(telemetry.time_ns), drone
            block.publisher.publish(message)

        variables = [VARIABLES[name] for name in block.topic.variables]
        with_ranges = any(name in RANGES for name in block.topic.variables)

        def chosen(now: _Moment) -> None:
            telemetry = now.telemetry(drone, with_ranges)
            values = [float(as_ctype(v.value(telemetry), v.ctype)) for v in variables]
            timestamp = telemetry.time_ns // 1_000_000 & 0xFFFFFFFF
            message = LogDataGeneric(timestamp=timestamp, values=values)
            message.header.stamp, message.header.frame_id = time_of(telemetry.time_ns), frame
            block.publisher.publish(message)

        return status if block.topic.name == "status" else chosen


def check_variables(topic: LogTopic) -> None:
    """Refuse variables that the firmware lacks or that do not fit into one packet.

    Raises:
        ValueError: A variable is refused; the message names it.
    """
    if topic.name in _TYPES:
        return
    if not topic.variables:
        raise ValueError("vars is empty")
    for name in topic.variables:
        if name not in VARIABLES:
            group = f"{name.partition('.')[0]}."
            near = [other for other in VARIABLES if other.startswith(group)]
            raise ValueError(f"there is no log variable {name!r}; {group}* are {near or 'none'}")
    formats = "".join(CTYPES[VARIABLES[name].ctype].format for name in topic.variables)
    n_bytes = struct.calcsize(f"<{formats}")
    if n_bytes > _MOST_BYTES:
        raise ValueError(f"variables must have at most {_MOST_BYTES} bytes, got {n_bytes}")
