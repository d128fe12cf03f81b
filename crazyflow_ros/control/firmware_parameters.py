"""Parameters of the Crazyflie firmware that are gains of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class FirmwareParameter(NamedTuple):
    """What a parameter of the firmware sets."""

    stage: str
    """`state` or `attitude`."""
    gain: str
    """Name in the stage's `load_params`."""
    axes: tuple[int, ...] = ()
    """Axes that it sets; empty for a number without axes."""
    factor: float = 1.0
    """Factor by which it is multiplied before its units are converted, see
    `Cascade.firmware_units`."""


FirmwareParameters = Mapping[str, FirmwareParameter]
"""By full name, such as `pid_rate.roll_kp`."""


def by_axis(
    stage: str,
    group: str,
    names: str,
    gains: Mapping[str, str],
    factors: Sequence[float] = (1.0, 1.0, 1.0),
) -> FirmwareParameters:
    """Return the parameters of axes that have separate ones.

    Args:
        stage: Stage of the gains.
        group: Group of the parameters.
        names: Beginnings of the parameters' names, one of each axis, separated by spaces.
        gains: Gains by the end of the parameters' names.
        factors: Factor of each axis.
    """
    return {
        f"{group}.{axis}{suffix}": FirmwareParameter(stage, gain, (i,), factors[i])
        for i, axis in enumerate(names.split())
        for suffix, gain in gains.items()
    }


def shared(
    stage: str, group: str, gains: Mapping[str, tuple[str, tuple[int, ...]]]
) -> FirmwareParameters:
    """Return parameters that axes share: gains and axes by the parameters' names."""
    return {
        f"{group}.{name}": FirmwareParameter(stage, gain, axes)
        for name, (gain, axes) in gains.items()
    }


def by_plane(gains: Mapping[str, str]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return gains with one parameter of both horizontal axes and one of the vertical axis.

    Args:
        gains: Gains by the beginning of the parameters' names.
    """
    planes = {"xy": (0, 1), "z": (2,)}
    return {
        f"{name}_{p}": (gain, axes) for p, axes in planes.items() for name, gain in gains.items()
    }
