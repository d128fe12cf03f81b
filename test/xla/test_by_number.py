"""Evaluation number by number, compared with JAX's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.xla.by_number import CannotEvaluate, evaluate, n_operations

N = 4  # worlds


def by_number(fn, *args):
    """Evaluate a function of arrays of one world, for several worlds along the first axis."""
    closed = jax.make_jaxpr(fn)(*(a[0] for a in args))
    given = []
    for a in args:
        given.append(np.empty(a.shape[1:], object))
        for i in np.ndindex(a.shape[1:]):
            given[-1][i] = jnp.asarray(a[(slice(None), *i)])
    results = evaluate(closed.jaxpr, closed.consts, given)
    return [np.stack([np.broadcast_to(x, N) for x in r.ravel()], -1) for r in results]


def worlds(*shape):
    return np.random.default_rng(0).normal(size=(N, *shape)).astype(np.float32)


def moved(x):
    rows = jnp.stack([x[:, 0], 2 * x[:, 1], x[:, 2]])
    first, rest = jnp.split(rows, [1])
    a, b, c = jnp.unstack(rows[:, 1])
    d, *_ = jnp.unstack(rows[:, ::2], axis=1)
    spread = jnp.broadcast_to(x[:, 0, None], (2, 3, 4))
    return jnp.concatenate([rest, first[::-1]]).T.reshape(-1), c - a * b, d, spread


def reduced(x):
    return x.sum(0), x.max(1), x.min(), (x > 0).any(), (x > -9).all(0)


def in_branches(x):
    index = (x[0, 0] * 2).astype(int)
    return jax.lax.switch(index, [jnp.sin, lambda x: x.T * 2, lambda x: x], x)


def in_a_loop(x):
    def body(k, carry):
        total, last = carry
        return total + jnp.where(k < 2, x, 1.0), last * 0.5 + k

    return jax.lax.fori_loop(0, jnp.int32(5), body, (jnp.zeros_like(x), 3.0))


@jax.custom_jvp
def tripled(x):
    return 3 * x


@jax.custom_vjp
def quadrupled(x):
    return 4 * x


tripled.defjvp(lambda x, dx: (tripled(*x), 3 * dx[0]))
quadrupled.defvjp(lambda x: (quadrupled(x), None), lambda _, dy: (4 * dy,))


def with_derivatives_of_its_own(x):
    return jax.checkpoint(tripled)(x) + quadrupled(x)


def of_a_key_that_nothing_draws_from(x):
    _, y = jax.jit(lambda key, x: (key, x + 1))(jax.random.wrap_key_data(jnp.zeros(2, "u4")), x)
    return y


FUNCTIONS = [
    moved,
    reduced,
    in_branches,
    in_a_loop,
    with_derivatives_of_its_own,
    of_a_key_that_nothing_draws_from,
]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_a_function_has_the_same_results_as_in_jax(fn):
    x = worlds(3, 3)
    expected = jax.tree.leaves(jax.vmap(fn)(x))
    for result, right in zip(by_number(fn, x), expected, strict=True):
        np.testing.assert_allclose(result, right.reshape(N, -1), rtol=1e-6, atol=1e-6)


def test_halves_are_rounded_to_even_integers():
    x = np.tile(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, -2.6], np.float32), (N, 1))
    (result,) = by_number(jnp.round, x)
    np.testing.assert_array_equal(result, np.round(x))


def test_operations_are_those_on_which_results_depend():
    jaxpr = jax.make_jaxpr(lambda x: [x * 2 + 1, jnp.sin(x)][0].reshape(2, 3))(jnp.ones(6)).jaxpr
    assert n_operations(jaxpr) == 12


@pytest.mark.parametrize("fn", [jnp.sort, lambda x: jax.lax.scan(lambda a, b: (a + b, a), 0.0, x)])
def test_an_unknown_primitive_is_refused(fn):
    with pytest.raises(CannotEvaluate, match=r"primitive (sort|scan)"):
        n_operations(jax.make_jaxpr(fn)(jnp.ones(3)).jaxpr)


def test_a_loop_whose_end_depends_on_the_world_is_refused():
    def fn(x):
        return jax.lax.while_loop(lambda y: y < 9, lambda y: 2 * y, x[0])

    with pytest.raises(CannotEvaluate, match="other times"):
        by_number(fn, np.abs(worlds(1)) + 1)
