"""Packs many small arrays into a few long ones.

Passing an array to a compiled function costs about 2 us, and `SimData` has some sixty. Packed end
to end they are a handful, and the compiler slices them at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import split as components
from crazyflow_ros.dynamics.components import stack
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced

T = TypeVar("T")
Vectors = tuple[Array, ...]


class Packing:
    """Packs arrays end to end, one vector per dtype."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        """Record shapes and dtypes of `arrays`."""
        self._shapes = [a.shape for a in arrays]
        self._dtypes = [a.dtype for a in arrays]
        self.dtypes = list(dict.fromkeys(self._dtypes))  # of the vectors, in order

    @property
    def shapes(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the vectors."""
        sizes = [(prod(shape), dtype) for shape, dtype in zip(self._shapes, self._dtypes)]
        return [
            jax.ShapeDtypeStruct((sum(n for n, own in sizes if own == dtype),), dtype)
            for dtype in self.dtypes
        ]

    def pack(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Pack the arrays, of JAX or of NumPy, into one vector per dtype."""
        is_numpy = all(isinstance(a, np.ndarray) for a in arrays)

        def joined(dtype: Any) -> Any:
            parts = [a.ravel() for a, own in zip(arrays, self._dtypes) if own == dtype]
            return np.concatenate(parts, dtype=dtype) if is_numpy else jnp.concatenate(parts)

        return tuple(joined(dtype) for dtype in self.dtypes)

    def unpack(self, vectors: Sequence[Any]) -> list[Any]:
        """Unpack the arrays, the inverse of `pack`."""
        offsets, arrays = dict.fromkeys(self.dtypes, 0), []
        for shape, dtype in zip(self._shapes, self._dtypes):
            start = offsets[dtype]
            offsets[dtype] += prod(shape)
            vector = vectors[self.dtypes.index(dtype)]
            arrays.append(vector[start : offsets[dtype]].reshape(shape))
        return arrays


Components = list[tuple[Array, ...]]


def in_components(
    tree: T, changed: Sequence[bool]
) -> tuple[Callable[[T], Components], Callable[[Components], T]]:
    """Return functions that carry some leaves of a tree through a loop, component by component.

    Contiguous arrays vectorise; with stacked arrays, XLA would compute everything again for each
    component.

    Args:
        tree: Gives the other leaves.
        changed: For each leaf, whether it is carried.

    Returns:
        Functions from a tree to components, and back.
    """
    leaves, treedef = jax.tree.flatten(tree)
    moving = [i for i, is_changed in enumerate(changed) if is_changed]

    def split(tree: T) -> Components:
        out = [jax.tree.leaves(tree)[i] for i in moving]
        return [components(x) if x.ndim > 1 else (x,) for x in out]

    def join(carry: Components) -> T:
        merged = list(leaves)
        for i, parts in zip(moving, carry):
            merged[i] = stack(parts) if leaves[i].ndim > 1 else parts[0]
        return jax.tree.unflatten(treedef, merged)

    return split, join


class MovingLeaves(Generic[T]):
    """The leaves of a pytree that a function both reads and changes, as a few vectors.

    The other leaves are fixed, or their previous value does not matter.

    Args:
        fn: Function from the pytree to another one of the same structure.
        tree: Provides the structure, shapes and dtypes.

    Attributes:
        moves: For each leaf, whether it is both read and changed.
    """

    def __init__(self, fn: Callable[[T], T], tree: T) -> None:
        self._treedef = jax.tree.structure(tree)
        jaxpr = traced(fn, tree)
        self.moves = [a and b for a, b in zip(changed_leaves(jaxpr), read_leaves(jaxpr))]
        self._packing = Packing(self.moving(tree))

    def pack(self, tree: T) -> Vectors:
        """Pack the moving leaves."""
        return self._packing.pack(self.moving(tree))

    def fixed(self, tree: T) -> list[Array]:
        """Return the other leaves."""
        return self._leaves(tree, moving=False)

    def unpack(self, vectors: Vectors, fixed: Sequence[Array]) -> T:
        """Rebuild the pytree."""
        return self.joined(self._packing.unpack(vectors), fixed)

    def joined(self, moving: Sequence[Array], fixed: Sequence[Array]) -> T:
        """Rebuild the pytree from the moving leaves and the others."""
        given, rest = iter(moving), iter(fixed)
        leaves = [next(given if moves else rest) for moves in self.moves]
        return jax.tree.unflatten(self._treedef, leaves)

    def moving(self, tree: T) -> list[Array]:
        """Return the moving leaves."""
        return self._leaves(tree, moving=True)

    def _leaves(self, tree: T, *, moving: bool) -> list[Array]:
        return [x for x, m in zip(jax.tree.leaves(tree), self.moves) if m is moving]
