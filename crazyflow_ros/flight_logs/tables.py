"""Tables with a line of names, as CSV."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.flight_logs.flight_log import SAMPLES

_NAMES_BYTES = 1 << 16  # of the first line


class Table(NamedTuple):
    """Variables that were logged together."""

    time: np.ndarray
    """(n,) s."""
    columns: dict[str, np.ndarray]
    """(n,) each, by the name of the variable, as logged."""


def read_columns(content: bytes) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by name, each (n,).

    Raises:
        ValueError: It is not such a table.
    """
    text = io.BytesIO(content)
    first = text.readline(_NAMES_BYTES + 1)
    if len(first) > _NAMES_BYTES:
        raise ValueError(f"the first line has more than {_NAMES_BYTES} bytes, expected names")
    names = [name.strip() for name in first.decode().split(",")]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the first line has the name {shown(twice)!r} twice")
    if text.tell() == len(content):
        raise ValueError("there are no lines of numbers")
    table = np.loadtxt(text, delimiter=",", ndmin=2, max_rows=SAMPLES + 1, encoding="utf-8")
    if table.shape[-1] != len(names):
        raise ValueError(f"lines must have {len(names)} numbers, got {table.shape[-1]}")
    return dict(zip(names, table.T))


def stacked(columns: dict[str, np.ndarray], names: Iterable[str]) -> np.ndarray:
    """Return columns side by side, (n, k)."""
    return np.stack([columns[name] for name in names], axis=-1)
