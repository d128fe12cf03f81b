"""Kernels of XLA's CPU compiler: results kept apart, loops compiled as one function."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.kernels import apart, fits_one_kernel, one_kernel, separate_kernels, zero


def parts(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    return {"product": x * y, "sum": (x + y).astype(jnp.int32)}


def use(x: jax.Array, y: jax.Array) -> jax.Array:
    made = apart(parts, x, y)
    return made["product"] - made["sum"]


def separated(x: jax.Array, y: jax.Array, n: jax.Array) -> jax.Array:
    with separate_kernels(n > 0):
        return use(x, y)


X, Y = jnp.linspace(-1, 1, 5), jnp.linspace(2, 3, 5)


def test_apart_changes_no_result() -> None:
    np.testing.assert_array_equal(jax.jit(separated)(X, Y, 1), use(X, Y))


def test_apart_differentiates_and_vectorises() -> None:
    def total(x: jax.Array) -> jax.Array:
        return separated(x, Y, jnp.array(1)).sum()

    np.testing.assert_allclose(jax.grad(total)(X), Y)
    rows = jnp.stack([X, 2 * X])
    np.testing.assert_array_equal(
        jax.vmap(lambda x: separated(x, Y, jnp.array(1)))(rows), [use(X, Y), use(2 * X, Y)]
    )


def test_what_is_apart_is_not_fused() -> None:
    def kernels(fn: Callable[..., jax.Array]) -> int:
        text = jax.jit(fn).lower(X, Y, 1).compile().as_text()
        return text.count("conditional(")

    assert kernels(lambda x, y, n: use(x, y)) == 0
    assert kernels(separated) == 1


def looped(x: jax.Array, unread: jax.Array, n: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, n + zero((x, unread)), lambda _, y: y * 0.5 + x, x)


@pytest.mark.parametrize("unread", [jnp.zeros(3), jnp.array([True]), jax.random.key(1)])
def test_one_kernel(unread: jax.Array) -> None:
    compiled = jax.jit(one_kernel(looped))
    np.testing.assert_allclose(compiled(X, unread, 3), X * 1.875)
    text = compiled.lower(X, unread, 3).compile().as_text()
    entry = text[text.index("ENTRY") :]
    assert " call(" in entry and " while(" not in entry


@pytest.mark.parametrize(
    ("fn", "fits"),
    [
        (lambda x: jnp.where(x > 0, jnp.clip(x, 0, 1), jnp.sin(x)), True),
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y + x.sum(), x), True),
        (lambda x: x @ x, False),
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sort(y), x), False),
        (lambda x: jnp.linalg.inv(jnp.diag(x))[0], False),
    ],
)
def test_fits_one_kernel(fn: Callable[[jax.Array], jax.Array], fits: bool) -> None:
    assert fits_one_kernel(jax.make_jaxpr(fn)(X).jaxpr) is fits
