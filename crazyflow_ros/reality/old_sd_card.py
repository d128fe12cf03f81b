"""Logs of the Crazyflie's SD card as its firmware wrote them until 2020, such as Neural-Swarm's.

Format: a byte with the number of variables and their names, each with its type and a comma; then
blocks of a byte with the number of records and the records. Header and blocks end with a CRC-32,
inverted.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from crazyflow_ros.checks.limits import read_bytes, shown_path

_TYPES = {"B": "u1", "b": "i1", "H": "u2", "h": "i2", "I": "u4", "i": "i4", "f": "f4"}
_CRC_BYTES = 4
_MOST_BYTES = 100_000_000


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Return the values (n,) of each variable, without records whose `tick` does not rise.

    Raises:
        ValueError: It is not such a log, it is damaged, or it is larger than 100 MB.
        OSError: The file cannot be read.
    """
    content = read_bytes(path, _MOST_BYTES)
    try:
        records = _records(content)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None
    tick = records["tick"].astype(float)
    rising = tick > np.maximum.accumulate(np.concatenate([[-np.inf], tick[:-1]]))
    return {name: records[name][rising].astype(float) for name in records.dtype.names or ()}


def _records(content: bytes) -> np.ndarray:
    names = content[1:].split(b",", content[0])[:-1] if content else []
    start = 1 + sum(len(name) + 1 for name in names)
    if not names or len(names) != content[0]:
        raise ValueError("the header is not complete")
    variables = [(name[:-3].strip().decode("ascii", "replace"), name[-3:]) for name in names]
    kinds = [kind[1:2].decode("ascii", "replace") for _, kind in variables]
    if any(kind not in _TYPES for kind in kinds) or variables[0][0] != "tick":
        raise ValueError("not an old log of the firmware's SD card")
    record = np.dtype([(name, f"<{_TYPES[kind]}") for (name, _), kind in zip(variables, kinds)])
    _check(content[: start + _CRC_BYTES])
    at, blocks = start + _CRC_BYTES, []
    while at < len(content):
        end = at + 1 + content[at] * record.itemsize + _CRC_BYTES
        if end > len(content):
            break  # the drone was switched off while it wrote
        _check(content[at:end])
        blocks.append(np.frombuffer(content, record, content[at], at + 1))
        at = end
    if not blocks:
        raise ValueError("there are no records")
    return np.concatenate(blocks)


def _check(block: bytes) -> None:
    stored = int.from_bytes(block[-_CRC_BYTES:], "little")
    if zlib.crc32(block[:-_CRC_BYTES]) != stored ^ 0xFFFFFFFF:
        raise ValueError("a checksum is wrong: the file is damaged")
