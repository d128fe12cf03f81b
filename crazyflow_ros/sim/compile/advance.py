"""Ticks and their derivatives as primitives of JAX, computed in blocks.

JAX alone would differentiate the whole computation, and store for each tick what its derivative
needs. Here, the derivative of a block of worlds is another function of that block, which computes
the ticks again: its intermediate results fit into the cache, and the next block overwrites them.
`jax.custom_vjp` would suffice for `jax.grad`, but forbids forward mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters.partial_eval import dce_jaxpr

from crazyflow_ros.sim.compile.blocks import (
    Results,
    Rows,
    at_once,
    in_blocks,
    in_threads_or_at_once,
)
from crazyflow_ros.sim.compile.ticks import Packed, Ticks, replaced
from crazyflow_ros.sim.worlds import Worlds

Args = Sequence[Any]
Run = Callable[..., Results]  # a function of `blocks`

RUNS: dict[str | None, Run] = {"cpu": in_blocks, "cuda": in_threads_or_at_once, None: at_once}
"""How to compute blocks, by the platform of the compiled code; None stands for other platforms."""


def advance(ticks: Ticks, packed: Packed, n_ticks: Array | int, worlds: Worlds) -> Packed:
    """Return the data after `n_ticks` ticks.

    Args:
        ticks: Layout of the data. Compiled code is kept for this object.
        packed: Data before.
        n_ticks: Number of ticks; an int if this is to be differentiated in reverse mode.
        worlds: The worlds and their devices.
    """
    moving, fixed, shared, common = packed
    if common:  # all worlds at once
        n_moving = len(moving)

        def fly(own: list[Rows], shared: list[Array]) -> Results:
            args = ticks.flown([*own, *shared], n_ticks)
            return args[:n_moving], args[-len(common) :]

        moving, common = at_once(fly, [*moving, *fixed], [*shared, *common])
        return packed._replace(moving=moving, common=common)
    known = n_ticks if isinstance(n_ticks, int) else None
    # A traced number may be zero; then all leaves have to keep their values.
    own = range(ticks.n_own) if known is None else ticks.read
    call = _Call(ticks, known, (*own, *range(ticks.n_own, ticks.n_arguments + 1)))
    arrays, count = [*moving, *fixed], jnp.asarray(n_ticks, jnp.int32)
    run = worlds.on_each_device(lambda own, shared: _FLY.of(call, *own, *shared))
    return packed._replace(moving=run([arrays[i] for i in own], [*shared, count]))


class _Call(NamedTuple):
    """Ticks as a function of arguments: those of `Ticks`, and the number of ticks.

    Derivatives are with respect to the arguments `which`.
    """

    ticks: Ticks
    n_ticks: int | None
    """Number of ticks; None if it is traced."""
    needed: tuple[int, ...]
    """Places of the arguments that the caller passes; the values of the others do not matter."""
    which: tuple[int, ...] = ()

    def is_own(self, i: int) -> bool:
        """Return whether each world has its own part of an argument."""
        return i < self.ticks.n_own

    @property
    def moving(self) -> range:
        """The arguments that change."""
        return range(len(self.ticks.moving))

    @property
    def results(self) -> list[int]:
        """The arguments that change and are real numbers."""
        shapes = self.ticks.shapes(1)
        return [i for i in self.moving if jnp.issubdtype(shapes[i].dtype, jnp.floating)]

    def arguments(self, values: Mapping[int, Any], like: Rows) -> list[Any]:
        """Return all arguments of `Ticks.flown`, with zeros for those that have no value.

        Args:
            values: Values by place, in rows.
            like: Rows of any argument of which each world has its own part.
        """
        shapes = self.ticks.shapes(like[0].shape[0])

        def zeros(i: int) -> Any:
            array = jnp.zeros(shapes[i].shape, shapes[i].dtype)
            return tuple(array) if self.is_own(i) else array

        return [values[i] if i in values else zeros(i) for i in range(len(shapes))]


def _fly(call: _Call, run: Run, *args: Array) -> list[Array]:
    """Return the arguments that change, after the ticks."""
    needed, moving = call.needed, call.moving
    n_own = sum(map(call.is_own, needed))

    def fn(own: list[Rows], shared: list[Array]) -> Results:
        # As an argument, the number may change without recompilation. Outside a kernel, JAX may
        # have to differentiate this, which requires a known number.
        known = call.n_ticks if call.n_ticks == 1 or run is at_once else None
        n_ticks = shared[-1] if known is None else known
        before = call.arguments(dict(zip(needed, [*own, *shared])), own[0])
        return call.ticks.flown(before, n_ticks)[: len(moving)], []

    into = [needed.index(i) if i in needed else None for i in moving]
    return run(fn, args[:n_own], args[n_own:], into)[0]


def _derivative(
    call: _Call,
    run: Run,
    args: Sequence[Array],
    given: Sequence[int],
    wanted: Sequence[int],
    derive: Callable[[Callable[..., list[Any]], list[Any], list[Any]], list[Any]],
) -> list[Array]:
    """Return a derivative of the results with respect to `call.which`.

    Args:
        call: The ticks.
        run: `in_blocks` or `at_once`.
        args: Primals, and tangents or cotangents.
        given: Primals that the tangents or cotangents belong to.
        wanted: Primals that the derivatives belong to.
        derive: Returns the derivatives, given the results as a function of `call.which`, values of
            `call.which`, and tangents or cotangents.
    """
    n_primals, results = len(call.needed), call.results
    is_own = [call.is_own(i) for i in (*call.needed, *given)]
    own, shared = ([k for k, mine in enumerate(is_own) if mine is flag] for flag in (True, False))

    def fn(own_values: list[Rows], shared_values: list[Array]) -> Results:
        values: dict[int, Any] = dict(zip(own, own_values)) | dict(zip(shared, shared_values))
        primals = {i: values[k] for k, i in enumerate(call.needed)}
        extra = [values[n_primals + k] for k in range(len(given))]
        before = call.arguments(primals, own_values[0])
        n_ticks = primals[call.ticks.n_arguments] if call.n_ticks is None else call.n_ticks

        def of(*which: Any) -> list[Any]:
            after = call.ticks.flown(replaced(before, call.which, which), n_ticks)
            return [after[i] for i in results]

        derived = derive(of, [before[i] for i in call.which], extra)
        parts: Results = ([], [])
        for i, x in zip(wanted, derived, strict=True):
            parts[not call.is_own(i)].append(x)
        return parts

    at = {i: own.index(n_primals + k) for k, i in enumerate(given) if call.is_own(i)}
    into = [at.get(i) for i in wanted if call.is_own(i)]
    changed, sums = run(fn, [args[k] for k in own], [args[k] for k in shared], into)
    return [(changed if call.is_own(i) else sums).pop(0) for i in wanted]


def _push(call: _Call, run: Run, *args: Array) -> list[Array]:
    """Return the tangents of the results, from primals and the tangents of `call.which`."""

    def derive(of: Callable[..., list[Any]], which: list[Any], tangents: list[Any]) -> list[Any]:
        return jax.jvp(of, tuple(which), tuple(tangents))[1]

    return _derivative(call, run, args, call.which, call.results, derive)


def _pull(call: _Call, run: Run, *args: Array) -> list[Array]:
    """Return the cotangents of `call.which`, from primals and the cotangents of the results."""
    if call.n_ticks is None:
        raise TypeError(
            "the gradient of a step needs a number of ticks that is known when it is traced: an "
            "int, not an array"
        )

    def derive(of: Callable[..., list[Any]], which: list[Any], cotangents: list[Any]) -> list[Any]:
        return list(jax.vjp(of, *which)[1](cotangents))

    return _derivative(call, run, args, call.results, call.which, derive)


class _Primitive(Primitive):
    """A computation of arguments, with the parameter `call`."""

    multiple_results = True

    def __init__(
        self,
        compute: Callable[..., list[Array]],
        given: Callable[[_Call], Sequence[int]],
        wanted: Callable[[_Call], Sequence[int]],
    ) -> None:
        """Define the primitive.

        Args:
            compute: Function of `call`, of a function of `blocks`, and of arguments.
            given: Primals that the arguments after them belong to.
            wanted: Primals that the results belong to.
        """
        super().__init__(f"ticks{compute.__name__}")
        self._compute, self._given, self._wanted = compute, given, wanted

        @lru_cache(maxsize=64)
        def compiled(call: _Call) -> Callable[..., list[Array]]:
            return jax.jit(partial(self.of, call))

        define: Any = self  # JAX has no types for what follows
        define.def_impl(lambda *args, call: compiled(call)(*args))
        define.def_abstract_eval(self._shapes)
        for platform in RUNS:
            lowered = mlir.lower_fun(partial(self._computed_on, platform))
            mlir.register_lowering(self, lowered, platform=platform)
        batching.primitive_batchers[self] = self._batched
        ad.primitive_jvps[self] = self._differentiated

    def _computed_on(self, platform: str | None, *args: Array, call: _Call) -> list[Array]:
        return self._compute(call, RUNS[platform], *args)

    def _shapes(self, *args: Any, call: _Call) -> list[Any]:
        """Return the abstract values of the results."""
        given = dict(zip((*call.needed, *self._given(call)), args))
        own = next(x for i, x in given.items() if call.is_own(i))
        shapes = call.ticks.shapes(own.shape[1])

        def value(i: int) -> Any:
            if not call.is_own(i):
                return given[i]
            return own.update(shape=shapes[i].shape, dtype=shapes[i].dtype, weak_type=False)

        return [value(i) for i in self._wanted(call)]

    def of(self, call: _Call, *args: Array) -> list[Array]:
        """Return the results."""
        bind: Any = self.bind
        results: list[Array] = bind(*args, call=call)
        return results

    def _batched(
        self, args: Args, axes: Sequence[int | None], *, call: _Call
    ) -> tuple[list[Array], list[int]]:
        """Compute a batch as additional worlds."""
        own = [call.is_own(i) for i in (*call.needed, *self._given(call))]
        size = next(a.shape[axis] for a, axis in zip(args, axes) if axis is not None)
        shared_differ = any(axis is not None and not mine for axis, mine in zip(axes, own))
        if shared_differ or not all(map(call.is_own, self._wanted(call))):
            plain = partial(self._compute, call, at_once)
            results = jax.vmap(plain, axes, axis_size=size)(*args)
            return results, [0] * len(results)

        def merged(array: Array, axis: int | None) -> Array:
            if axis is None:
                array, axis = jnp.broadcast_to(array, (size, *array.shape)), 0
            array = jnp.moveaxis(array, axis, 1)
            return array.reshape(array.shape[0], -1, array.shape[3])

        many = [merged(a, axis) if mine else a for a, axis, mine in zip(args, axes, own)]
        results = [a.reshape(a.shape[0], size, -1, a.shape[2]) for a in self.of(call, *many)]
        return results, [1] * len(results)

    def _differentiated(
        self, primals: Args, tangents: Args, *, call: _Call
    ) -> tuple[list[Array], list[Array]]:
        """Differentiate plain operations, for second derivatives."""
        moved = tuple(ad.instantiate_zeros(t) for t in tangents)
        return jax.jvp(partial(self._compute, call, at_once), tuple(primals), moved)


_FLY = _Primitive(_fly, lambda _: (), lambda call: call.moving)
_PUSH = _Primitive(_push, lambda call: call.which, lambda call: call.results)
_PULL = _Primitive(_pull, lambda call: call.results, lambda call: call.which)


@lru_cache(maxsize=64)
def _pushing(fly: _Call, which: tuple[int, ...]) -> _Call:
    """Return the call for the derivative of `fly` with respect to some arguments.

    It needs few of the arguments, and JAX stores only these for the backward pass.
    """
    call = fly._replace(which=which)
    if call.n_ticks is None:
        return call
    shapes = [*call.ticks.shapes(1), jax.ShapeDtypeStruct((), jnp.int32)]
    args = [shapes[i] for i in (*call.needed, *which)]
    jaxpr = jax.make_jaxpr(partial(_push, call, at_once))(*args).jaxpr
    _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    needed = [i for i, is_used in zip(call.needed, used) if is_used or not call.is_own(i)]
    return call._replace(needed=tuple(needed)) if call.is_own(needed[0]) else call


def _pushed_fly(primals: Args, tangents: Args, *, call: _Call) -> tuple[list[Array], list[Any]]:
    results = _FLY.of(call, *primals)
    moved: list[Any] = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    given = dict(zip(call.needed, primals))
    changes = {
        i: t
        for i, t in zip(call.needed, tangents)
        if type(t) is not ad.Zero and jnp.issubdtype(given[i].dtype, jnp.floating)
    }
    if changes:
        push = _pushing(call, tuple(changes))
        pushed = _PUSH.of(push, *(given[i] for i in push.needed), *changes.values())
        for i, change in zip(call.results, pushed):
            moved[i] = change
    return results, moved


def _transposed_push(cotangents: Args, *args: Any, call: _Call) -> list[Any]:
    n_primals = len(call.needed)
    primals, tangents = args[:n_primals], args[n_primals:]
    pulled = _PULL.of(call, *primals, *(ad.instantiate_zeros(c) for c in cotangents))
    wanted = [ad.is_undefined_primal(t) for t in tangents]
    return [None] * n_primals + [x if want else None for x, want in zip(pulled, wanted)]


ad.primitive_jvps[_FLY] = _pushed_fly
ad.primitive_transposes[_PUSH] = _transposed_push
