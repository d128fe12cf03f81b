"""Ready-made stages for `Sim.reset_pipeline` that randomise each reset world.

Each function returns a stage. Random numbers come from `data.core.rng_key`; worlds that are not
reset remain unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.components import rotate_quat, split, stack
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.hanging import payload_of
from crazyflow_ros.sim.shapes import OF_ROTORS

_POSITIVE = ("mass", "J")
_MOST_DEVIATIONS = 5.5  # of a normal number in single precision
_MATRICES = {"J", "drag_matrix", "mixing_matrix", "rpm2thrust", "rpm2torque", "rotor_dyn_coef"}

ResetStage = Callable[[SimData, SimData, Array], SimData]
"""A stage after a reset: a function of data, default data and mask, (n_worlds,) bool, of the worlds
that are reset. It leaves other worlds as they are, and may give parameters axes of worlds, drones
and rotors; all other arrays keep shape and dtype."""


def randomize_pos(spread: ArrayLike) -> ResetStage:
    """Shift drones by up to `spread` [m], a number or one for each axis."""
    return _shift("pos", spread)


def randomize_vel(spread: ArrayLike) -> ResetStage:
    """Add up to `spread` [m/s] to velocities."""
    return _shift("vel", spread)


def randomize_ang_vel(spread: ArrayLike) -> ResetStage:
    """Add up to `spread` [rad/s, body frame] to angular velocities."""
    return _shift("ang_vel", spread)


def randomize_attitude(spread: ArrayLike) -> ResetStage:
    """Rotate drones by a rotation vector of up to `spread` [rad] in each component."""
    spread = _per_axis("attitude", spread)

    def attitude(data: SimData, _: SimData, mask: Array) -> SimData:
        data, noise = _uniform(data, data.states.pos.shape)
        rotvec = noise * jnp.asarray(spread, noise.dtype)
        turned = rotate_quat(split(data.states.quat), split(rotvec))  # type: ignore[arg-type]
        quat = in_worlds(mask, stack(turned), data.states.quat)
        return data.replace(states=data.states.replace(quat=quat))

    return attitude


class Operation(StrEnum):
    """What is done with a number that was drawn."""

    scale = "scale"
    """It multiplies the nominal value."""
    add = "add"
    """It is added to the nominal value."""
    set = "set"
    """It is the value."""


class Distribution(StrEnum):
    """How a number is drawn, from two numbers a and b."""

    uniform = "uniform"
    """Between a and b."""
    log_uniform = "log_uniform"
    """Between a and b, both above 0, with a uniform logarithm."""
    gaussian = "gaussian"
    """With the mean a and the standard deviation b."""


class Per(StrEnum):
    """What has a number of its own."""

    world = "world"
    drone = "drone"
    rotor = "rotor"
    element = "element"
    """Each number of a parameter, such as each axis of the wind; of `J`, each axis of the body."""


def randomize_mass(spread: float | tuple[float, float]) -> ResetStage:
    """Multiply each drone's mass by 1 ± `spread`, or a factor between two.

    Its controller uses the nominal mass.
    """
    return randomize_param("mass", spread)


def randomize_inertia(spread: float | tuple[float, float]) -> ResetStage:
    """Multiply each drone's inertia by 1 ± `spread`, or a factor between two."""
    return randomize_param("J", spread)


def randomize_param(
    name: str,
    spread: float | tuple[float, float],
    *,
    operation: str = Operation.scale,
    distribution: str = Distribution.uniform,
    per: str = Per.drone,
) -> ResetStage:
    """Draw any parameter of `data.params` anew in each reset world.

    Args:
        name: Name of the parameter.
        spread: Two numbers for the distribution. One number s, from 0 to less than 1, stands for
            factors of 1 ± s.
        operation: See `Operation`.
        distribution: See `Distribution`.
        per: See `Per`.

    Raises:
        ValueError: No dynamics have such a parameter, it is computed from another one, or the
            numbers do not suit the distribution. When it is assigned to a simulation: its dynamics
            have no such parameter, or it is 0 and to be multiplied.
    """
    known = {f.name for model in Dynamics for f in fields(model.params)} - {"J_inv", "obstacles"}
    if name not in known:
        raise ValueError(unknown("parameter to randomise", name, sorted(known)))
    kinds = member(Operation, operation), member(Distribution, distribution), member(Per, per)
    if np.ndim(spread) == 0:
        if kinds[:2] != (Operation.scale, Distribution.uniform):
            raise ValueError(f"{name}: {operation} and {distribution} need two numbers: {spread}")
        _check_spread(name, spread)  # type: ignore[arg-type]
        spread = (1 - spread, 1 + spread)  # type: ignore[operator]
    return RandomParameter(name, _two_numbers(name, spread, kinds[1]), *kinds)


