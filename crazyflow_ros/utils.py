"""Helpers that programs written for Crazyflow import: changes of data, JAX's compilation cache."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from crazyflow_ros.xla.compiled_files import cache_folder
from crazyflow_ros.xla.kept_files import make_private
from crazyflow_ros.xla.struct import Struct

__all__ = [
    "enable_cache",
    "leaf_replace",
]

T = TypeVar("T", bound=Struct)


def leaf_replace(tree: T, mask: Array | None = None, **leaves: ArrayLike) -> T:
    """Return data with some arrays replaced in the worlds of a mask, e.g. in a reset stage.

    Args:
        tree: `data.states`, `data.params` and so on.
        mask: (n_worlds,) bool, the worlds to change; None for all.
        **leaves: Values by the names of their arrays, with the axis of worlds first.

    Raises:
        TypeError: `tree` has no such array.
        ValueError: A value has no axis of worlds, or the arrays cannot be broadcast.
    """
    if mask is None:
        return tree.replace(**{name: jnp.asarray(value) for name, value in leaves.items()})
    changed = {}
    for name, value in leaves.items():
        new = jnp.asarray(value)
        if new.ndim < 1 or new.shape[0] != mask.shape[0]:
            raise ValueError(f"{name} must have {mask.shape[0]} worlds, got shape {new.shape}")
        if name not in type(tree).__dataclass_fields__:  # type: ignore[attr-defined]
            raise TypeError(f"{type(tree).__name__} has no array {name!r}")
        where = mask.reshape(-1, *[1] * (new.ndim - 1))
        changed[name] = jnp.where(where, new, getattr(tree, name))
    return tree.replace(**changed)


def enable_cache(
    cache_path: str | os.PathLike[str] | None = None,
    min_entry_size_bytes: int = -1,
    min_compile_time_secs: float = 0,
    enable_xla_caches: bool = False,
) -> None:
    """Keep compiled code between runs, in JAX's persistent cache.

    Args:
        cache_path: Folder, by default the one that the node uses. JAX executes its content, so a
            folder that others can write to is not used, with a warning.
        min_entry_size_bytes: Smallest entry; -1 keeps all.
        min_compile_time_secs: Code that compiles faster is not kept.
        enable_xla_caches: Whether XLA also keeps its own caches there.
    """
    from jax.experimental.compilation_cache import compilation_cache

    folder = cache_folder() if cache_path is None else Path(cache_path)
    if problem := make_private(folder):
        warnings.warn(f"{folder} {problem}: nothing is kept", stacklevel=2)
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", min_entry_size_bytes)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", min_compile_time_secs)
    if enable_xla_caches:
        jax.config.update("jax_persistent_cache_enable_xla_caches", "all")
    compilation_cache.reset_cache()  # JAX ignores a folder that is set after it compiled something
