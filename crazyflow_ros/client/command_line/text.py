"""How the command line writes numbers, places and tables."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WINDS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
_NARROW = 16  # columns in which a text can still be read
_ENDLESS = 1_000_000  # columns of what is no terminal


def place(position: Iterable[float]) -> str:
    """Return a position [m]."""
    return f"({', '.join(f'{x:z.2f}' for x in position)}) m"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(table_row(row, widths) for row in rows)


def table_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row of a table, which a terminal that is too narrow gets in several lines.

    Its last cell is continued below itself, or, where little room is left, all of them on the left.
    """
    room = shutil.get_terminal_size((_ENDLESS, 0)).columns  # COLUMNS, or else the terminal's
    line = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths)).rstrip()
    before = sum(widths[:-1]) + 2 * len(widths[:-1])
    if len(line) <= room:
        return line
    indent = before if room - before >= _NARROW else 4
    text = line if indent == before else "  ".join(filter(None, map(str.strip, cells)))
    wrapper = textwrap.TextWrapper(
        max(room, 2 * _NARROW), subsequent_indent=" " * indent, break_on_hyphens=False
    )
    return wrapper.fill(text)


def value(given: Any) -> str:
    """Return a value of a parameter in one line of YAML, as `param set` takes it."""
    if isinstance(given, str) and given:
        return given
    import yaml

    text: str = yaml.safe_dump(given, default_flow_style=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("...").strip()


def wind(mean: Sequence[float], gusts: float) -> str:
    """Return a wind in words.

    Args:
        mean: Mean velocity of the air in the map [m/s], shape (3,).
        gusts: Standard deviation of the vertical gusts [m/s].
    """
    x, y, z = mean
    across = math.hypot(x, y)
    parts = []
    if across:
        # Named by where it comes from, in degrees clockwise from the north.
        course = math.degrees(math.atan2(-x, -y))
        parts.append(f"{across:.1f} m/s from the {_WINDS[round(course / 45) % 8]}")
    if z:
        parts.append(f"{abs(z):.1f} m/s {'upwards' if z > 0 else 'downwards'}")
    if not (parts or gusts):
        return "there is no wind"
    text = f"wind is {' and '.join(parts)}" if parts else "there is no mean wind"
    return f"{text}, with gusts of {gusts:g} m/s" if gusts else f"{text}, without gusts"


def matching(lines: Mapping[str, str], pattern: str | None) -> dict[str, str]:
    """Return the entries whose name or text contains a pattern, in which * is any text."""
    if not pattern:
        return dict(lines)
    parts = map(re.escape, pattern.split("*"))
    wanted = re.compile(".*".join(parts))
    return {name: text for name, text in lines.items() if wanted.search(f"{name} {text}")}
