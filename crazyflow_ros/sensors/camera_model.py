"""Properties of a camera besides its intrinsics: lens, shutter and chip."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

DistortionModel: TypeAlias = Literal["plumb_bob", "rational_polynomial", "equidistant"]

_COUNTS: dict[DistortionModel, tuple[int, ...]] = {
    "plumb_bob": (4, 5),
    "rational_polynomial": (8,),
    "equidistant": (4,),
}
"""Allowed numbers of coefficients; without any, a lens has no distortion."""
_MOST = 256  # instants


class Distortion(NamedTuple):
    """How a lens displaces the points of a picture."""

    model: DistortionModel = "plumb_bob"
    """Brown and Conrady's "plumb_bob" or "rational_polynomial", or the fisheye "equidistant"."""
    coefficients: tuple[float, ...] = ()
    """k1, k2, p1, p2, then k3, then k4, k5, k6; of "equidistant" k1 to k4. None: no distortion."""

    @property
    def padded(self) -> tuple[float, ...]:
        """All coefficients of the model; those that are not given are zero."""
        missing = max(_COUNTS[self.model]) - len(self.coefficients)
        return (*self.coefficients, *[0.0] * missing)

    def check(self) -> None:
        """Check the number of coefficients.

        Raises:
            ValueError: The number is wrong, or a coefficient is not finite.
        """
        counts, given = _COUNTS[self.model], self.coefficients
        if given and len(given) not in counts:
            rule = " or ".join(map(str, (0, *counts)))
            raise ValueError(
                f"the distortion {self.model} has {rule} coefficients, got {len(given)}"
            )
        if not all(map(math.isfinite, given)):
            raise ValueError(f"the coefficients of a distortion must be finite, got {given}")

    @property
    def is_fisheye(self) -> bool:
        """Whether distortion acts on rays' angles from the axis, not on points of a plane."""
        return self.model == "equidistant" and bool(self.coefficients)


class Shutter(NamedTuple):
    """A global shutter, or one that exposes the rows one after another.

    The moment of a picture is the middle of the exposure of its middle row.
    """

    exposure: float = 0.0
    """Time for which each row is exposed [s]."""
    readout: float = 0.0
    """Time from the first to the last row [s]."""
    instants: int = 8
    """Number of moments at which the picture is computed."""

    @property
    def is_instant(self) -> bool:
        """Whether the whole picture shows one moment."""
        return self.exposure == 0.0 and self.readout == 0.0

    def check(self) -> None:
        """Check the figures.

        Raises:
            ValueError: A time is negative or infinite, or there are too many instants.
        """
        for name, time in (("exposure", self.exposure), ("readout", self.readout)):
            if not 0.0 <= time < math.inf:
                raise ValueError(f"{name} must be a time in s, not negative, got {time}")
        if not 1 <= self.instants <= _MOST:
            raise ValueError(f"instants must be from 1 to {_MOST}, got {self.instants}")


class Chip(NamedTuple):
    """Noise, gain and gamma, in the model of EMVA 1288 without dark current.

    The brightest possible pixel without gain collects `full_well` electrons. Their number follows a
    normal distribution with the variance of a Poisson distribution, which is almost normal from 20
    electrons on. Reading adds normal noise. Black has no offset: negative values become black.
    """

    gain: float = 1.0
    """Factor of all brightness, noise included."""
    gamma: float = 1.0
    """Brightness is raised to the power 1 / gamma."""
    full_well: float = 0.0
    """Electrons of a brightness of 1; 0: no noise."""
    read_noise: float = 0.0
    """Standard deviation of reading [electrons]."""

    @property
    def is_noisy(self) -> bool:
        """Whether pictures need random numbers."""
        return self.full_well > 0.0

    def check(self) -> None:
        """Check the figures.

        Raises:
            ValueError: A figure is out of range.
        """
        for name in ("gain", "gamma"):
            if not 0.0 < (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("full_well", "read_noise"):
            if not 0.0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be electrons, not negative, got {value}")
        if self.read_noise and not self.full_well:
            raise ValueError(f"read_noise {self.read_noise:g} needs a full_well, got 0")
