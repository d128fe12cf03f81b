"""Computations evaluated number by number.

Arrays become NumPy arrays of objects, each of which is a JAX array that stands for one number: a
scalar, or a vector of that number in many worlds. Operations that only move numbers within arrays
are carried out during tracing, and leave nothing to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

_MOVES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": lambda x, shape, broadcast_dimensions, **_: np.broadcast_to(
        x[tuple(slice(None) if i in broadcast_dimensions else None for i in range(len(shape)))],
        shape,
    ),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, dimension),
    "copy": lambda x: x,
    "reshape": lambda x, new_sizes, **_: x.reshape(new_sizes),
    "rev": lambda x, dimensions: np.flip(x, dimensions),
    "slice": lambda x, start_indices, limit_indices, strides: x[
        tuple(map(slice, start_indices, limit_indices, strides or x.ndim * (None,)))
    ],
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "squeeze": lambda x, dimensions: x.squeeze(tuple(dimensions)),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "transpose": lambda x, permutation: x.transpose(permutation),
    "unstack": lambda x, axis: [part.squeeze(axis) for part in np.split(x, x.shape[axis], axis)],
}
_ARITHMETIC = """
abs acos add add_any and asin atan2 ceil clamp convert_element_type cos div eq exp floor ge gt
integer_pow is_finite le log log1p lt max min mul ne neg not or pow rem rsqrt select_n sign sin sqrt
square stop_gradient sub tan tanh xor
"""
_ELEMENTWISE = frozenset(_ARITHMETIC.split())
_CALLS = {
    "jit": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce_and": jnp.logical_and,
    "reduce_max": jnp.maximum,
    "reduce_min": jnp.minimum,
    "reduce_or": jnp.logical_or,
    "reduce_sum": jnp.add,
}


class CannotEvaluate(Exception):
    """A computation cannot be evaluated number by number."""


def n_operations(jaxpr: Jaxpr) -> int:
    """Return the number of operations on numbers.

    Raises:
        CannotEvaluate: A primitive is unknown.
    """
    return sum(map(_n_operations, _needed(jaxpr)))


def _n_operations(eqn: Any) -> int:
    name, params = eqn.primitive.name, eqn.params
    if name in _MOVES or name == "random_wrap":
        return 0
    if name in _CALLS:
        return n_operations(_opened(params[_CALLS[name]]))
    if name == "while":
        return n_operations(params["cond_jaxpr"].jaxpr) + n_operations(params["body_jaxpr"].jaxpr)
    if name == "cond":
        return sum(n_operations(branch.jaxpr) for branch in params["branches"])
    if name in _ELEMENTWISE or name in _REDUCTIONS or name == "round":
        return max(prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars))
    raise CannotEvaluate(f"the primitive {name}")


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a computation number by number.

    Args:
        jaxpr: The computation.
        consts: Its constants.
        args: Its arguments, arrays of objects.

    Returns:
        Its results, arrays of objects.

    Raises:
        CannotEvaluate: A loop would not end at the same time in all worlds.
    """
    values = dict(zip(jaxpr.invars, args, strict=True))
    values.update((v, _numbers(x, v)) for v, x in zip(jaxpr.constvars, consts, strict=True))

    def of(v: Any) -> np.ndarray:
        return _numbers(v.val, v) if isinstance(v, Literal) else values[v]

    for eqn in _needed(jaxpr):
        results = _result(eqn, [of(v) for v in eqn.invars])
        values.update(zip(eqn.outvars, results, strict=True))
    return [of(v) for v in jaxpr.outvars]


def _needed(jaxpr: Jaxpr) -> list[Any]:
    """Return the equations that the results depend on."""
    wanted, equations = {v for v in jaxpr.outvars if isinstance(v, Var)}, []
    for eqn in reversed(jaxpr.eqns):
        if wanted.intersection(eqn.outvars):
            equations.append(eqn)
            wanted.update(v for v in eqn.invars if isinstance(v, Var))
    return equations[::-1]


def _numbers(array: Any, variable: Any) -> np.ndarray:
    """Return a constant as an array of objects."""
    values = np.asarray(array, variable.aval.dtype)
    return _array([jnp.asarray(x) for x in values.ravel()], values.shape)


