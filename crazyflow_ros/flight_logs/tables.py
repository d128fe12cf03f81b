"""Tables with a line of names, as CSV."""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import open_file, shown, shown_path
from crazyflow_ros.flight_logs.flight_log import SAMPLES

_FILE_BYTES = 1 << 30
_NAMES_BYTES = 1 << 16  # of the first line


class Table(NamedTuple):
    """Variables that were logged together."""

    name: str
    time: np.ndarray
    """(n,) s."""
    columns: dict[str, np.ndarray]
    """(n,) each, by the name of the variable, as logged."""


def read_table(path: str | Path) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by name, each (n,); `.xz` is decompressed.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is too large, or not such a table.
    """
    with open_file(path, _FILE_BYTES) as file:
        try:
            text = _content(file, str(path).lower().endswith(".xz"))
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(f"{shown_path(path)} is not an .xz file: {error}") from None
    if len(text) > _FILE_BYTES:
        raise ValueError(f"{shown_path(path)} is too large: expected at most {_FILE_BYTES} bytes")
    try:
        return _columns(text)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None


def _content(file: BinaryIO, is_compressed: bool) -> bytes:
    if not is_compressed:
        return file.read(_FILE_BYTES + 1)
    with lzma.open(file) as decompressed:
        return decompressed.read(_FILE_BYTES + 1)


def _columns(text: bytes) -> dict[str, np.ndarray]:
    first, _, rest = text.partition(b"\n")
    if len(first) > _NAMES_BYTES:
        raise ValueError(f"the first line has {len(first)} bytes, expected names of columns")
    names = [name.strip() for name in first.decode(errors="replace").split(",")]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the first line has the name {shown(twice)!r} twice")
    table = np.loadtxt(
        io.BytesIO(rest), delimiter=",", ndmin=2, max_rows=SAMPLES + 1, encoding="utf-8"
    )
    if table.shape[-1] != len(names):
        raise ValueError(f"lines must have {len(names)} numbers, got {table.shape[-1]}")
    return dict(zip(names, table.T))
