"""Quaternions in 32 bits, as the Crazyflie sends and logs them (`quatcompress.h` of its firmware).

The index of the largest component takes the first two bits; the others follow in order, each with a
sign and nine bits of magnitude, in units of 1/sqrt(2)/511. The largest is positive.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

_BITS = 9
_STEPS = (1 << _BITS) - 1
_PLACES = np.array([(3, 0, 1, 2), (0, 3, 1, 2), (0, 1, 3, 2), (0, 1, 2, 3)])
"""Row: index of the largest component. Entries: rank of each component among the others, or 3."""


def compressed(quat: np.ndarray) -> int:
    """Return a unit quaternion xyzw (4,) in 32 bits."""
    largest = int(np.abs(quat).argmax())
    signed = quat if quat[largest] >= 0 else -quat
    number = largest
    for i, x in enumerate(signed.tolist()):
        if i != largest:
            magnitude = int(abs(x) * sqrt(2) * _STEPS + 0.5)
            number = number << 10 | (x < 0) << _BITS | min(magnitude, _STEPS)
    return number


def decompressed(numbers: ArrayLike) -> np.ndarray:
    """Return the unit quaternions xyzw (..., 4) of results of `compressed` (...)."""
    bits = np.asarray(numbers, np.int64)
    fields = bits[..., None] >> np.array((2, 1, 0)) * (_BITS + 1)
    signs = np.where(fields >> _BITS & 1, -1, 1)
    others = signs * (fields & _STEPS) / (_STEPS * sqrt(2))
    largest = np.sqrt(np.maximum(0, 1 - (others**2).sum(axis=-1, keepdims=True)))
    quats = np.concatenate((others, largest), axis=-1)
    quats /= np.linalg.norm(quats, axis=-1, keepdims=True)
    return np.take_along_axis(quats, _PLACES[bits >> 3 * (_BITS + 1) & 3], axis=-1)
