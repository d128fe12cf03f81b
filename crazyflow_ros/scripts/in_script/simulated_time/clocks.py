"""Clocks, dates and sleep of a script in simulated time."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

from .kernel import Kernel
from .locks import nanoseconds, replace

wall_time, wall_sleep = time.monotonic, time.sleep
"""Python's own functions, for what lives in wall time."""

EPOCH_NS = 1_767_225_600_000_000_000
"""Date of simulated time 0: 2026-01-01, 00:00 UTC. Files of zip refuse dates before 1980."""


_UTC = datetime.timezone.utc  # noqa: UP017, Python 3.10 has no datetime.UTC


def install(kernel: Kernel) -> None:
    """Replace Python's clocks."""
    since_start = {"monotonic": 0, "perf_counter": 0, "time": EPOCH_NS}
    for name, epoch in since_start.items():
        replace(time, **_clock(kernel, name, epoch))
    epochs = {time.CLOCK_REALTIME: EPOCH_NS, time.CLOCK_MONOTONIC: 0}
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_TAI"):
        if hasattr(time, name):
            epochs[getattr(time, name)] = EPOCH_NS if name == "CLOCK_TAI" else 0
    get_ns = time.clock_gettime_ns

    def clock_gettime_ns(clock: int) -> int:
        if clock not in epochs or kernel.task() is None:
            return get_ns(clock)
        return epochs[clock] + kernel.read()

    replace(time, clock_gettime_ns=clock_gettime_ns)
    replace(time, clock_gettime=lambda clock: clock_gettime_ns(clock) * 1e-9)
    _install_sleep(kernel)
    _install_dates()


def _clock(kernel: Kernel, name: str, epoch: int) -> dict[str, Callable[[], float]]:
    """Return the two functions of a clock."""
    real, real_ns = getattr(time, name), getattr(time, f"{name}_ns")

    def seconds() -> float:
        return real() if kernel.task() is None else (epoch + kernel.read()) * 1e-9

    def integer() -> int:
        return real_ns() if kernel.task() is None else epoch + kernel.read()

    return {name: seconds, f"{name}_ns": integer}


def _install_sleep(kernel: Kernel) -> None:
    def sleep(seconds: float, /) -> None:
        task = kernel.task()
        if task is None or not seconds >= 0:
            wall_sleep(seconds)
        else:
            kernel.sleep(task, nanoseconds(seconds))

    replace(time, sleep=sleep)


def _install_dates() -> None:
    """Replace functions and classes that look at a clock by themselves."""
    localtime, gmtime, strftime = time.localtime, time.gmtime, time.strftime
    asctime, ctime = time.asctime, time.ctime

    def now(seconds: float | None) -> float:
        return time.time() if seconds is None else seconds

    replace(time, localtime=lambda seconds=None: localtime(now(seconds)))
    replace(time, gmtime=lambda seconds=None: gmtime(now(seconds)))
    replace(time, ctime=lambda seconds=None: ctime(now(seconds)))
    replace(time, strftime=lambda form, when=None: strftime(form, when or time.localtime()))
    replace(time, asctime=lambda when=None: asctime(when or time.localtime()))

    class _Instances(type):
        """A date that C code has made is one of the class, too."""

        def __instancecheck__(cls, instance: Any) -> bool:
            made_by_c = cls.__dict__.get("made_by_c")
            if made_by_c is None:
                return type.__instancecheck__(cls, instance)
            return isinstance(instance, made_by_c)

    class Date(datetime.date, metaclass=_Instances):
        made_by_c = datetime.date

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(time.time())

    class DateTime(datetime.datetime, metaclass=_Instances):
        made_by_c = datetime.datetime

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(time.time())

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(time.time(), _UTC).replace(tzinfo=None)

    for new, name in ((Date, "date"), (DateTime, "datetime")):
        new.__module__, new.__name__, new.__qualname__ = "datetime", name, name
        replace(datetime, **{name: new})
