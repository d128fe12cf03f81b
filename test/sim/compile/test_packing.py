"""Laying arrays end to end."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.sim.compile.packing import MovingLeaves, Packing
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced

Tree = dict[str, jax.Array]


def tree() -> Tree:
    return {
        "count": jnp.array([3], jnp.int32),
        "fixed": jnp.arange(6.0).reshape(2, 3),
        "moving": jnp.ones((2, 1, 3)),
        "flag": jnp.array([True, False]),
        "swapped": jnp.zeros((2, 3)),
    }


def advance(t: Tree) -> Tree:
    return t | {"count": t["count"] + 1, "moving": t["moving"] * 2 + t["fixed"][:, None]}


def test_pack_and_unpack() -> None:
    arrays = list(tree().values())
    packing = Packing(arrays)
    vectors = packing.pack(arrays)
    assert sorted(str(v.dtype) for v in vectors) == ["bool", "float32", "int32"]
    assert all(v.ndim == 1 for v in vectors)
    for a, b in zip(packing.unpack(vectors), arrays, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_changed_leaves() -> None:
    def changed(fn: object) -> set[str]:
        return {name for name, c in zip(sorted(tree()), changed_leaves(traced(fn, tree()))) if c}

    assert changed(lambda t: t) == set()
    assert changed(advance) == {"count", "moving"}
    assert changed(lambda t: t | {"fixed": t["swapped"], "swapped": t["fixed"]}) == {
        "fixed",
        "swapped",
    }
    assert changed(lambda t: t | {"fixed": jnp.zeros((2, 3))}) == {"fixed"}
    with pytest.raises(TypeError, match="a stage returned no fixed, expected float32"):
        changed(lambda t: {"count": t["count"]})


def test_a_call_changes_and_reads_what_its_function_does() -> None:
    @jax.jit
    def inner(t: Tree) -> Tree:
        return advance(t) | {"swapped": t["swapped"][::-1][::-1]}

    jaxpr = traced(lambda t: jax.jit(inner)(t) | {"swapped": t["swapped"]}, tree())
    names = sorted(tree())
    assert {n for n, c in zip(names, changed_leaves(jaxpr)) if c} == {"count", "moving"}
    read = {n for n, r in zip(names, read_leaves(jaxpr)) if r}
    assert {"count", "fixed", "moving"} <= read and "flag" not in read


def test_moving_leaves() -> None:
    leaves = MovingLeaves(advance, tree())
    vectors, fixed = leaves.pack(tree()), leaves.fixed(tree())
    assert [v.size for v in vectors] == [1, 6] and len(fixed) == 3
    jax.tree.map(np.testing.assert_array_equal, leaves.unpack(vectors, fixed), tree())
    moved = leaves.unpack(leaves.pack(advance(tree())), fixed)
    jax.tree.map(np.testing.assert_array_equal, moved, advance(tree()))
