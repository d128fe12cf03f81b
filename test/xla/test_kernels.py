"""Kernels of XLA's CPU compiler: results kept apart, loops compiled as one function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.dynamics.components import total
from crazyflow_ros.sim import Sim, contacts
from crazyflow_ros.sim.compile import packed_step
from crazyflow_ros.xla import compiler
from crazyflow_ros.xla.kernels import (
    apart,
    fits_one_kernel,
    one_kernel,
    separate_kernels,
    zero,
)


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


TABLE = jnp.arange(7.0)
OTHER = {
    "a table, interpolated": lambda x: jnp.interp(x, TABLE, TABLE**2),
    "a table": lambda x: TABLE[jnp.clip(x, 0, 6).astype(jnp.int32)],
    "the nearest": lambda x: x + jnp.abs(x[:, None] - TABLE).argmin(axis=1),
    "the farthest": lambda x: x + jnp.argmax(x),
    "repeated": lambda x: jnp.tile(x, (2, 1)).sum(axis=0),
    "reversed": lambda x: jnp.cumsum(x)[::-1] * x.prod() + jax.lax.cummax(x),
    "networks": lambda x: jax.nn.sigmoid(x) + jax.nn.elu(x) + jax.nn.gelu(x, approximate=False),
    "angles": lambda x: jnp.arctan(x) + jnp.arcsinh(x) + jnp.arctanh(x / 9),
    "a distance": lambda x: jnp.arccosh(abs(x) + 1),
    "powers": lambda x: jnp.cbrt(x) + jnp.expm1(x) + jnp.exp2(x) + jnp.sinh(x) + jnp.cosh(x),
    "errors": lambda x: jax.lax.erf(x) + jax.lax.erfc(x) + jnp.nextafter(x, x + 1),
    "bits": lambda x: jax.lax.population_count(x.astype(jnp.int32) >> 1) * x,
}


@pytest.mark.parametrize("fn", OTHER.values(), ids=OTHER.keys())
def test_what_stages_of_users_compute_fits(fn: Callable[[jax.Array], jax.Array]) -> None:
    """Otherwise, a step with such a stage takes several times as long."""
    assert fits_one_kernel(jax.make_jaxpr(fn)(X).jaxpr)

    def repeated(x: jax.Array, n: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, n + zero((x,)), lambda _, y: 0.9 * fn(y) + x, x)

    kernel = jax.jit(one_kernel(repeated)).lower(X, 3).compile()
    text = kernel.as_text()
    assert " while(" not in text[text.index("ENTRY") :]
    np.testing.assert_allclose(kernel(X, 3), jax.jit(repeated)(X, 3), rtol=1e-6)


# What XLA may lose.


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What has been tried or compiled is tried and compiled again, now and afterwards."""
    monkeypatch.setattr(packed_step, "_shared", {})
    for tried in (compiler.has_one_kernel, compiler._has_option):
        tried.cache_clear()
    yield
    for tried in (compiler.has_one_kernel, compiler._has_option):
        tried.cache_clear()


def lose_module(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "jax.experimental.xla_metadata", None)


def ignore_attribute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("jax.experimental.xla_metadata.set_xla_metadata", lambda **_: nullcontext())


def refuse_option(patch: pytest.MonkeyPatch) -> None:
    """XLA refuses what it does not know, when it compiles."""
    patch.setattr(packed_step, "_COMPILER_OPTIONS", {"xla_cpu_that_was_dropped": 512})


def flown() -> np.ndarray:
    """States of 200 drones, some of which are in another block."""
    sim = Sim(n_worlds=100, n_drones=2, control="rotor_vel")
    sim.rotor_vel_control(np.linspace(14e3, 18e3, 800).reshape(100, 2, 4))
    for n in (1, 50):
        sim.step(n)
    states = sim.data.states
    return np.concatenate([states.pos, states.quat, states.rotor_vel], axis=-1)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return flown()


@pytest.mark.parametrize(
    ("lose", "what"),
    [
        (lose_module, "the attributes inlineable, xla_cpu_small_call of the compiler"),
        (ignore_attribute, "xla_cpu_small_call of the compiler (it has no effect)"),
        (refuse_option, "the option xla_cpu_that_was_dropped of the compiler"),
    ],
)
def test_what_the_compiler_has_lost_is_one_warning_and_right_results(
    expected: np.ndarray,
    forgetful: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lose: Callable[[pytest.MonkeyPatch], None],
    what: str,
) -> None:
    options = packed_step._COMPILER_OPTIONS
    assert compiler.has_one_kernel() and compiler.known_options(options) == options
    assert not caplog.records
    compiler.has_one_kernel.cache_clear()
    lose(monkeypatch)
    for _ in range(2):
        np.testing.assert_allclose(flown(), expected, rtol=1e-4, atol=1e-5)
    (record,) = caplog.records
    assert what in record.getMessage() and f"jax {jax.__version__}" in record.getMessage()


@pytest.mark.parametrize("sum_of", [lambda x: x.sum(-2), total], ids=["library", "by halves"])
def test_a_kernel_calls_no_library_for_a_large_sum(
    sum_of: Callable[[jax.Array], jax.Array],
) -> None:
    def differences(x: jax.Array) -> jax.Array:
        return sum_of(jnp.exp(x[..., :, None] - x[..., None, :]))

    x = jnp.linspace(0, 1, 101)[None]
    fits = fits_one_kernel(jax.make_jaxpr(differences)(x).jaxpr)
    assert fits is (sum_of is total)
    if fits:
        expected = np.exp(x[0, :, None] - x[0, None, :]).sum(0)
        kernel = one_kernel(lambda x: differences(x + zero(x)))
        np.testing.assert_allclose(jax.jit(kernel)(x)[0], expected, rtol=1e-5)


def test_a_kernel_takes_large_constants() -> None:
    table = jnp.linspace(0, 1, 5_000)
    kernel = one_kernel(lambda x, y: x * y + zero((x, y)))
    np.testing.assert_array_equal(jax.jit(lambda x: kernel(x, table))(table), table * table)


def test_computation_is_not_pruned_without_the_function_of_jax(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jaxpr = jax.make_jaxpr(lambda a, b, c, d: a + c)(X, X, X, X)
    pruned, used = contacts._pruned(jaxpr.jaxpr, 1)
    assert used == [True, False, True, False] and len(pruned.invars) == 2
    monkeypatch.delattr("jax.interpreters.partial_eval.dce_jaxpr")
    assert contacts._pruned(jaxpr.jaxpr, 1) == (jaxpr.jaxpr, [True] * 4)
    (record,) = caplog.records
    assert "dce_jaxpr" in record.getMessage()