@dataclass(frozen=True)
class RandomParameter:
    """A stage that draws a parameter, see `randomize_param`."""

    name: str
    numbers: tuple[float, float]
    operation: Operation
    distribution: Distribution
    per: Per

    def check(self, data: SimData) -> None:
        """Check that the stage changes the parameters of a simulation, to possible ones.

        Raises:
            ValueError: It does not.
        """
        name, params = self.name, data.params
        given = {f.name: getattr(params, f.name) for f in fields(params)}
        known = sorted(x for x, value in given.items() if isinstance(value, jax.Array))
        known.remove("J_inv")
        if name not in known:
            raise ValueError(f"the dynamics have no {name} to randomise, only {', '.join(known)}")
        if self.operation == Operation.scale and not np.any(np.asarray(given[name])):
            raise ValueError(f"{name} is 0, which a factor does not change: use operation='add'")
        if name == "J" and self.operation != Operation.scale:
            raise ValueError(f"J can only be scaled, got operation={str(self.operation)!r}")
        least, spread = self.numbers
        if self.distribution == Distribution.gaussian:
            least -= _MOST_DEVIATIONS * spread
        if self.operation == Operation.add:
            least += float(np.min(given[name]))
        if name in _POSITIVE and least <= 0:
            raise ValueError(f"{name} has to stay above 0, got {self.numbers}: down to {least:g}")
        if self.per == Per.rotor and name not in OF_ROTORS:
            rotors = ", ".join(sorted(OF_ROTORS))
            raise ValueError(f"per='rotor' is for {rotors}, got {name}")

    def __call__(self, data: SimData, default_data: SimData, mask: Array) -> SimData:
        """Draw the parameter in the worlds of the mask."""
        name, params = self.name, data.params
        now, nominal = getattr(params, name), getattr(default_data.params, name)
        data, drawn = self._draw(data, nominal)
        match self.operation:
            case Operation.scale:
                new = nominal * drawn
            case Operation.add:
                new = nominal + drawn
            case Operation.set:
                new = drawn + jnp.zeros_like(nominal)
        changes = {name: in_worlds(mask, new, now)}
        if name == "J":
            changes["J_inv"] = in_worlds(mask, default_data.params.J_inv / drawn, params.J_inv)
        return data.replace(params=data.params.replace(**changes))

    def _draw(self, data: SimData, nominal: Array) -> tuple[SimData, Array]:
        """Return numbers that broadcast to the parameter with axes of worlds and drones."""
        n, m = data.core.n_worlds, data.core.n_drones
        core = nominal.shape[-2:] if self.name in _MATRICES else nominal.shape[-1:]
        ones = (1,) * len(core)
        match self.per:
            case Per.world:
                shape: tuple[int, ...] = (n, 1, *ones)
            case Per.drone:
                shape = (n, m, *ones)
            case Per.rotor:
                shape = (n, m, data.states.rotor_vel.shape[-1], *ones[1:])
            case Per.element:
                shape = (n, m, *(core if self.name != "J" else core[:1]))
        key, subkey = jax.random.split(data.core.rng_key)
        data = data.replace(core=data.core.replace(rng_key=key))
        (a, b), dtype = self.numbers, data.states.pos.dtype
        match self.distribution:
            case Distribution.gaussian:
                drawn = a + b * jax.random.normal(subkey, shape, dtype)
            case Distribution.log_uniform:
                low, high = np.log(a), np.log(b)
                drawn = jnp.exp(jax.random.uniform(subkey, shape, dtype, low, high))
            case Distribution.uniform:
                middle, half = (a + b) / 2, (b - a) / 2
                drawn = middle + half * jax.random.uniform(subkey, shape, dtype, -1, 1)
        if self.name == "J" and self.per == Per.element:  # which keeps it symmetric and positive
            root = jnp.sqrt(drawn)
            drawn = root[..., :, None] * root[..., None, :]
        return data, drawn


