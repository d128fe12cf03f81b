"""Linear equations between smoothed signals of flights, by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.signal import butter, sosfiltfilt
from scipy.stats import norm
from scipy.stats import t as student

from crazyflow_ros.drones.uncertainty import with_deviations
from crazyflow_ros.identification.fit import covariance

RATE = 200.0
"""Hz, of all signals."""
BAND = 4.0
"""Hz; faster motions are too small to be told from noise."""
_EVERY = 10  # samples between two that count
_SEGMENT = 20  # samples that count in a second, within which errors depend on each other
_EDGE = 100  # samples at both ends, on which the filter has less to go
_LEAST_FLIGHTS = 3  # from which on the differences between flights count

_FILTER = butter(4, BAND, fs=RATE, output="sos")


def segments(samples: int) -> int:
    """Return how many segments of one second a flight has."""
    return max(0, samples - 2 * _EDGE) // (_EVERY * _SEGMENT)


def smoothed(signals: np.ndarray) -> np.ndarray:
    """Return signals (n, ...) without what is faster than `BAND`, and without delay."""
    return sosfiltfilt(_FILTER, signals, axis=0)


def chosen(signals: np.ndarray) -> np.ndarray:
    """Return the samples (segments, m, ...) of signals (n, ...) that count."""
    n = segments(len(signals))
    rows = signals[_EDGE::_EVERY][: n * _SEGMENT]
    return rows.reshape(n, _SEGMENT, *signals.shape[1:])


class LinearTerms(NamedTuple):
    """The equations of a flight: response = common @ common unknowns + own @ its own unknowns."""

    response: np.ndarray
    """(segments, m, axes)."""
    common: np.ndarray
    """(segments, m, axes, k)."""
    own: np.ndarray
    """(segments, m, axes, l)."""


class Equations:
    """Equations of several axes and flights, of which those that hold better count more."""

    def __init__(
        self, flights: Sequence[LinearTerms], common: Sequence[str], own: Sequence[str]
    ) -> None:
        """Solve the equations.

        Args:
            flights: Terms of each flight.
            common: Names of the unknowns that all flights share.
            own: Names of each flight's own ones.
        """
        self._names, self._own_names = list(common), list(own)
        weight = np.ones(flights[0].response.shape[-1])
        for _ in range(2):  # the errors of the first solution are the weights of the second
            self._flights = [_Rows.of(flight, weight) for flight in flights]
            rows = np.concatenate([flight.reduced for flight in self._flights])
            self._common = _least_squares(rows[:, 1:], rows[:, 0])
            self._own = [flight.own_unknowns(self._common) for flight in self._flights]
            self.errors = np.concatenate(
                [
                    flight.response - flight.common @ self._common - flight.own @ own
                    for flight, own in zip(flights, self._own)
                ]
            )
            weight = 1 / np.maximum(np.sqrt(np.mean(np.square(self.errors), axis=(0, 1))), 1e-15)

    @property
    def values(self) -> dict[str, float]:
        """The common unknowns."""
        return dict(zip(self._names, self._common.tolist()))

    @property
    def own(self) -> dict[str, np.ndarray]:
        """(flights,) each of the other unknowns."""
        return dict(zip(self._own_names, np.reshape(self._own, (len(self._own), -1)).T))

    def spread(self) -> dict[str, float]:
        """Return the standard deviations of the common unknowns.

        They are the largest of those of the jackknife by seconds, by two seconds, because some
        errors last longer than one, and by flights: what is different in each flight does not
        become less with its seconds.
        """
        parts = [flight.segments(flight.reduced) for flight in self._flights]
        found = _by_seconds(parts, self._common)
        if len(self._flights) >= _LEAST_FLIGHTS:
            whole = [flight.reduced for flight in self._flights]
            found = np.maximum(found, _deviations(whole, self._common))
        return dict(zip(self._names, found.tolist()))

    def covariance(self) -> np.ndarray:
        """Return the covariance (k, k) of the common unknowns.

        Its deviations are those of `spread`, its correlations those of the jackknife by seconds.
        """
        seconds = [part for flight in self._flights for part in flight.segments(flight.reduced)]
        return with_deviations(_jackknife(seconds, self._common), [*self.spread().values()])

    def own_spread(self) -> dict[str, np.ndarray]:
        """Return the standard deviations (flights,) of each flight's own unknowns."""
        found = []
        for flight, own in zip(self._flights, self._own):
            errors = flight.rows[:, 0] - flight.rows[:, 1:] @ self._common
            rows = np.hstack([errors[:, None], flight.own])
            found.append(_by_seconds([flight.segments(rows)], own))
        return dict(zip(self._own_names, np.transpose(found)))

    def explained(self) -> dict[str, float]:
        """Return what share of the errors without a common unknown it removes (partial R^2)."""
        rows = np.concatenate([flight.reduced for flight in self._flights])
        columns, errors = rows[:, 1:], rows[:, 0] - rows[:, 1:] @ self._common
        size = np.sqrt(np.mean(np.square(columns), axis=0))
        scaled = columns / np.where(size > 0, size, 1.0)
        inverse = np.diag(np.linalg.pinv(scaled.T @ scaled, hermitian=True))
        unknowns = self._common * size
        more = np.divide(unknowns**2, inverse, out=np.zeros_like(inverse), where=inverse > 0)
        total = more + errors @ errors
        shares = np.divide(more, total, out=np.zeros_like(total), where=total > 0)
        return dict(zip(self._names, shares.tolist()))


