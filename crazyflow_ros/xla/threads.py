"""Functions of many worlds as one kernel of a GPU, of which each thread computes one world.

XLA compiles each iteration of a loop to several kernels, which read and write the state, and waits
for the condition of the loop in between: on an H200, a tick of 16,384 worlds then takes 30 us. In
one kernel, the numbers of a world stay in registers of its thread from the first tick to the last,
and a tick takes 0.5 us.

The compiler of these kernels, Triton, knows vectors of worlds, but cannot take arrays apart.
Therefore they are evaluated number by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr

from crazyflow_ros.xla.by_number import CannotEvaluate, evaluate, n_operations

WORLDS = 64  # in a group of threads
_MOST_OPERATIONS = 2000  # 1,400 compile for 20 s, twice as many for 85 s


def in_threads(
    fn: Callable[..., tuple[list[Any], list[Any]]],
    own: Sequence[Array],
    shared: Sequence[Array],
    into: Sequence[int | None],
) -> list[Array] | None:
    """Compute `fn` in one kernel on NVIDIA's GPUs; see `blocks.in_threads_or_at_once`.

    Args:
        fn: A function whose result for a world does not depend on the other worlds.
        own: Arrays (rows, worlds, drones).
        shared: Arrays of any shape.
        into: For each result, the array of `own` that it may overwrite, if there is one.

    Returns:
        The results, arrays (rows, worlds, drones); None if `fn` has results that are sums over the
        worlds, or is not plain arithmetic, or is too large.
    """
    world = [(jax.ShapeDtypeStruct((1, a.shape[2]), a.dtype),) * a.shape[0] for a in own]
    jaxpr, (changed, sums) = jax.make_jaxpr(fn, return_shape=True)(world, list(shared))
    results = [
        jax.ShapeDtypeStruct((len(rows), own[0].shape[1], rows[0].shape[1]), rows[0].dtype)
        for rows in changed
    ]
    if sums or any(jnp.issubdtype(x.dtype, jax.dtypes.extended) for x in (*own, *shared)):
        return None
    try:
        if n_operations(jaxpr.jaxpr) > _MOST_OPERATIONS:
            return None
        return kernel(jaxpr, own, shared, results, into)
    except CannotEvaluate:
        return None


def kernel(
    jaxpr: ClosedJaxpr,
    own: Sequence[Array],
    shared: Sequence[Array],
    results: Sequence[jax.ShapeDtypeStruct],
    into: Sequence[int | None],
    interpret: bool = False,
) -> list[Array]:
    """Compute all worlds in one kernel.

    Args:
        jaxpr: Computes one world: from the rows of `own`, each (1, drones), and from `shared`, the
            rows of the results.
        own: Arrays (rows, worlds, drones).
        shared: Arrays of any shape.
        results: Shapes of the results, (rows, worlds, drones).
        into: For each result, the array of `own` that it overwrites, if there is one.
        interpret: Whether JAX computes the kernel, on any device, without Triton.

    Returns:
        The results.
    """
    pallas = import_module("jax.experimental.pallas")
    triton = import_module("jax.experimental.pallas.triton")
    n_worlds, n_own, n_given = own[0].shape[1], len(own), len(own) + len(shared)

    def compute(*refs: Any) -> None:
        world = pallas.program_id(0) * WORLDS + jnp.arange(WORLDS, dtype=jnp.int32)
        exists = world < n_worlds
        read = jnp.minimum(world, n_worlds - 1)
        given = [
            _filled((1, ref.shape[2]), lambda i, ref=ref, row=row: ref[row, read, i[1]])
            for ref in refs[:n_own]
            for row in range(ref.shape[0])
        ]
        given += [_filled(ref.shape, lambda i, ref=ref: ref[i]) for ref in refs[n_own:n_given]]
        rows = iter(evaluate(jaxpr.jaxpr, jaxpr.consts, given))
        for ref in refs[n_given:]:
            for row in range(ref.shape[0]):
                for drone, number in enumerate(next(rows)[0]):
                    numbers = jnp.broadcast_to(number, (WORLDS,))
                    triton.store(ref.at[row, world, drone], numbers, mask=exists)

    call = pallas.pallas_call(
        compute,
        out_shape=list(results),
        grid=(-(-n_worlds // WORLDS),),
        input_output_aliases={i: k for k, i in enumerate(into) if i is not None},
        compiler_params=triton.CompilerParams(num_warps=WORLDS // 32, num_stages=1),
        interpret=interpret,
    )
    return list(call(*own, *shared))


def _filled(shape: tuple[int, ...], number: Callable[..., Any]) -> np.ndarray:
    array = np.empty(shape, object)
    for i in np.ndindex(shape):
        array[i] = number(i)
    return array
