"""Commands of state controllers from references, with feed-forward."""

from __future__ import annotations

import numpy as np

_UP = np.array([[0.0], [0.0], [9.81]])  # m/s^2, balances gravity
_MIN_THRUST = 1.0  # m/s^2, below which the attitude is undefined


def state_commands(references: np.ndarray, drag: np.ndarray) -> np.ndarray:
    """Compute the commands of state controllers, including the acceleration that balances drag.

    The body rates are those of a flat system (D. Mellinger, V. Kumar, ICRA 2011): without them the
    attitude lags by a quarter of a second.

    Args:
        references: (4, m, 4) position, velocity, acceleration, jerk.
        drag: (3,) see `Rules`.

    Returns:
        (m, 16), see `Control.state`.
    """
    rows = np.ascontiguousarray(np.moveaxis(references, 2, 1))  # (4, 4, m): long rows are faster
    pos, vel, acc, jerk = rows[:, :3]
    yaw, rate = rows[0, 3], rows[1, 3]
    taken = drag[:, None] * rows[1:3, :3]
    commands = np.zeros((16, rows.shape[2]))
    commands[:3], commands[3:6], commands[6:9] = pos, vel, acc + taken[0]
    commands[11], commands[12] = np.sin(yaw / 2), np.cos(yaw / 2)
    commands[13:] = _body_rates(commands[6:9], jerk + taken[1], yaw, rate)
    return commands.T


def _body_rates(acc: np.ndarray, jerk: np.ndarray, yaw: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return (3, m) body rates [rad/s] that turn the thrust with accelerations (3, m) and jerks."""
    up = acc + _UP
    thrust = np.maximum(np.sqrt((up * up).sum(axis=0)), _MIN_THRUST)
    up = up / thrust
    c, s = np.cos(yaw), np.sin(yaw)
    left = np.array((-s * up[2], c * up[2], s * up[0] - c * up[1]))  # z x x_c
    left /= np.sqrt((left * left).sum(axis=0)) + 1e-9
    (x, y, z), (u, v, w) = left, up
    ahead = np.array((y * w - z * v, z * u - x * w, x * v - y * u))
    turn = jerk / thrust  # the component along z changes the thrust only
    return np.array((-(turn * left).sum(axis=0), (turn * ahead).sum(axis=0), w * rate))
