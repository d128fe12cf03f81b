"""A physics that is fed by hand, for what senses beside the physics thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from crazyflow_ros.runtime import DroneLives, ResetEvent, ResetScope, Snapshot
from crazyflow_ros.scene import build_spec

TIMEOUT = 120.0  # s
RATE = 500


class Handle(nullcontext[None]):
    """Of a publisher: sends, and is never destroyed."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        super().__init__()
        self.publish_raw = send


class Physics:
    """What the thread asks of the node and its physics, and the log."""

    freq, paused, stepping = RATE, False, False

    def __init__(self) -> None:
        self.physics = self.loop = self
        self.mirror, self.tick = SimpleNamespace(model=None, motions=list), 0
        self.use(["cf0"])
        self.lives = DroneLives(self.snapshot)
        self.take: dict[int, Callable[[Snapshot], None]] = {}
        self.warnings, self.infos = list[str](), list[str]()
        self.drones = ("cf0",)

    def use(self, names: list[str]) -> None:
        self.mirror.model, self.names = build_spec("cf2x_L250", names).compile(), tuple(names)

    def every(self, rate: int, callback: Callable[[Snapshot], None], *_: Any, **__: Any) -> None:
        self.take[rate] = callback

    @property
    def log(self) -> Any:
        warn = self.warnings.append
        return SimpleNamespace(info=self.infos.append, warning=warn, error=warn)

    @property
    def snapshot(self) -> Snapshot:
        """All drones are as far to the east as there were ticks."""
        n = len(self.names)
        threes, fours = np.zeros((n, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
        pos = threes + np.array([self.tick, 0.0, 0.0])
        return Snapshot(
            self.tick * 2_000_000, pos, fours, threes, threes, threes, threes, fours, fours,
            self.names, threes, threes, np.zeros((n, 6)), np.zeros(n), self.tick, 0,
        )  # fmt: skip

    def feed(self, ticks: Sequence[int]) -> None:
        for self.tick in ticks:
            for rate, take in self.take.items():
                if self.tick % (RATE // rate) == 0:
                    take(self.snapshot)

    def show_to(self, callback: Callable[[Snapshot], None]) -> None:
        callback(self.snapshot)

    def put_back(self, drones: Sequence[str], scope: ResetScope = ResetScope.state) -> None:
        self.lives.note_reset(ResetEvent(self.snapshot, scope, tuple(drones)))
