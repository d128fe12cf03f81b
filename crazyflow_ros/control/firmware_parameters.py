"""Parameters of the Crazyflie firmware that are gains of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class FirmwareParameter(NamedTuple):
    """The gain that a parameter of the firmware sets."""

    stage: str
    """`state` or `attitude`."""
    gain: str
    """Name in the stage's `load_params`."""
    axes: tuple[int, ...] = ()
    """Axes of the gain that the parameter sets; empty for a gain without axes."""
    factor: float = 1.0
    """Factor on the value before its units are converted, see `Cascade.firmware_units`."""


FirmwareParameters = Mapping[str, FirmwareParameter]
"""Parameters by full name, such as `pid_rate.roll_kp`."""


def by_axis(
    stage: str,
    group: str,
    names: str,
    gains: Mapping[str, str],
    factors: Sequence[float] = (1.0, 1.0, 1.0),
) -> FirmwareParameters:
    """Return parameters that each axis has separately.

    Args:
        stage: Stage of the gains.
        group: Group of the parameters.
        names: Beginnings of the parameters' names, one for each axis, separated by spaces.
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
    """Return parameters that axes share, given their gains and axes by name."""
    return {
        f"{group}.{name}": FirmwareParameter(stage, gain, axes)
        for name, (gain, axes) in gains.items()
    }


def by_plane(gains: Mapping[str, str]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return gains with one parameter for both horizontal axes and one for the vertical axis.

    Args:
        gains: Gains by the beginning of the parameters' names.
    """
    planes = {"xy": (0, 1), "z": (2,)}
    return {
        f"{name}_{p}": (gain, axes) for p, axes in planes.items() for name, gain in gains.items()
    }
