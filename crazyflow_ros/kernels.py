"""What XLA on the CPU compiles into which kernels.

It makes each array that has to be stored a kernel of its own, which works out anew all that the
array depends on: twelve components that need a rotation matrix work it out twelve times. What is
computed `apart` is stored once and read by all who need it. And its runtime walks through the
kernels one by one, which takes longer than short ones run; `one_kernel` is a way around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from crazyflow_ros.compiler import ONE_KERNEL, has_one_kernel, set_metadata

T = TypeVar("T")

_true: ContextVar[Array | None] = ContextVar("true", default=None)
_in_kernel: ContextVar[bool] = ContextVar("in_kernel", default=False)


@contextmanager
def separate_kernels(true: Array | None) -> Iterator[None]:
    """Within the context, `apart` has an effect, on the CPU.

    Args:
        true: A scalar that is always true, which the compiler must not be able to find out; with
            None `apart` has no effect.
    """
    token = _true.set(true if jax.default_backend() == "cpu" else None)
    try:
        yield
    finally:
        _true.reset(token)


def separation() -> Array | None:
    """What the innermost `separate_kernels` was given, or None."""
    return _true.get()


def apart(fn: Callable[..., T], *args: Any) -> T:
    """`fn(*args)`, with its results stored in memory instead of fused into what uses them.

    Args:
        fn: A function of pytrees of arrays. It should close over no arrays but parameters.
        *args: Its arguments.
    """
    true = _true.get()
    if true is None:
        return fn(*args)
    # A branch that is always taken is the one border that fusion respects and that costs nothing.
    jaxpr, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
    outputs, treedef = jax.tree.flatten(shapes)

    def never(*_: Array) -> list[Array]:
        return [jnp.zeros(x.shape, x.dtype) for x in outputs]

    results = jax.lax.cond(true, jaxpr_as_fun(jaxpr), never, *jax.tree.leaves(args))
    return cast(Any, jax.tree.unflatten(treedef, results))


def one_kernel(fn: Callable[..., T]) -> Callable[..., T]:
    """`fn` as a single kernel: XLA on the CPU compiles it, loops and all, as one function.

    Otherwise its runtime walks through the kernels one by one, and hands them to other threads,
    which for short ones takes longer than the work. All arguments have to be read, see `zero`. On
    other devices, within another such kernel, and where XLA does not do it, it is just `fn`.
    """
    if jax.default_backend() != "cpu" or not has_one_kernel():
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
        with set_metadata(**ONE_KERNEL):
            return kernel(*args)

    return call


# What XLA compiles in place. Others (matrix products, sorting, linear algebra) are calls of its
# runtime, which a kernel cannot make.
_NAMES = """
abs acos add and asin atan2 broadcast_in_dim ceil clamp concatenate cond convert_element_type
copy cos custom_jvp_call custom_vjp_call div dynamic_slice dynamic_update_slice eq exp
expand_dims floor ge gt integer_pow iota is_finite jit le log lt max min mul ne neg not or pow
reduce_and reduce_max reduce_min reduce_or reduce_sum rem reshape round rsqrt scan select_n sign
sin slice split sqrt square squeeze stack stop_gradient sub tan tanh transpose while xor
"""
_IN_PLACE = frozenset(_NAMES.split())


def fits_one_kernel(jaxpr: Jaxpr) -> bool:
    """Whether `one_kernel` can compile a computation."""
    return all(
        eqn.primitive.name in _IN_PLACE
        and all(fits_one_kernel(inner) for value in eqn.params.values() for inner in _jaxprs(value))
        for eqn in jaxpr.eqns
    )


def _jaxprs(value: Any) -> list[Jaxpr]:
    if isinstance(value, ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, Jaxpr):
        return [value]
    return [j for v in value for j in _jaxprs(v)] if isinstance(value, tuple | list) else []


def zero(arrays: Any) -> Array:
    """The integer 0, worked out from all of the arrays in a way that XLA does not see through.

    XLA fails on arguments of a kernel that nothing reads.
    """

    def first(array: Array) -> Array:
        if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.random.key_data(array)
        return array.ravel()[0].astype(jnp.int32)

    any_integer = jnp.stack([first(array) for array in jax.tree.leaves(arrays)]).sum()
    return (any_integer & 1) >> 1
