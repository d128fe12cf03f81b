"""The messages of MAVLink 2 that PX4's simulator interface uses, and their frames.

Source: https://mavlink.io/en/guide/serialization.html, and the definitions of the messages in
`common.xml`. The fields of each message are in the order of the wire: by size, then those of later
versions.
"""

from __future__ import annotations

import struct
from binascii import crc_hqx
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Vector3: TypeAlias = tuple[float, float, float]


class Heartbeat(NamedTuple):
    """HEARTBEAT: who is there."""

    custom_mode: int
    type: int
    autopilot: int
    """12 is PX4."""
    base_mode: int
    system_status: int
    mavlink_version: int


class CommandLong(NamedTuple):
    """COMMAND_LONG: with it PX4 requests messages that a simulator sends in any case."""

    params: tuple[float, ...]
    command: int
    target_system: int
    target_component: int
    confirmation: int


class HilSensor(NamedTuple):
    """HIL_SENSOR: readings in body axes forward, right, down; the one of id 0 is PX4's clock."""

    time_usec: int
    acc: Vector3
    """Specific force [m/s^2]."""
    gyro: Vector3
    """Angular velocity [rad/s]."""
    mag: Vector3
    """Magnetic field [gauss]."""
    abs_pressure: float
    """hPa."""
    diff_pressure: float
    """hPa."""
    pressure_alt: float
    """Altitude of that pressure in the standard atmosphere [m]."""
    temperature: float
    """Degrees Celsius."""
    fields_updated: int
    """Bits of the fields above that are new."""
    id: int
    """Number of the IMU."""


class HilGps(NamedTuple):
    """HIL_GPS: a fix; the last two fields are not part of the first version."""

    time_usec: int
    lat: int
    """1e-7 degrees."""
    lon: int
    alt: int
    """Above mean sea level [mm]."""
    eph: int
    """Standard deviation of the horizontal position as PX4 takes it [cm]."""
    epv: int
    vel: int
    """Ground speed [cm/s]."""
    velocity: tuple[int, int, int]
    """North, east, down [cm/s]."""
    cog: int
    """Direction of movement [0.01 degrees], 65535 if unknown."""
    fix_type: int
    """3 is a fix in three dimensions."""
    satellites_visible: int
    id: int
    yaw: int
    """0 if unknown."""


class HilStateQuaternion(NamedTuple):
    """HIL_STATE_QUATERNION: the true state, which PX4 only logs."""

    time_usec: int
    attitude: tuple[float, float, float, float]
    """wxyz, of the body (forward, right, down) in axes north, east, down."""
    rates: Vector3
    """rad/s, body axes."""
    lat: int
    """1e-7 degrees."""
    lon: int
    alt: int
    """mm."""
    velocity: tuple[int, int, int]
    """North, east, down [cm/s]."""
    ind_airspeed: int
    """cm/s."""
    true_airspeed: int
    acc: tuple[int, int, int]
    """Body axes [mg]."""


class HilActuatorControls(NamedTuple):
    """HIL_ACTUATOR_CONTROLS: PX4's outputs, from the frame of HIL_SENSOR with the same time."""

    time_usec: int
    flags: int
    """1: in lock-step."""
    controls: tuple[float, ...]
    """16 numbers; 0 to 1 of a motor."""
    mode: int
    """`ARMED` is one of its bits."""


class DistanceSensor(NamedTuple):
    """DISTANCE_SENSOR: the reading of a range finder."""

    time_boot_ms: int
    min_distance: int
    """cm."""
    max_distance: int
    current_distance: int
    type: int
    """0 is a laser."""
    id: int
    orientation: int
    """25 looks down."""
    covariance: int
    """cm^2; 255 if unknown."""
    horizontal_fov: float
    """rad."""
    vertical_fov: float
    quaternion: tuple[float, float, float, float]
    signal_quality: int
    """Percent; 0 if unknown, 1 if there is no signal."""


class HilOpticalFlow(NamedTuple):
    """HIL_OPTICAL_FLOW: how the floor has moved through the view of a sensor that looks down."""

    time_usec: int
    integration_time_us: int
    """Time of that movement."""
    integrated_x: float
    """About the axis forward [rad], positive if the sensor turns about it, or moves to the left."""
    integrated_y: float
    """About the axis to the right [rad], positive if it turns about it, or moves forward."""
    integrated_gyro: Vector3
    """How the sensor has turned about its axes forward, right, down [rad]."""
    time_delta_distance_us: int
    distance: float
    """m; negative if it is unknown."""
    temperature: int
    """0.01 degrees Celsius."""
    sensor_id: int
    quality: int
    """0 if it sees nothing, to 255."""


class Odometry(NamedTuple):
    """ODOMETRY: pose and velocity as a camera or another system measures them."""

    time_usec: int
    position: Vector3
    """m, in the frame `frame_id`."""
    q: tuple[float, float, float, float]
    """wxyz, of the body (forward, right, down) in that frame."""
    velocity: Vector3
    """m/s, in the frame `child_frame_id`."""
    rates: Vector3
    """rad/s, body axes."""
    pose_covariance: tuple[float, ...]
    """21 numbers, the upper half of the matrix, row by row."""
    velocity_covariance: tuple[float, ...]
    frame_id: int
    """1 is north, east, down."""
    child_frame_id: int
    """12 is the body."""
    reset_counter: int
    estimator_type: int
    """3 is visual-inertial odometry."""
    quality: int
    """Percent."""


ARMED = 128
"""Bit of `HilActuatorControls.mode`."""

