"""Linear equations between smoothed signals of flights, by least squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.signal import butter, sosfiltfilt

from crazyflow_ros.identification.fit import deviations

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
    smooth: np.ndarray = sosfiltfilt(_FILTER, signals, axis=0)
    return smooth


def chosen(signals: np.ndarray) -> np.ndarray:
    """Return the samples (segments, m, ...) of signals (n, ...) that count."""
    n = segments(len(signals))
    rows = signals[_EDGE::_EVERY][: n * _SEGMENT]
    return rows.reshape(n, _SEGMENT, *signals.shape[1:])


class Equations:
    """Equations of several axes and flights: response = sum of unknowns times columns.

    The axes weigh by how well their equations hold. Unknowns are common to all flights, or a
    flight's own.
    """

    def __init__(
        self,
        flights: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
        common: Sequence[str],
        own: Sequence[str],
    ) -> None:
        """Solve the equations.

        Args:
            flights: Of each flight the response (segments, m, axes), and the columns
                (segments, m, axes, k) of common unknowns and of own ones.
            common: Names of the common unknowns.
            own: Names of each flight's own ones.
        """
        self._common, self._own = list(common), list(own)
        n, k = len(flights), len(own)
        tables, axes = [], flights[0][0].shape[-1]
        for i, (response, shared, private) in enumerate(flights):
            padded = np.zeros((*private.shape[:-1], n * k))
            padded[..., i * k : (i + 1) * k] = private
            tables.append(np.concatenate([response[..., None], shared, padded], axis=-1))
        table, self._flights = np.concatenate(tables), [len(each) for each in tables]
        weight = np.ones(axes)
        for _ in range(2):  # the errors of the first solution are the weights of the second
            scaled = table * weight[:, None]
            rows = scaled.reshape(-1, scaled.shape[-1])
            self._all = _least_squares(rows[:, 1:], rows[:, 0])
            self.errors = table[..., 0] - table[..., 1:] @ self._all
            weight = 1 / np.maximum(np.sqrt(np.mean(np.square(self.errors), axis=(0, 1))), 1e-15)
        self._rows = scaled.reshape(len(table), -1, scaled.shape[-1])

    @property
    def values(self) -> dict[str, float]:
        """The common unknowns."""
        return dict(zip(self._common, self._all.tolist()))

    @property
    def own(self) -> dict[str, np.ndarray]:
        """(flights,) each of the other unknowns."""
        own = self._all[len(self._common) :].reshape(len(self._flights), len(self._own))
        return dict(zip(self._own, own.T))

    def spread(self) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        """Return the standard deviations of the common unknowns, and of each flight's own.

        They are those of the jackknife by seconds, or by flights where these are larger: what is
        different in each flight does not become less with its seconds.
        """
        errors = [rows[:, 0] - rows[:, 1:] @ self._all for rows in self._rows]
        slopes = [rows[:, 1:] for rows in self._rows]
        found, common = deviations(errors, slopes), len(self._common)
        if len(self._flights) >= _LEAST_FLIGHTS:
            ends = np.cumsum(self._flights)[:-1].tolist()
            of_flights = [
                [np.concatenate(group) for group in _grouped(parts, ends)]
                for parts in (errors, slopes)
            ]
            own = found[common:]
            found = np.maximum(found, deviations(*of_flights))
            found[common:] = own
        own = found[common:].reshape(len(self._flights), len(self._own))
        return dict(zip(self._common, found.tolist())), dict(zip(self._own, own.T))

    def explained(self) -> Mapping[str, float]:
        """Return what share of the errors without a common unknown it removes (partial R^2)."""
        rows = np.concatenate(self._rows)
        columns, errors = rows[:, 1:], rows[:, 0] - rows[:, 1:] @ self._all
        inverse = np.diag(np.linalg.pinv(columns.T @ columns, hermitian=True))
        more = np.divide(self._all**2, inverse, out=np.zeros_like(inverse), where=inverse > 0)
        total = more + errors @ errors
        shares = np.divide(more, total, out=np.zeros_like(total), where=total > 0)
        return dict(zip(self._common, shares.tolist()))


def _grouped(parts: list[np.ndarray], ends: list[int]) -> list[list[np.ndarray]]:
    return [parts[start:end] for start, end in zip([0, *ends], [*ends, len(parts)])]


def _least_squares(columns: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Return the solution of least length; columns of zero get 0."""
    size = np.sqrt(np.mean(np.square(columns), axis=0))
    size[size == 0] = 1.0
    found, *_ = np.linalg.lstsq(columns / size, response, rcond=1e-10)
    solution: np.ndarray = found / size
    return solution
