"""Choices among the messages of a topic, of which a file of hours has millions."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.checks.mcap_file import Choice


def every(period_ns: int) -> Choice:
    """Return a choice of one message in each period [ns]."""
    latest = -1

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        periods = times // period_ns
        mask = np.diff(periods, prepend=latest) != 0
        latest = int(periods[-1])
        return mask

    return choose


def after_silence(silence_ns: int) -> Choice:
    """Return a choice of the messages before which there were none for a while [ns]."""
    latest = -silence_ns

    def choose(times: np.ndarray) -> np.ndarray:
        nonlocal latest
        mask = np.diff(times, prepend=latest) >= silence_ns
        latest = int(times[-1])
        return mask

    return choose
