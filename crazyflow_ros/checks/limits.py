"""Checks of numbers, texts and files from outside.

Messages, services, actions, parameters, files and shared memory are checked here, and nowhere else.
The limits are far beyond what quadrotors reach, and far within what the physics can compute: in
single precision, a position of 10 km is exact to a millimetre. docs/reference/limits.md lists
them.

Only the functions of arrays import NumPy: the Crazyflie program checks its options before it opens
its ports, and NumPy's import takes longer than a program of cflib that is started with it.
"""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

_DRONE_NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?", re.ASCII)
_SHOWN = 80  # characters of a refused value in a message
_LISTED = 100  # names in a message
_ALIKE = 0.75  # similarity of a name that was probably meant
_SHOWN_PATH = 400  # of a path, whose end is the most informative


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
"""Numbers of a quaternion, before it is normalised."""

NAME_LENGTH = 255
"""Characters of the name of an entity, frame, file or parameter."""
DRONE_NAME_LENGTH = 100
"""Characters of the name of a drone, which begins the names of topics; for those, ROS allows
247."""
TEXT_LENGTH = 4096
"""Characters of a text other than the description of a scene."""

MESSAGE_BYTES = 200_000
"""Bytes of a message, which takes a fraction of 100 ms to decode, such as a trajectory of 1,000
points."""
REQUEST_ELEMENTS = 10_000
"""Elements of all lists in a request together."""
STEPS = 1_000_000_000
"""Ticks of a request."""
DRONES = 1024
"""Drones up to which more can be added at run time; the parameter `max_drones` may be larger."""
OBSTACLES = 1000
"""Shapes of a scene that drones collide with."""
OBJECTS = 1000
"""Objects spawned in a world."""
SCENE_ELEMENTS = 10_000
"""Elements of the descriptions of all objects spawned in a world."""
REQUESTED = 100
"""Entities of a request to spawn, and files and folders of a request to read."""
LISTED = 200
"""Files that a request reads."""
POINTS = 1000
"""Points of a convex hull."""
TAGS = 100
"""Tags of an entity or of a filter."""

DESCRIPTION_BYTES = 1 << 20
"""Bytes of a world or an object, including its files."""
DESCRIPTION_ELEMENTS = 2000
"""Bodies, joints, geoms and the like that MuJoCo makes of a world or an object."""
DESCRIPTION_DEPTH = 60
"""Depth of nested elements, and of files that include one another."""
ASSET_BYTES = 16 << 20
"""Bytes of all mesh, texture and height field files of a description."""
MODEL_BYTES = 64 << 20
"""Bytes of the model that MuJoCo makes of a description, and bytes of its state."""
PICTURE_SIDE = 8192
"""Pixels of a side of pictures and shadow maps that a description asks for."""
SANDBOX_BYTES = 1 << 30
"""Bytes of memory that MuJoCo may use to build a description."""
SANDBOX_SECONDS = 10.0
"""Seconds of processor time within which MuJoCo has to build a description."""


def shown(value: object, most: int = _SHOWN) -> str:
    """Return a value for a message, shortened to about `most` characters."""
    numpy = sys.modules.get("numpy")  # without it, nothing is an array
    if numpy is not None and isinstance(value, numpy.ndarray):
        value = value.tolist() if value.size <= 16 else f"{value.ravel()[:4].tolist()}..."
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def shown_path(path: str | Path) -> str:
    """Return a path for a message, whole unless it is absurdly long."""
    return shown(str(path), _SHOWN_PATH)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests a known name similar to an unknown one; empty if none is."""
    alike = get_close_matches(name, known, 1)
    return f"did you mean {alike[0]!r}?" if alike else ""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a message that a name is unknown, with the known names.

    Such as "there is no scene 'rom', only floor, room; did you mean 'room'?"

    Args:
        what: Word for the thing, such as "scene".
        name: The unknown name.
        known: All names.
    """
    names = [*known]
    others = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    only = f", only {', '.join(names[:_LISTED])}{others}" if names else ""
    alike = get_close_matches(name, names, 1, _ALIKE) if isinstance(name, str) else []
    hint = f"; did you mean {alike[0]!r}?" if alike else ""
    given = repr(shown(name)) if isinstance(name, str) else shown(name)
    return f"there is no {what} {given}{only}{hint}"


