"""Our tables of parameters and log variables beside those in the sources of the firmware."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from firmware_source import sources

from crazyflow_ros.crazyflie.parameters import table
from crazyflow_ros.crazyflie.variables import VARIABLES

OF_THE_BUILD = {"firmware.modified", "firmware.revision0", "firmware.revision1"}
"""Parameters in a file that the firmware's build writes."""
_MACRO = re.compile(r"\b(LOG|PARAM|STATS_CNT_RATE_LOG)_(\w*(?:START|STOP|ADD)\w*)\s*\(([^()]*)\)")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@pytest.fixture(scope="module")
def entries() -> dict[tuple[str, str], set[str]]:
    """Types of the firmware, by kind and full name; several where platforms have their own."""
    found: dict[tuple[str, str], set[str]] = {}
    for file in sorted(sources(compiled=False).rglob("*.c")):
        for kind, name, ctype in declared(_COMMENT.sub("", file.read_text(errors="replace"))):
            found.setdefault((kind, name), set()).add(ctype)
    assert len(found) > 900
    return found


def declared(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind (LOG or PARAM), full name, and type with flags, of what a file declares."""
    group = ""
    for kind, what, given in _MACRO.findall(text):
        arguments = [argument.strip() for argument in given.split(",")]
        if "GROUP" in what:
            group = arguments[0] if "START" in what else ""
        elif group and kind.startswith("STATS"):
            yield "LOG", f"{group}.{arguments[0]}", "float"
        elif group:
            words = set(arguments[0].replace(" ", "").split("|"))
            prefix = f"{kind}_"
            flags = {word.removeprefix(prefix) for word in words} - {"CORE"}
            yield kind, f"{group}.{arguments[1]}", " ".join(sorted(flags)).lower()


def test_parameters_have_names_types_and_flags_of_the_firmware(
    entries: dict[tuple[str, str], set[str]],
) -> None:
    for entry in table():
        flags = ["ronly"] * entry.read_only + ["persistent"] * entry.persistent
        ours = " ".join(sorted([entry.ctype, *flags]))
        if entry.full_name not in OF_THE_BUILD:
            theirs = entries.get(("PARAM", entry.full_name), set())
            assert ours in theirs, f"{entry.full_name}: {theirs}"


def test_log_variables_have_names_and_types_of_the_firmware(
    entries: dict[tuple[str, str], set[str]],
) -> None:
    for name, variable in VARIABLES.items():
        theirs = entries.get(("LOG", name), set())
        assert variable.ctype in theirs, f"{name}: {theirs}"