@dataclass(frozen=True)
class _Rows:
    """The weighted equations of a flight."""

    count: int
    """Segments."""
    rows: np.ndarray
    """(n, 1 + k) responses and columns of common unknowns."""
    own: np.ndarray
    """(n, l) columns of the flight's own unknowns."""
    reduced: np.ndarray
    """The rows without what the own unknowns explain of them, which leaves the same solution
    (R. Frisch, F. Waugh, "Partial time regressions as compared with individual trends", 1933)."""

    @classmethod
    def of(cls, flight: LinearTerms, weight: np.ndarray) -> _Rows:
        table = np.concatenate([flight.response[..., None], flight.common], axis=-1)
        n = flight.response.size
        rows, own = (
            (part * weight[:, None]).reshape(n, part.shape[-1]) for part in (table, flight.own)
        )
        base, _ = np.linalg.qr(own)
        return cls(len(flight.response), rows, own, rows - base @ (base.T @ rows))

    def own_unknowns(self, common: np.ndarray) -> np.ndarray:
        return _least_squares(self.own, self.rows[:, 0] - self.rows[:, 1:] @ common)

    def segments(self, rows: np.ndarray) -> list[np.ndarray]:
        return np.split(rows, self.count) if self.count else []


def _by_seconds(flights: Sequence[list[np.ndarray]], unknowns: np.ndarray) -> np.ndarray:
    seconds = [part for parts in flights for part in parts]
    pairs = [np.concatenate(parts[i : i + 2]) for parts in flights for i in range(0, len(parts), 2)]
    return np.maximum(_deviations(seconds, unknowns), _deviations(pairs, unknowns))


def _deviations(parts: Sequence[np.ndarray], unknowns: np.ndarray) -> np.ndarray:
    """Return deviations of which two hold in 95 % of cases, also where there are few parts."""
    few = student.ppf(0.975, max(len(parts) - 1, 1)) / norm.ppf(0.975)
    return float(few) * np.sqrt(np.diag(_jackknife(parts, unknowns)))


def _jackknife(parts: Sequence[np.ndarray], unknowns: np.ndarray) -> np.ndarray:
    errors = [part[:, 0] - part[:, 1:] @ unknowns for part in parts]
    return covariance(errors, [part[:, 1:] for part in parts])


def _least_squares(columns: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Return the solution of least length; columns of zero get 0."""
    size = np.sqrt(np.mean(np.square(columns), axis=0))
    size[size == 0] = 1.0
    found, *_ = np.linalg.lstsq(columns / size, response, rcond=1e-10)
    return found / size
