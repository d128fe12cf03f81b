"""How far a drone is tilted, and when it lies."""

from __future__ import annotations

import numpy as np

TUMBLED = 0.5
"""Cosine of the tilt [-] below which a drone lies on its side or upside down: 60 degrees, as for
the firmware, which compares the vertical reading of a resting accelerometer with half of g."""
TOUCHES = 0.05
"""Least force of a contact along an axis, as a share of the weight."""
SLOW = 0.05
"""Speed along an axis [m/s] below which a drone rests."""


def uprightness(quat: np.ndarray) -> np.ndarray:
    """Return the cosine of the tilt, 1 for a level drone.

    Args:
        quat: (..., 4) attitude xyzw.
    """
    cosine: np.ndarray = 1 - 2 * (quat[..., 0] ** 2 + quat[..., 1] ** 2)
    return cosine


def leaning_height(points: np.ndarray) -> float:
    """Return how much higher the centre of mass of a drone is that lies tilted by 60 degrees [m].

    Args:
        points: See `contact_points`.
    """
    sine = np.sqrt(1 - TUMBLED**2)
    below = np.hypot(points[:, 0], points[:, 1]) * sine - points[:, 2] * TUMBLED
    return float(below.max() + points[:, 2].min())
