"""Functions of many worlds, computed block by block in one kernel.

On the CPU, each block of worlds is computed to the end before the next one starts, so that
everything a tick reads or writes stays in the first-level cache; and each component is a contiguous
array, so that all arithmetic is vectorised. On a GPU, each world has a thread, see `threads`.

Arrays have the axes (rows, worlds, drones), with a row for each component. As a view of a leaf
(worlds, drones, components), such an array costs nothing: XLA stores the leaf in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.xla.compiler import has_kernels_of_threads
from crazyflow_ros.xla.kernels import apart, fits_one_kernel, one_kernel, separate_kernels, zero
from crazyflow_ros.xla.threads import in_threads

LANES = 128  # drones in a block

Rows: TypeAlias = tuple[Array, ...]
"""The rows of an array, each (worlds, drones)."""
Results: TypeAlias = tuple[list[Any], list[Any]]
"""Arrays of which each world has its own part, and arrays that are sums over the worlds."""
BlockFn: TypeAlias = Callable[[list[Rows], list[Array]], Results]
"""A function of arrays of which each world has its own part, and of arrays that all worlds
share."""


def rows_of(leaf: Array) -> Array:
    """Convert a leaf (worlds, drones, ...) to (rows, worlds, drones)."""
    return jnp.moveaxis(leaf.reshape(*leaf.shape[:2], -1), -1, 0)


def leaf_of(rows: Array, shape: tuple[int, ...]) -> Array:
    """Convert (rows, worlds, drones) to a leaf (worlds, drones, ...), the inverse of `rows_of`."""
    return jnp.moveaxis(rows, 0, -1).reshape(rows.shape[1:] + shape[2:])


def at_once(
    fn: BlockFn, own: Sequence[Array], shared: Sequence[Array], into: Any = None
) -> Results:
    """Compute `fn` for all worlds at once; see `in_blocks`."""
    del into
    changed, sums = fn([tuple(a) for a in own], list(shared))
    return [jnp.stack(rows) for rows in changed], sums


def in_blocks(
    fn: BlockFn, own: Sequence[Array], shared: Sequence[Array], into: Sequence[int | None]
) -> Results:
    """Compute `fn` block by block, on a CPU.

    This is for plain arithmetic; other functions are computed for all worlds at once.

    Args:
        fn: A function whose result for a world does not depend on the other worlds.
        own: Arrays (rows, worlds, drones).
        shared: Arrays of any shape.
        into: For each result, the array of `own` that it may overwrite, if there is one.

    Returns:
        The results of `fn`, with arrays (rows, worlds, drones) in place of rows.
    """
    n_worlds = own[0].shape[1]
    worlds = _worlds_of_a_block(n_worlds, max(a.shape[2] for a in own))
    blocks = [(jax.ShapeDtypeStruct((worlds, a.shape[2]), a.dtype),) * a.shape[0] for a in own]
    jaxpr, (changed, sums) = jax.make_jaxpr(fn, return_shape=True)(blocks, list(shared))
    missing = -n_worlds % worlds
    # Sums must not contain a world twice.
    if not fits_one_kernel(jaxpr.jaxpr) or (missing and sums):
        return at_once(fn, own, shared)
    place = {i: j for j, i in enumerate(into) if i is not None}

    def rows(k: Array, array: Array) -> Rows:
        size = (1, worlds, array.shape[2])
        starts = ((i, k * worlds, 0) for i in range(array.shape[0]))
        return tuple(jax.lax.dynamic_slice(array, start, size)[0] for start in starts)

    def kernel(own: list[Array], shared: list[Array]) -> Results:
        none = zero((own, shared))

        def block(k: Array, carry: Results) -> Results:
            arrays, totals = carry
            given = [arrays[place[i]] if i in place else a for i, a in enumerate(own)]
            # Stored before anything is written; otherwise, XLA may copy whole arrays.
            new, added = fn(apart(lambda given: [rows(k, a) for a in given], given), shared)
            # Row by row: XLA would store an array of all rows first.
            for j, parts in enumerate(new):
                for i, row in enumerate(parts):
                    start = (i, k * worlds, 0)
                    arrays[j] = jax.lax.dynamic_update_slice(arrays[j], row[None], start)
            return arrays, [a + b for a, b in zip(totals, added)]

        size = own[0].shape[1]
        arrays = [
            jnp.zeros((len(parts), size, parts[0].shape[1]), parts[0].dtype)
            if i is None
            else own[i]
            for i, parts in zip(into, changed, strict=True)
        ]
        totals = [jnp.zeros(x.shape, x.dtype) for x in sums]
        with separate_kernels(none > -1):
            return jax.lax.fori_loop(0, size // worlds + none, block, (arrays, totals))

    if not missing:
        return one_kernel(kernel)(list(own), list(shared))
    # Copies of the last world fill the last block.
    padding = ((0, 0), (0, missing), (0, 0))
    results, _ = one_kernel(kernel)([jnp.pad(a, padding, "edge") for a in own], list(shared))
    return [a[:, :n_worlds] for a in results], []


def in_threads_or_at_once(
    fn: BlockFn, own: Sequence[Array], shared: Sequence[Array], into: Sequence[int | None]
) -> Results:
    """Compute `fn` on NVIDIA's GPUs, in a thread for each world if possible; see `in_blocks`."""
    changed = in_threads(fn, own, shared, into) if has_kernels_of_threads() else None
    return at_once(fn, own, shared) if changed is None else (changed, [])


def _worlds_of_a_block(n_worlds: int, n_drones: int) -> int:
    """Return a block size of about `LANES` drones that divides the worlds evenly, if possible."""
    most = max(1, LANES // n_drones)
    even = (w for w in range(most, most // 2, -1) if n_worlds % w == 0)
    return next(even, ceil(n_worlds / ceil(n_worlds / most)))
