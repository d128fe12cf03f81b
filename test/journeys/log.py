"""The log of a simulator: which of its lines have no place in a flight."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ros_client import READY_TIMEOUT, SimulatorProcess

_LINE = re.compile(r"\[(?P<level>[A-Z]+)\] \[[\d.]+\] \[(?P<node>[\w.]+)\]: (?P<text>.*)")
_REPEATED = re.compile(r" \(\d+ more in the last \d+ s\)$")
_USUAL = re.compile(
    r"(compiling .*|no room for \d+ drones: compiling .*), time goes on$"
    # These tell of a machine that is slow or busy.
    r"|sensors: (pictures|readings) were left out|\S+ was answered again"
)
"""Warnings that may come whatever is done."""


def unexpected(line: str, expects: Callable[[str], bool] = lambda _: False) -> bool:
    """Whether a line of the log is above INFO, or none of the log, without a reason.

    Args:
        line: The line.
        expects: Whether a warning has a reason.
    """
    found = _LINE.match(line)
    if found is None:
        return True
    if found["level"] == "WARN":
        return not (is_usual(found["text"]) or expects(_REPEATED.sub("", found["text"])))
    return found["level"] not in ("INFO", "DEBUG")


def is_repeated(line: str) -> bool:
    """Whether a line counts what was said again in the seconds before."""
    return bool(_REPEATED.search(line))


def is_usual(text: str) -> bool:
    """Whether a warning may come whatever is done."""
    return bool(_USUAL.match(_REPEATED.sub("", text)))


@contextmanager
def simulator(
    domain: int, *parameters: str, warns: Sequence[str] = (), more: Sequence[str] = ()
) -> Iterator[SimulatorProcess]:
    """A simulator as users start it, whose whole log is read at its end.

    Args:
        domain: ROS domain.
        parameters: As `drones:=[cf0]`.
        warns: Patterns of the warnings that it has to log, and of no others.
        more: Other arguments.
    """
    arguments = [word for one in parameters for word in ("-p", one)]
    starts = SimulatorProcess(domain, [*more, *arguments], ready_timeout=3 * READY_TIMEOUT)
    with starts as process:
        yield process
        if process.process.poll() is None:
            assert process.end()[0] == 0
        log = process.log

    told = set[str]()

    def expects(text: str) -> bool:
        found = {pattern for pattern in warns if re.search(pattern, text)}
        told.update(found)
        return bool(found)

    bad = [line for line in log.splitlines() if unexpected(line, expects)]
    assert not bad, "\n".join(bad)
    assert not (missing := set(warns) - told), f"no warnings {missing}:\n{log}"
