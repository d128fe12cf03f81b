"""Control over the kernels that XLA compiles on the CPU.

XLA computes each stored array in a separate kernel, which repeats all computations that the array
depends on: twelve components that need a rotation matrix compute it twelve times. Results of
`apart` are computed once, stored, and read by all users. In addition, the runtime of XLA calls the
kernels one by one, which takes longer than short ones run; `one_kernel` avoids that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from crazyflow_ros.xla.compiler import ONE_KERNEL, has_one_kernel, set_metadata

T = TypeVar("T")

_true: ContextVar[Array | None] = ContextVar("true", default=None)
_in_kernel: ContextVar[bool] = ContextVar("in_kernel", default=False)


@contextmanager
def separate_kernels(true: Array | None) -> Iterator[None]:
    """Enable `apart` within the context, for code that is compiled for the CPU.

    Args:
        true: A scalar that is always true, in a way that the compiler cannot detect; None disables
            `apart`.
    """
    token = _true.set(true)
    try:
        yield
    finally:
        _true.reset(token)


def inlined(fn: Callable[..., T]) -> Callable[..., T]:
    """Return `fn`, which Python runs only once for all calls with arguments of the same shapes.

    It is traced repeatedly: to find what a tick changes, in branches, loops and transformations.
    """

    @partial(jax.jit, inline=True)
    def trace(true: Array | None, *args: Any) -> T:
        with separate_kernels(true):  # as an argument, because the trace outlives the context
            return fn(*args)

    return lambda *args: trace(_true.get(), *args)


def apart(fn: Callable[..., T], *args: Any) -> T:
    """Return `fn(*args)`, with results stored in memory instead of fused into their users.

    Args:
        fn: A function of pytrees of arrays. It should close over no arrays except parameters.
        *args: Its arguments.
    """
    true = _true.get()
    if true is None:
        return fn(*args)

    def alone(*args: Any) -> T:
        with separate_kernels(None):  # this function is a kernel already
            return fn(*args)

    # Fusion stops at a branch; one that is always taken costs nothing.
    jaxpr, shapes = jax.make_jaxpr(alone, return_shape=True)(*args)
    outputs, treedef = jax.tree.flatten(shapes)

    def never(*_: Array) -> list[Array]:
        return [jnp.zeros(x.shape, x.dtype) for x in outputs]

    results = jax.lax.cond(true, jaxpr_as_fun(jaxpr), never, *jax.tree.leaves(args))
    return cast(Any, jax.tree.unflatten(treedef, results))


def one_kernel(fn: Callable[..., T]) -> Callable[..., T]:
    """Return `fn` as a single kernel: XLA on the CPU compiles it as one function, including loops.

    Otherwise, XLA's runtime calls the kernels one by one, and hands them to other threads, which
    takes longer than short kernels run. The function must read all its arguments, see `zero`.
    Within another such kernel, and where XLA does not support it, the result is `fn` itself. Code
    for other devices must not contain such a kernel.
    """
    if not has_one_kernel():
        return fn

    @jax.jit
    def kernel(*args: Any) -> T:
        token = _in_kernel.set(True)
        try:
            with set_metadata(**dict.fromkeys(ONE_KERNEL)):
                return fn(*args)
        finally:
            _in_kernel.reset(token)

    def call(*args: Any) -> T:
        if _in_kernel.get():
            return fn(*args)
        # Behind a barrier, because XLA ends the process where an argument is a large constant.
        args = jax.lax.optimization_barrier(args)
        with set_metadata(**ONE_KERNEL):
            return kernel(*args)

    return call


# Primitives that XLA compiles inline. Others (matrix products, sorting, linear algebra) are calls
# of its runtime, which kernels cannot make.
_NAMES = """
abs acos acosh add add_any and argmax argmin asin asinh atan atan2 atanh bitcast_convert_type
broadcast_in_dim cbrt ceil clamp concatenate cond convert_element_type copy cos cosh cummax
cumsum custom_jvp_call custom_vjp_call div dynamic_slice dynamic_update_slice eq erf erf_inv
erfc exp exp2 expand_dims expm1 floor gather ge gt integer_pow iota is_finite jit le le_to log
log1p logistic lt lt_to max min mul ne neg nextafter not or pad population_count pow random_bits
random_fold_in random_split random_unwrap random_wrap reduce_and reduce_max reduce_min reduce_or
reduce_precision reduce_prod reduce_sum rem remat2 reshape rev round rsqrt scan select_n
shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice split sqrt square
squeeze stack stop_gradient sub tan tanh threefry2x32 tile transpose unstack while xor
"""
_IN_PLACE = frozenset(_NAMES.split())


_GROUP = 8  # items of `where_needed` that are computed together
_LARGEST_REDUCTION = 2048  # numbers; XLA hands more to a library


def fits_one_kernel(jaxpr: Jaxpr) -> bool:
    """Return whether `one_kernel` can compile a computation."""

    def fits(eqn: Any) -> bool:
        name = eqn.primitive.name
        if name.startswith("reduce_") and eqn.invars[0].aval.size > _LARGEST_REDUCTION:
            return False
        inner = (jaxpr for value in eqn.params.values() for jaxpr in _jaxprs(value))
        return name in _IN_PLACE and all(map(fits_one_kernel, inner))

    return all(map(fits, jaxpr.eqns))


def _jaxprs(value: Any) -> list[Jaxpr]:
    if isinstance(value, ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, Jaxpr):
        return [value]
    return [j for v in value for j in _jaxprs(v)] if isinstance(value, tuple | list) else []


def where_needed(fn: Callable[[T], T], needed: Array, tree: T) -> T:
    """Return `fn(tree)` for the items that need it; the others get it, too, or stay as in `tree`.

    On the CPU, it is computed in small groups, most of which need nothing.

    Args:
        fn: A function of items, arrays (n, ...), to other arrays of the same shapes.
        needed: (n,) bool.
        tree: The items.
    """

    def group(args: tuple[Array, T]) -> T:
        needed, tree = args
        return jax.lax.cond(needed.any(), fn, lambda tree: tree, tree)

    n = needed.shape[0]
    size = next(k for k in range(min(_GROUP, n), 0, -1) if n % k == 0)
    if not _in_kernel.get():
        return group((needed, tree))

    def divided(x: Array) -> Array:
        return x.reshape(n // size, size, *x.shape[1:])

    def groups() -> T:
        computed = jax.lax.map(group, jax.tree.map(divided, (needed, tree)))
        return jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), computed)

    return jax.lax.cond(needed.any(), groups, lambda: tree)


def zero(arrays: Any) -> Array:
    """Return the integer 0, computed from all of the arrays in a way that XLA cannot simplify.

    XLA fails if nothing reads an argument of a kernel.
    """

    def first(array: Array) -> Array:
        if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)
        return array.ravel()[0].astype(jnp.int32)

    any_integer = jnp.stack([first(array) for array in jax.tree.leaves(arrays)]).sum()
    return (any_integer & 1) >> 1
