"""Helpers for trees of arrays with an axis of worlds, for parameters, and JAX's cache."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.scene.frames import grid_2d as _grid
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.utils import enable_cache

__all__ = [
    "CORE_NDIM_KEY",
    "broadcast_mask",
    "enable_cache",
    "filter_to_signature",
    "grid_2d",
    "leaf_replace",
    "parametrize",
    "pytree_replace",
    "to_xp",
    "world_mask",
]

CORE_NDIM_KEY = "core_ndim"
"""Key in the metadata of a dataclass's field: the number of its axes without those of batches."""

MATRICES = (
    *("J", "J_inv", "rpm2thrust", "rpm2torque", "mixing_matrix", "drag_matrix", "rotor_dyn_coef"),
    *("rotor_tilt", "rotor_lever"),
)
"""Parameters of a drone with two axes; the others have one."""

T = TypeVar("T")


def grid_2d(n: int, spacing: float = 1.0, center: Any = None) -> Array:
    """Return n points (n, 2) of a square grid around a centre (2,), the nearest first."""
    return jnp.asarray(_grid(n)) * spacing + (0.0 if center is None else jnp.asarray(center))


def world_mask(tree: T) -> T:
    """Return for each array of a tree whether its first axis is that of the worlds.

    The fields of users' dataclasses say so by `CORE_NDIM_KEY`; other arrays have no such axis.

    Raises:
        ValueError: A field with `CORE_NDIM_KEY` holds a dataclass.
    """
    if not isinstance(tree, SimData):
        return _mask(tree)
    flags: Any = jax.tree.map_with_path(_has_worlds, tree.replace(plugins={}))
    return flags.replace(plugins=_mask(tree.plugins))


def _has_worlds(path: tuple[Any, ...], leaf: Array) -> bool:
    names = [getattr(key, "name", "") for key in path]
    if names[0] == "params":
        return leaf.ndim > (2 if names[-1] in MATRICES else 1)
    return "params" not in names and (names[0] != "core" or names[1] == "steps")


def _mask(node: Any) -> Any:
    def has_fields(x: Any) -> bool:
        return is_dataclass(x) and not jax.tree_util.all_leaves([x])

    if not has_fields(node):
        return jax.tree.map(
            lambda x: _mask(x) if has_fields(x) else False, node, is_leaf=has_fields
        )
    flags = {}
    for field in fields(node):
        if not field.metadata.get("pytree_node", not field.metadata.get("static", False)):
            continue
        value, core_ndim = getattr(node, field.name), field.metadata.get(CORE_NDIM_KEY)
        if core_ndim is None:
            flags[field.name] = _mask(value)
        elif has_fields(value):
            raise ValueError(f"{type(node).__name__}.{field.name} holds a struct with own fields")
        else:
            flags[field.name] = jax.tree.map(lambda x, n=core_ndim: x.ndim > n, value)
    return node.replace(**flags)


def pytree_replace(tree: T, new_tree: T, batched: T, mask: Array | None = None) -> T:
    """Return a tree with the arrays of another one in the worlds of a mask, where `batched`."""

    def chosen(now: Array, new: Array, own: bool) -> Array:
        return jnp.where(broadcast_mask(mask, now.shape), new, now) if own else now

    replaced: T = jax.tree.map(chosen, tree, new_tree, batched)
    return replaced


def leaf_replace(tree: Any, mask: Array | None = None, **leaves: Any) -> Any:
    """Return a struct with some arrays replaced in the worlds of a mask."""
    return tree.replace(
        **{
            name: jnp.where(broadcast_mask(mask, new.shape), new, getattr(tree, name))
            for name, new in leaves.items()
        }
    )


def broadcast_mask(mask: Array | None, shape: tuple[int, ...]) -> Array:
    """Return a mask with as many axes as a shape; None means True everywhere."""
    mask = jnp.ones(shape, bool) if mask is None else jnp.asarray(mask)
    return mask.reshape(*mask.shape, *[1] * (len(shape) - mask.ndim))


def parametrize(
    fn: Callable[..., Any],
    drone: str,
    load_params: Callable[..., dict[str, Any]],
    xp: Any = None,
    device: Any = None,
) -> partial[Any]:
    """Return a function with the parameters of a drone as its keyword-only arguments."""
    return partial(fn, **load_params(fn, drone, xp=xp, device=device))


def filter_to_signature(params: Mapping[str, Any], fn: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that a function accepts.

    Raises:
        AssertionError: A keyword-only argument is missing.
    """
    arguments = inspect.signature(fn).parameters
    needed = {name for name, p in arguments.items() if p.kind is p.KEYWORD_ONLY}
    missing = sorted(needed - params.keys())
    assert not missing, f"{getattr(fn, '__name__', fn)} needs the parameters {missing}"
    return {name: value for name, value in params.items() if name in arguments}


def to_xp(*values: Any, xp: Any = None, device: Any = None) -> Any:
    """Return numbers, arrays and dictionaries of them as arrays of a library, one or a tuple."""
    if len(values) != 1:
        return tuple(to_xp(value, xp=xp, device=device) for value in values)
    (value,) = values
    if isinstance(value, Mapping):
        return {name: to_xp(part, xp=xp, device=device) for name, part in value.items()}
    return (np if xp is None else xp).asarray(value, device=device)