def number(name: str, value: float, limit: Limit) -> float:
    """Check a number, and return it as a float.

    Args:
        name: Name of the value in messages.
        value: Number in the unit of the limit.
        limit: Its largest magnitude.

    Raises:
        ValueError: It is NaN, infinite or too large.
    """
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an int too large for a float
        is_finite = False
    if not is_finite:
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    if abs(value) > limit.most:
        raise ValueError(f"{name} must be within {limit}, got {value:g}")
    return float(value)


def vector(name: str, value: ArrayLike, shape: tuple[int, ...], limit: Limit) -> np.ndarray:
    """Check an array of numbers, and return a copy as floats.

    Args:
        name: Name of the value in messages.
        value: Numbers in the unit of the limit.
        shape: Expected shape.
        limit: Largest magnitude of each number.

    Raises:
        ValueError: It has another shape, or a number is NaN, infinite or too large.
    """
    import numpy as np

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
    """Return a unit quaternion xyzw from four numbers that are not all zero.

    Args:
        name: Name of the value in messages.
        value: (4,).

    Raises:
        ValueError: It has another shape, is zero, or a number is NaN, infinite or too large.
    """
    import numpy as np

    quat = vector(name, value, (4,), QUATERNION)
    largest = np.abs(quat).max()
    if largest == 0:
        raise ValueError(f"{name} is the zero quaternion; w = 1 means no rotation")
    quat /= largest  # so that no square underflows
    return quat / np.linalg.norm(quat)


def drone_name(value: str, reserved: Collection[str] = ("all",)) -> str:
    """Check the name of a drone, with which the names of its topics and services begin.

    Args:
        value: The name.
        reserved: Names with which the names of other services begin.

    Raises:
        ValueError: The name is not allowed.
    """
    if not _DRONE_NAME.fullmatch(value):
        rule = "must be letters, digits and single underscores, and start with a letter"
        raise ValueError(f"a name {rule}, got {shown(value)!r}")
    if len(value) > DRONE_NAME_LENGTH:
        most = f"at most {DRONE_NAME_LENGTH} characters"
        raise ValueError(f"a name must have {most}, got {shown(value)!r}")
    if value in reserved:
        use = "addresses all drones" if value == "all" else "is this simulator"
        raise ValueError(f"{value!r} is reserved; in the names of services it {use}")
    return value


def text(name: str, value: str, most: int = TEXT_LENGTH) -> str:
    """Check the length of a text, and that it has no control characters.

    Args:
        name: Name of the value in messages.
        value: The text.
        most: Maximum number of characters.

    Raises:
        ValueError: It is too long, or has a control character.
    """
    if len(value) > most:
        raise ValueError(f"{name} must have at most {most} characters, got {shown(value)!r}")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError(f"{name} must not contain control characters, got {shown(value)!r}")
    return value


def open_file(path: str | Path, most: int) -> BinaryIO:
    """Open a regular file of limited size for reading. Never blocks, as a FIFO or device could.

    Args:
        path: Path of the file.
        most: Maximum size in bytes.

    Raises:
        OSError: It does not exist or cannot be read.
        ValueError: It is not a regular file, or too large.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a null byte
        raise ValueError(f"{shown(str(path))!r} is not a path: {error}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{shown_path(path)} is not a regular file")
        if status.st_size > most:
            size = f"{status.st_size} bytes, expected at most {most}"
            raise ValueError(f"{shown_path(path)} is too large: {size}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: str | Path, most: int) -> bytes:
    """Return the content of a regular file of limited size.

    Args:
        path: Path of the file.
        most: Maximum size in bytes.

    Raises:
        OSError: It does not exist or cannot be read.
        ValueError: It is not a regular file, or too large.
    """
    with open_file(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:  # it has grown since
        raise ValueError(f"{shown_path(path)} is too large: expected at most {most} bytes")
    return content


def read_text(path: str | Path, most: int) -> str:
    """Return the text of a regular UTF-8 file of limited size.

    Args:
        path: Path of the file.
        most: Maximum size in bytes.

    Raises:
        OSError: It does not exist or cannot be read.
        ValueError: It is not a regular file, too large, or not UTF-8.
    """
    try:
        return read_bytes(path, most).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown_path(path)} is not UTF-8: {error}") from None


def _described(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"{shape[0]} finite numbers"
    return f"{' x '.join(map(str, shape))} finite numbers"
