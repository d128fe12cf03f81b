"""The door: what a number, a text or a file from outside may be.

Messages, services, actions, parameters, files and shared memory are checked here, and nowhere else.
The limits are far beyond what a quadrotor does, and far inside of what the physics computes with:
in single precision a position of 10 km is exact to a millimetre. docs/reliability.md lists them.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_SHOWN = 80  # characters of a refused value in a message
_SHOWN_PATH = 400  # of a path, whose end tells most


class Limit(NamedTuple):
    """The largest magnitude of a physical quantity."""

    most: float
    unit: str

    def __str__(self) -> str:
        return f"{self.most:g} {self.unit}".strip()


POSITION = Limit(1e4, "m")
VELOCITY = Limit(1e3, "m/s")
ACCELERATION = Limit(1e4, "m/s^2")
ANGLE = Limit(1e3, "rad")
ANGULAR_VELOCITY = Limit(1e3, "rad/s")
ROTOR_ANGLE = Limit(1e6, "rad")
ROTOR_VELOCITY = Limit(1e5, "rad/s")
FORCE = Limit(1e3, "N")
TORQUE = Limit(1e3, "N m")
WIND = Limit(30, "m/s")
GUST = Limit(10, "m/s")
DURATION = Limit(1e6, "s")
QUATERNION = Limit(1e6, "")
"""Of the numbers of a quaternion, which is made one of unit length."""

NAME_LENGTH = 255
"""Characters of the name of an entity, frame, file or parameter."""
TEXT_LENGTH = 4096
"""Characters of a text that is not a description of a scene."""

MESSAGE_BYTES = 200_000
"""Of one message: what takes a fraction of 100 ms to decode, as a trajectory of 1,000 points."""
REQUEST_ELEMENTS = 10_000
"""Elements of all lists in a request together."""
STEPS = 1_000_000_000
"""Ticks of one request."""
DRONES = 128
"""Drones up to which more can be added while the simulation runs; the parameter `max_drones` may
be more."""
OBSTACLES = 1000
"""Shapes of a scene that drones collide with."""
OBJECTS = 1000
"""Objects that are spawned in a world."""
SCENE_ELEMENTS = 10_000
"""Elements of the descriptions of all objects that are spawned in a world."""
REQUESTED = 100
"""Entities of one request to spawn, and files and folders of one request to look into."""
LISTED = 200
"""Files that one request looks into."""
POINTS = 1000
"""Points of a convex hull."""
TAGS = 100
"""Tags of an entity or of a filter."""

DESCRIPTION_BYTES = 1 << 20
"""Of a world or an object, with all that it includes."""
DESCRIPTION_ELEMENTS = 2000
"""Of a world or an object, with all that it includes and replicates."""
DESCRIPTION_DEPTH = 60
"""Elements that are inside of one another, and files that include one another."""
DESCRIPTION_PIECES = 200
"""Parts that composite and flexcomp elements are made of."""
ASSET_BYTES = 16 << 20
"""Files of meshes, textures and height fields that a description names, together."""
ASSET_PIXELS = 1 << 22
"""Pixels of its textures, of all sides, and points of its height fields, together."""
MODEL_MEBIBYTES = 256
"""That a description may have reserved."""


def shown(value: object, most: int = _SHOWN) -> str:
    """A value for a message, shortened to about so many characters."""
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 16 else f"{value.ravel()[:4].tolist()}..."
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def number(name: str, value: float, limit: Limit) -> float:
    """A finite number within a limit.

    Args:
        name: Of the value, for messages.
        value: In the unit of the limit.
        limit: Its largest magnitude.

    Raises:
        ValueError: It is NaN, infinite or too large.
    """
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an int beyond all floats
        is_finite = False
    if not is_finite:
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    if abs(value) > limit.most:
        raise ValueError(f"{name} must be within {limit}, got {value:g}")
    return float(value)


def vector(name: str, value: ArrayLike, shape: tuple[int, ...], limit: Limit) -> np.ndarray:
    """Finite numbers of a shape, each within a limit; a copy.

    Args:
        name: Of the value, for messages.
        value: In the unit of the limit.
        shape: That it must have.
        limit: The largest magnitude of each number.

    Raises:
        ValueError: It has another shape, or a number is NaN, infinite or too large.
    """
    try:
        array = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be {_described(shape)}, got {shown(value)}") from None
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {_described(shape)}, got {shown(array)}")
    if array.size and np.abs(array).max() > limit.most:
        raise ValueError(f"{name} must be within {limit}, got {shown(array)}")
    return array


def unit_quaternion(name: str, value: ArrayLike) -> np.ndarray:
    """An attitude xyzw of unit length from four numbers that are not all zero.

    Args:
        name: Of the value, for messages.
        value: (4,).

    Raises:
        ValueError: It has another shape, is zero, or a number is NaN, infinite or too large.
    """
    quat = vector(name, value, (4,), QUATERNION)
    largest = np.abs(quat).max()
    if largest == 0:
        raise ValueError(f"{name} is the zero quaternion, w = 1 means no rotation")
    quat /= largest  # so that no square is zero
    return quat / np.linalg.norm(quat)


def text(name: str, value: str, most: int = TEXT_LENGTH) -> str:
    """A text of limited length without characters that end or break a line.

    Args:
        name: Of the value, for messages.
        value: The text.
        most: Characters that it may have.

    Raises:
        ValueError: It is too long, or has such a character.
    """
    if len(value) > most:
        raise ValueError(f"{name} must have at most {most} characters, got {shown(value)!r}")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError(f"{name} must not contain control characters, got {shown(value)!r}")
    return value


def open_file(path: str | Path, most: int) -> BinaryIO:
    """Open a regular file of limited size for reading. Never blocks, as a FIFO or device would.

    Args:
        path: Of the file.
        most: Bytes that it may have.

    Raises:
        OSError: It is not there or cannot be read.
        ValueError: It is not a regular file, or too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a null byte
        raise ValueError(f"{shown(str(path))!r} is not a path: {error}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{_path(path)} is not a regular file")
        if status.st_size > most:
            size = f"{status.st_size} bytes, expected at most {most}"
            raise ValueError(f"{_path(path)} is too large: {size}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_text(path: str | Path, most: int) -> str:
    """The text of a regular UTF-8 file of limited size.

    Args:
        path: Of the file.
        most: Bytes that it may have.

    Raises:
        OSError: It is not there or cannot be read.
        ValueError: It is not a regular file, too large, or not UTF-8.
    """
    with open_file(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:  # it grew meanwhile
        raise ValueError(f"{_path(path)} is too large: expected at most {most} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{_path(path)} is not UTF-8: {error}") from None


def _path(path: str | Path) -> str:
    return shown(str(path), _SHOWN_PATH)


def _described(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"{shape[0]} finite numbers"
    return f"{' x '.join(map(str, shape))} finite numbers"
