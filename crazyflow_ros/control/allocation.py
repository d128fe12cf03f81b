"""Thrust and torque shared out among rotors, within their limits."""

from __future__ import annotations

from functools import reduce
from operator import add

from jax import Array

from crazyflow_ros.control.power_distribution import PowerDistribution
from crazyflow_ros.dynamics.components import PerRotor, Vec3, split
from crazyflow_ros.elementwise import clip, maximum, sqrt, where, zeros_like

_LEAST_SHARE = 1e-3  # of the thrust; rotors with less are not relieved by less thrust


def allocated(
    force: Array,
    torque: Vec3,
    params: dict[str, Array],
    distribution: PowerDistribution,
    thrust_max: Array | None,
) -> PerRotor:
    """Return the speeds of rotors with tables, see `force_torque2rotor_vel`.

    Thrust and torque are shared out by `Rotors.allocation`. With `capped`, the thrust is reduced
    until the strongest rotor is within its limit; the torque stays.
    """
    wanted, allocation = (force, *torque), params["allocation"]
    least, most, idle = (split(params[k]) for k in ("thrust_min", "thrust_max", "idle_thrust"))
    rows = [split(allocation[..., i, :]) for i in range(allocation.shape[-2])]
    forces = [reduce(add, (a * w for a, w in zip(row, wanted))) for row in rows]
    stops = [force == 0] * len(rows)
    if distribution is PowerDistribution.clipped:
        forces = [clip(f, *limits) for f, *limits in zip(forces, least, most)]
    else:
        if thrust_max is not None:
            low = thrust_max / -reduce(maximum, (-m for m in most))
            most = tuple(m * low for m in most)
        forces = [where(f < m, 0.0, f) for f, m in zip(forces, least)]
        excess = zeros_like(force)
        for (share, *_), f, m in zip(rows, forces, most):
            bears = share > _LEAST_SHARE
            excess = maximum(excess, where(bears, (f - m) / where(bears, share, 1.0), 0.0))
        reduced = [f - excess * share for f, (share, *_) in zip(forces, rows)]
        forces = [clip(f, *limits) for f, *limits in zip(reduced, idle, most)]
        stops = [stop | (f == 0) for stop, f in zip(stops, forces)]
    speeds = []
    for i, (f, stop) in enumerate(zip(forces, stops)):
        k0, k1, k2 = split(params["rpm2thrust"][..., i, :])
        speed = (-k1 + sqrt(k1 * k1 - 4 * k2 * (k0 - f))) / (2 * k2)
        speeds.append(where(stop, 0.0, speed))
    return tuple(speeds)


def capped(forces: list[Array], least: Array, most: Array, idle: Array) -> list[Array]:
    """Return the thrust of each rotor of a quadrotor as the firmware limits it.

    Args:
        forces: Thrust that each rotor would have to give, N.
        least: Thrust below which a rotor stops, N.
        most: Maximum thrust of each rotor, N.
        idle: Thrust of a rotor that turns as slowly as it can, N.
    """
    turning = [where(f < least, 0.0, f) for f in forces]
    a, b, c, d = turning
    excess = maximum(maximum(maximum(a, b), maximum(c, d)) - most, 0.0)
    return [maximum(f - excess, idle) for f in turning]
