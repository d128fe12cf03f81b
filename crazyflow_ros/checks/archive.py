"""NumPy archives of arrays (.npz), read from untrusted files.

`numpy.load` trusts the sizes that it allocates and the headers that it evaluates. Here all sizes
are checked before anything is allocated.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from typing import BinaryIO

import numpy as np

from crazyflow_ros.checks.limits import shown

_MAX_ARRAYS = 1000
_MAX_HEADER = 4096  # bytes
_KINDS = "biufU"  # dtype kinds of numbers and strings


def write_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the arrays as an archive."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # the stubs take a name for an option
    return file.getvalue()


def read_arrays(
    file: BinaryIO, most: int, may_be_compressed: bool = False
) -> dict[str, np.ndarray]:
    """Return the arrays of an archive by name.

    Args:
        file: An open file with any content.
        most: Largest size of all arrays together [bytes].
        may_be_compressed: Whether `numpy.savez_compressed` may have written it.

    Raises:
        ValueError: The file is not an archive, is damaged, or holds too much or other data.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > _MAX_ARRAYS:
                raise ValueError(f"{len(members)} arrays, expected at most {_MAX_ARRAYS}")
            size = sum(member.file_size for member in members)
            if size > most:
                raise ValueError(f"arrays of {size} bytes, expected at most {most}")
            arrays: dict[str, np.ndarray] = {}
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in arrays or not member.filename.endswith(".npy"):
                    raise ValueError(f"{member.filename!r} is not an array, or occurs twice")
                arrays[name] = _read_array(archive, member, may_be_compressed)
            return arrays
    except ValueError:
        raise
    except Exception as error:  # zipfile raises many kinds of errors
        raise ValueError(
            f"not an archive of arrays ({str(error) or type(error).__name__})"
        ) from None


def _read_array(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, may_be_compressed: bool
) -> np.ndarray:
    is_stored = member.compress_type == zipfile.ZIP_STORED
    is_compressed = not is_stored or member.compress_size != member.file_size
    if is_compressed and not may_be_compressed:
        raise ValueError(f"{member.filename} is compressed")  # or says so: sizes could be anything
    with archive.open(member) as file:
        content = file.read(member.file_size + 1)  # which checks its CRC at the end
    if len(content) != member.file_size:
        raise ValueError(f"{member.filename} has {len(content)} bytes of {member.file_size}")
    head = io.BytesIO(content[: _MAX_HEADER + 10])
    try:
        version = np.lib.format.read_magic(head)
        if version != (1, 0):
            raise ValueError(f"version {version} of its format")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(head, _MAX_HEADER)
    except (ValueError, TypeError, MemoryError, RecursionError, struct.error) as error:
        raise ValueError(f"{member.filename} is not an array: {error}") from None
    if dtype.kind not in _KINDS or not dtype.itemsize:
        raise ValueError(f"{member.filename} holds {dtype}, expected numbers")
    size = len(content) - head.tell()
    if any(n < 1 for n in shape) or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{member.filename} has the wrong size for its shape {shown(shape)}")
    array = np.frombuffer(content, dtype, offset=head.tell())
    return array.reshape(shape, order="F" if is_fortran else "C").copy()