def _two_numbers(
    name: str, spread: float | tuple[float, float], distribution: Distribution
) -> tuple[float, float]:
    """Return the numbers of a distribution.

    Raises:
        ValueError: They do not suit it.
    """
    try:
        numbers = np.asarray(spread, float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2,) or not np.isfinite(numbers).all():
        raise ValueError(f"the spread of {name} is one number or two, finite, got {spread}")
    a, b = numbers.tolist()
    if distribution == Distribution.gaussian and b < 0:
        raise ValueError(f"{name}: a standard deviation is at least 0, got {b:g}")
    if distribution == Distribution.log_uniform and not 0 < a <= b:
        raise ValueError(f"{name}: log_uniform needs two numbers above 0, in order, got {spread}")
    if distribution == Distribution.uniform and a > b:
        raise ValueError(f"{name}: the first number is at most the second, got {spread}")
    return a, b


def randomize_payload(name: str, spread: float) -> ResetStage:
    """Multiply a figure of the payload by 1 ± `spread`, one factor for each load or cable.

    Where lengths change, let the stage `hang_payload` follow.

    Args:
        name: mass, length, stiffness, damping or drag_area.
        spread: From 0 to less than 1.

    Raises:
        ValueError: There is no such figure, or the spread is out of range.
    """
    figures = ("mass", "length", "stiffness", "damping", "drag_area")
    if name not in figures:
        raise ValueError(unknown("figure of the payload to randomise", name, figures))
    _check_spread(name, spread)

    def scale(data: SimData, default_data: SimData, mask: Array) -> SimData:
        payload = payload_of(data)
        now, nominal = getattr(payload, name), getattr(payload_of(default_data), name)
        data, noise = _uniform(data, now.shape)
        new = in_worlds(mask, nominal * (1 + spread * noise), now)
        return data.replace(payload=payload.replace(**{name: new}))

    return scale


def _per_axis(field: str, spread: ArrayLike) -> np.ndarray:
    """Return the spread of a vector.

    Raises:
        ValueError: The spread is not finite, or neither one number nor three.
    """
    array = np.asarray(spread, float)
    if array.shape not in ((), (1,), (3,)) or not np.isfinite(array).all():
        raise ValueError(f"the spread of {field} is one or three finite numbers, got {spread}")
    return array


def _shift(field: str, spread: ArrayLike) -> ResetStage:
    spread = _per_axis(field, spread)

    def shift(data: SimData, _: SimData, mask: Array) -> SimData:
        now = getattr(data.states, field)
        data, noise = _uniform(data, now.shape)
        new = in_worlds(mask, now + noise * jnp.asarray(spread, now.dtype), now)
        return data.replace(states=data.states.replace(**{field: new}))

    return shift


def _check_spread(name: str, spread: float) -> None:
    is_number = np.ndim(spread) == 0 and np.issubdtype(np.asarray(spread).dtype, np.number)
    if not is_number or not 0 <= spread < 1:
        raise ValueError(f"the spread of {name} is from 0 to less than 1, got {spread}")


def _uniform(data: SimData, shape: tuple[int, ...]) -> tuple[SimData, Array]:
    """Return random numbers from -1 to 1, and data with a new key."""
    key, subkey = jax.random.split(data.core.rng_key)
    noise = jax.random.uniform(subkey, shape, data.states.pos.dtype, -1, 1)
    return data.replace(core=data.core.replace(rng_key=key)), noise


def in_worlds(mask: Array, new: Array, now: Array) -> Array:
    """Return `new` in the worlds of the mask, `now` in the others."""
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, now)