def _array(objects: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(len(objects), object)
    for i, x in enumerate(objects):  # one by one, because NumPy would look into them
        out[i] = x
    return out.reshape(shape)


def _result(eqn: Any, args: list[np.ndarray]) -> list[np.ndarray]:
    name, params = eqn.primitive.name, eqn.params
    if name in _MOVES:
        moved = _MOVES[name](*args, **params)
        return moved if isinstance(moved, list) else [moved]
    if name in _CALLS:
        return _called(params[_CALLS[name]], args)
    if name == "while":
        return _loop(params, args)
    if name == "cond":
        taken = [_called(branch, args[1:]) for branch in params["branches"]]
        return [_each(_picked, [args[0], *results]) for results in zip(*taken)]
    if name == "random_wrap":  # a key of which nothing is drawn, as the drawing is unknown here
        return [np.full(eqn.outvars[0].aval.shape, None)]
    if name == "round":
        return [_each(_rounded, args)]
    if name in _REDUCTIONS:
        return [_reduced(_REDUCTIONS[name], args[0], params["axes"])]
    return [_each(partial(eqn.primitive.bind, **params), args)]


def _each(fn: Callable[..., Any], args: Sequence[np.ndarray]) -> np.ndarray:
    """Apply a function to the numbers of arrays, once for the same numbers."""
    arrays, known = np.broadcast_arrays(*args), {}
    results = []
    for numbers in zip(*(a.ravel() for a in arrays)):
        key = tuple(map(id, numbers))
        if key not in known:
            known[key] = None if any(x is None for x in numbers) else fn(*_alike(numbers))
        results.append(known[key])
    return _array(results, arrays[0].shape)


def _alike(numbers: Sequence[Any]) -> list[Any]:
    """Return numbers as vectors if one of them is."""
    shape = max((x.shape for x in numbers), key=len)
    return [x if x.shape == shape else jnp.broadcast_to(x, shape) for x in numbers]


def _reduced(fn: Callable[[Any, Any], Any], array: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    moved = np.moveaxis(array, axes, range(len(axes)))
    n, kept = prod(moved.shape[: len(axes)]), moved.shape[len(axes) :]
    parts = [x.reshape(kept) for x in np.split(moved.ravel(), n)]
    return _each(lambda *numbers: reduce(fn, numbers), parts)


def _rounded(x: Array) -> Array:
    """Return the nearest integer; halves go to the even one."""
    down = jnp.floor(x)
    rest, odd = x - down, down - 2 * jnp.floor(down / 2) == 1
    return jnp.where((rest > 0.5) | ((rest == 0.5) & odd), down + 1, down)


def _picked(index: Array, *numbers: Array) -> Array:
    """Return the number with an index, or the last one if the index is too large."""
    picked = numbers[-1]
    for k in range(len(numbers) - 2, -1, -1):
        picked = jnp.where(index <= k, numbers[k], picked)
    return picked


def _opened(jaxpr: ClosedJaxpr | Jaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _called(jaxpr: ClosedJaxpr | Jaxpr, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    return evaluate(_opened(jaxpr), getattr(jaxpr, "consts", ()), args)


def _loop(params: dict[str, Any], args: list[np.ndarray]) -> list[np.ndarray]:
    """Run a loop that has the same number of iterations in all worlds."""
    n_cond, n_fixed = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_cond, of_body, first = args[:n_cond], args[n_cond:n_fixed], args[n_fixed:]
    ends = np.cumsum([x.size for x in first])

    def whole(numbers: Sequence[Any]) -> list[np.ndarray]:
        return [
            _array(numbers[end - x.size : end], x.shape) for x, end in zip(first, ends, strict=True)
        ]

    def goes_on(numbers: Sequence[Any]) -> Any:
        (result,) = _called(params["cond_jaxpr"], [*of_cond, *whole(numbers)])
        if result.item().shape:
            raise CannotEvaluate("a loop that ends at other times in other worlds")
        return result.item()

    def body(numbers: Sequence[Any]) -> list[Any]:
        after = _called(params["body_jaxpr"], [*of_body, *whole(numbers)])
        flat = [x for array in after for x in array.ravel()]
        return [_alike(pair)[0] for pair in zip(flat, numbers)]

    numbers = [x for array in first for x in array.ravel()]
    while True:  # until each scalar that becomes a vector begins as one
        after = jax.eval_shape(body, numbers)
        wider = [jnp.broadcast_to(x, y.shape) for x, y in zip(numbers, after)]
        if all(x.shape == y.shape for x, y in zip(numbers, wider)):
            return whole(jax.lax.while_loop(goes_on, body, numbers))
        numbers = wider