Message: TypeAlias = (
    Heartbeat
    | CommandLong
    | HilSensor
    | HilGps
    | HilStateQuaternion
    | HilActuatorControls
    | DistanceSensor
    | HilOpticalFlow
    | Odometry
)

_SYSTEM, _COMPONENT = 1, 200  # of the simulator


class _Wire(NamedTuple):
    """The wire format of a message."""

    type: type[Message]
    number: int
    crc_extra: int
    """Digest of its definition, which is part of the check sum."""
    payload: struct.Struct
    origin: bytes
    """Part of the header: sender and number of the message."""
    places: tuple[int | slice, ...]
    """Index of each field in the numbers of the payload."""


def _wire(type: type[Message], number: int, crc_extra: int, fields: str) -> _Wire:
    formats, places, at = fields.split(), list[int | slice](), 0
    for format in formats:
        size = int(format[:-1] or 1)
        places.append(at if size == 1 else slice(at, at + size))
        at += size
    origin = bytes((_SYSTEM, _COMPONENT)) + number.to_bytes(3, "little")
    payload = struct.Struct("<" + "".join(formats))
    return _Wire(type, number, crc_extra, payload, origin, tuple(places))


_WIRES = (
    _wire(Heartbeat, 0, 50, "I B B B B B"),
    _wire(CommandLong, 76, 152, "7f H B B B"),
    _wire(HilActuatorControls, 93, 47, "Q Q 16f B"),
    _wire(HilSensor, 107, 108, "Q 3f 3f 3f f f f f I B"),
    _wire(HilGps, 113, 124, "Q i i i H H H 3h H B B B H"),
    _wire(HilOpticalFlow, 114, 237, "Q I f f 3f I f h B B"),
    _wire(HilStateQuaternion, 115, 4, "Q 4f 3f i i i 3h H H 3h"),
    _wire(DistanceSensor, 132, 85, "I H H H B B B B f f 4f B"),
    _wire(Odometry, 331, 91, "Q 3f 4f 3f 3f 21f 21f B B B B b"),
)
_BY_TYPE = {wire.type: wire for wire in _WIRES}
_BY_NUMBER = {wire.number: wire for wire in _WIRES}

_MAGIC = 0xFD
_HEADER_SIZE, _CHECK_SUM_SIZE, _SIGNATURE_SIZE = 10, 2, 13
_SIGNED = 1  # the only flag that makes a frame longer

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def check_sum(data: bytes, crc_extra: int) -> int:
    """Return MAVLink's check sum, CRC-16/MCRF4XX.

    It is the CRC of `binascii` with the bits of all bytes, and of the result, in reverse order.
    """
    crc = crc_hqx(data.translate(_REVERSED) + _REVERSED[crc_extra : crc_extra + 1], 0xFFFF)
    return _REVERSED[crc >> 8] | _REVERSED[crc & 0xFF] << 8


def encode(message: Message, sequence: int) -> bytes:
    """Return the frame of a message.

    Args:
        message: The message.
        sequence: Number of the frames before it on the same link; only its lowest byte is sent.

    Raises:
        struct.error: A number does not fit into its field.
    """
    wire = _BY_TYPE[type(message)]
    numbers: list[float] = []
    for part in message:
        if isinstance(part, tuple):
            numbers += part
        else:
            numbers.append(part)
    payload = wire.payload.pack(*numbers)
    payload = payload.rstrip(b"\0") or payload[:1]
    body = bytes((len(payload), 0, 0, sequence & 0xFF)) + wire.origin + payload
    return b"\xfd" + body + check_sum(body, wire.crc_extra).to_bytes(2, "little")


class Parser:
    """Finds messages in a stream of bytes, whatever lies between them.

    Attributes:
        refused: Number of bytes since the last message that belong to no message.
    """

    def __init__(self) -> None:
        self._bytes = b""
        self.refused = 0

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that these bytes complete.

        Unknown and damaged frames are skipped. Signatures are not checked.
        """
        data, at = self._bytes + data, 0
        while True:
            begins = data.find(_MAGIC, at)
            self.refused += (len(data) if begins < 0 else begins) - at
            at = len(data) if begins < 0 else begins
            if len(data) - at < _HEADER_SIZE:
                break
            size = _HEADER_SIZE + data[at + 1] + _CHECK_SUM_SIZE
            number = int.from_bytes(data[at + 7 : at + 10], "little")
            wire, flags = _BY_NUMBER.get(number), data[at + 2]
            length = size + _SIGNATURE_SIZE * (flags & _SIGNED)
            is_ours = wire is not None and not flags & ~_SIGNED
            if is_ours and len(data) - at < length:
                break
            if wire is None or not is_ours or not _is_whole(data[at : at + size], wire):
                self.refused += 1
                at += 1  # another frame may begin in what looked like this one
                continue
            at, payload = at + length, data[at + _HEADER_SIZE : at + size - _CHECK_SUM_SIZE]
            self.refused = 0
            yield _decoded(payload, wire)
        self._bytes = data[at:]


def _is_whole(frame: bytes, wire: _Wire) -> bool:
    sent = int.from_bytes(frame[-_CHECK_SUM_SIZE:], "little")
    return check_sum(frame[1:-_CHECK_SUM_SIZE], wire.crc_extra) == sent


def _decoded(payload: bytes, wire: _Wire) -> Message:
    """Decode a message; trailing zeros are not sent, and fields of later versions are ignored."""
    size = wire.payload.size
    numbers = wire.payload.unpack(payload[:size].ljust(size, b"\0"))
    return wire.type._make([numbers[place] for place in wire.places])
