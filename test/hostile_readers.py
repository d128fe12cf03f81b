"""Files that are read in this process, one after the other: part of `make hostile`."""

from __future__ import annotations

import copy
import random
import string
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
import yaml
from crazyswarm import configuration
from rclpy.context import Context
from rclpy.logging import LoggingSeverity
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.crazyswarm.crazyflie_server import NODE, read
from crazyflow_ros.ros.parameters.declaration import ParameterNode

SLOWEST = 20.0  # s that a file may take on a busy machine


class Reader(ABC):
    """A kind of files, and what reads them.

    Args:
        folder: For the files.
        rng: Random numbers.
    """

    name: str
    """In the table."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self.slowest = 0.0
        """The longest time that one has taken [s]."""
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def another(self) -> Path:
        """Write another file."""

    @abstractmethod
    def read(self, path: Path) -> None:
        """Read a file as the product does.

        Raises:
            ValueError: It is refused; any other error is a fault.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what it needs for reading."""

    def run(self, n: int) -> None:
        """Write and read files; each is read or refused in bounded time."""
        for _ in range(n):
            path = self.another()
            self.counts["tried"] += 1
            began = time.monotonic()
            try:
                self.read(path)
            except ValueError:
                self.counts["refused"] += 1
            else:
                self.counts["accepted"] += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            assert self.slowest < SLOWEST, f"{path} took {self.slowest:.1f} s"


_ODD = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1e400,
        -1e300,
        2**63,
        2**70,
        -(2**64),
        float("nan"),
        "",
        " ",
        "1e5",
    ),
    *(
        "\0",
        "é😀",
        "../x",
        "a" * 5000,
        "1.2.3",
        ".",
        "none",
        [],
        {},
        [[]],
        [1, 2.0],
        [1, "a"],
        [None],
    ),
    *(
        [1e400] * 3,
        [0.0] * 4,
        list(range(2000)),
        {"": {"": 1}},
        {1: 2},
        {None: {}},
        {"a.b": {"c": 1}},
    ),
)
_LINES = (
    *(
        "a: &a [*a]",
        "b: &b {c: *b}",
        "<<: {robots: 1}",
        "? [1, 2]\n: 3",
        "robots: {}",
        "- 1",
        "\t- x",
    ),
    *("x: !!python/object/apply:os.system [ls]", "x: !!binary '//'", "x: !!timestamp 2026-99-99"),
    *("%YAML 9.9", "---\n...\n---", "x: 0o9_9", "x: 1__2", "x: 190:20:30", "x: !!set {a, b}", "'"),
    *("a: " + "[" * 40 + "]" * 40, "x: " + "9" * 5000, "\x85\u2028: 1", "x: !!float abc", "@"),
    "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]" for i in range(9)),
)


class CrazyswarmFiles(Reader):
    """crazyflies.yaml, server.yaml and motion_capture.yaml, as crazyswarm2's server reads them."""

    name = "files of crazyswarm2"

    def __init__(self, folder: Path, rng: random.Random, domain: int) -> None:
        super().__init__(folder, rng)
        self._context = Context()
        rclpy.init(
            context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO
        )

    def close(self) -> None:
        """Leave ROS."""
        rclpy.shutdown(context=self._context)

    def another(self) -> Path:
        """Write a crazyflies.yaml, and sometimes the other two beside it."""
        rng = self._rng
        robots = rng.choice((("cf1",), ("cf1", "cf2"), ("a", "B_2", "c3"), ("all",), ("1",), ()))
        swarm = configuration(*robots, **rng.choice(({}, {"sim": {}, "warnings": {}})))
        server = {"/crazyflie_server": {"ros__parameters": {"warnings": {"frequency": 1.0}}}}
        topics = {"topics": {"poses": {"qos": {"deadline": 100.0}}, "frame_id": "world"}}
        tracking = {"/motion_capture_tracking": {"ros__parameters": topics}}
        changed = rng.choice("cccsm")
        for name, content in (("c", swarm), ("s", server), ("m", tracking)):
            data = yaml.safe_dump(self._changed(content) if name == changed else content)
            if name == changed and rng.random() < 0.25:
                data = self._damaged(data)
            (self._folder / f"{name}.yaml").write_bytes(data.encode("utf-8", "surrogateescape"))
        return self._folder / "c.yaml"

    def read(self, path: Path) -> None:
        """Read the parameters of a server."""
        files = {"crazyflies": "c", "server": "s", "motion_capture": "m"}
        given = [
            Parameter(f"{name}_yaml_file", value=str(path.with_name(f"{letter}.yaml")))
            for name, letter in files.items()
        ]
        with _Parameters.open(self._context, given) as server:
            server.read_all()

    def _changed(self, content: dict[str, Any]) -> dict[str, Any]:
        """The content with random changes."""
        rng, content = self._rng, copy.deepcopy(content)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            tables = list(_tables(content))
            table, other = rng.choice(tables), rng.choice(tables)
            key = rng.choice(list(table)) if table else "robots"
            match rng.randrange(6):
                case 0 | 1:
                    table[key] = copy.deepcopy(rng.choice(_ODD))
                case 2:
                    table.pop(key, None)
                case 3:
                    name = rng.choice((*map(str, other), "x", "firmware_params", "motion_capture"))
                    table[name] = copy.deepcopy(rng.choice((table.get(key), rng.choice(_ODD))))
                case 4:
                    table[rng.choice((1, None, 2.5, "", ".", "a b", "é", "x" * 300))] = 1
                case 5:
                    table[key] = {key: table.get(key)}
        return content

    def _damaged(self, text: str) -> str:
        """A text with lines or bytes that do not belong there."""
        rng, lines = self._rng, text.split("\n")
        for _ in range(rng.choice((0, 1, 1, 3))):
            place = rng.randrange(len(lines))
            line = rng.choice((rng.choice(_LINES), rng.choice(lines)))
            lines[place : place + rng.randrange(2)] = [rng.choice(("", "  ")) + line]
        characters = list("\n".join(lines))
        for _ in range(rng.choice((0, 1, 5))):
            odd = rng.choice((*string.printable, "\0", "\udcff"))  # the last one is no UTF-8
            characters[rng.randrange(len(characters))] = odd
        return "".join(characters)


def _tables(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield content
    for value in content.values():
        if isinstance(value, dict):
            yield from _tables(value)


class _Parameters(ParameterNode):
    """The parameters of the node, without all else."""

    def __init__(self, context: Context, given: list[Parameter[Any]]) -> None:
        super().__init__(
            NODE,
            context=context,
            parameter_overrides=given,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self.log = ThrottledLogger(self.get_logger())
        self.get_logger().set_level(LoggingSeverity.FATAL)

    @classmethod
    @contextmanager
    def open(cls, context: Context, given: list[Parameter[Any]]) -> Iterator[_Parameters]:
        """Build a node, and destroy it."""
        node = cls(context, given)
        try:
            yield node
        finally:
            node.destroy_node()

    def read_all(self) -> None:
        """Read the parameters, and what the features of the node take from them later."""
        swarm, _ = read(self).features.args
        for name in (*(robot.name for robot in swarm.robots), "spawned_later"):
            swarm.settings(name)
        assert swarm.statistics_period >= 0.0
