"""How many messages the limit of the servers for browsers lets pass."""

from __future__ import annotations

import asyncio

import pytest

from crazyflow_ros.view import access
from crazyflow_ros.view.access import TokenBucket


class WallTime:
    """A clock that only `sleep` moves."""

    def __init__(self) -> None:
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> WallTime:
    time = WallTime()
    monkeypatch.setattr(access.asyncio, "sleep", time.sleep)
    return time


def passed(bucket: TokenBucket, tried: int) -> int:
    return sum(bucket.take() for _ in range(tried))


def test_a_burst_passes_and_then_the_rate(time: WallTime) -> None:
    bucket = TokenBucket(8.0, 20.0, lambda: time.now)
    assert passed(bucket, 100) == 20
    time.now += 0.5
    assert passed(bucket, 100) == 4
    time.now += 0.0625
    assert passed(bucket, 100) == 0
    time.now += 0.0625
    assert passed(bucket, 100) == 1
    time.now += 3600.0  # a long silence saves up no more than a burst
    assert passed(bucket, 100) == 20


def test_what_waits_passes_at_the_rate(time: WallTime) -> None:
    bucket = TokenBucket(8.0, 4.0, lambda: time.now)

    async def send(n: int) -> list[float]:
        times = []
        for _ in range(n):
            await bucket.wait()
            times.append(time.now - 100.0)
        return times

    assert asyncio.run(send(7)) == [0.0] * 4 + [0.125, 0.25, 0.375]
