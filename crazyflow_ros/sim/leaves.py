"""Leaves of pytrees: names, shapes, and which of them a function reads or changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax import Array
from jax.extend.core import Jaxpr, Var

T = TypeVar("T")


def described(leaf: Any) -> str:
    """Return dtype and shape of an array, or the repr of anything else."""
    if not hasattr(leaf, "dtype"):
        return repr(leaf)
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def path_name(path: tuple[Any, ...]) -> str:
    """Return the name of a leaf, such as `states.pos`."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def layout(tree: Any) -> tuple[object, ...]:
    """Return structure, shapes and dtypes of a pytree."""
    leaves, treedef = jax.tree.flatten(tree)
    return treedef, tuple((getattr(x, "shape", None), getattr(x, "dtype", None)) for x in leaves)


def check_kept(
    name: str, before: Any, after: Any, allowed: Callable[[Any, Any, Any], bool] | None = None
) -> None:
    """Check that a function kept structure, shapes and dtypes of a pytree.

    Args:
        name: What the message calls the function.
        before: Its argument.
        after: Its result.
        allowed: Says from path, old and new array whether another shape or dtype is fine, too.

    Raises:
        TypeError: It did not; the message names the leaf.
    """
    if layout(before) == layout(after):
        return
    kind = type(before).__name__
    if type(after) is not type(before):
        found = None if after is None else f"a {type(after).__name__}"
        raise TypeError(f"{name} returned {found}, expected {kind}")
    was, now = (dict(jax.tree.leaves_with_path(tree)) for tree in (before, after))
    for path, old in was.items():
        if path not in now:
            raise TypeError(f"{name} returned no {path_name(path)}, expected {described(old)}")
        new = now.pop(path)
        if described(new) != described(old) and not (allowed and allowed(path, old, new)):
            found = f"{path_name(path)} as {described(new)}"
            raise TypeError(f"{name} returned {found}, expected {described(old)}")
    for path in now:
        raise TypeError(f"{name} added {path_name(path)}, which its {kind} did not have")
    if layout(after)[0] != layout(before)[0]:
        raise TypeError(f"{name} changed a field of its {kind} that is no array, such as core.freq")


def traced(fn: Callable[[T], T], tree: T) -> Jaxpr:
    """Trace `fn` as a computation from the leaves of `tree` to those of its result.

    Raises:
        TypeError: The result has another structure, or a leaf has another shape or dtype.
    """
    leaves, treedef = jax.tree.flatten(tree)

    def flat(leaves: list[Array]) -> list[Array]:
        given = jax.tree.unflatten(treedef, leaves)
        result = fn(given)
        check_kept("a stage", given, result)
        return jax.tree.leaves(result)

    return jax.make_jaxpr(flat)(leaves).jaxpr


def changed_leaves(jaxpr: Jaxpr) -> list[bool]:
    """Return for each leaf whether the computation changes it."""
    _, results = _flow(jaxpr)
    return [a is not b for a, b in zip(jaxpr.invars, results)]


def read_leaves(jaxpr: Jaxpr) -> list[bool]:
    """Return for each leaf whether the computation uses it, or returns it as another leaf."""
    used, results = _flow(jaxpr)
    used |= {b for a, b in zip(jaxpr.invars, results) if a is not b and isinstance(b, Var)}
    return [v in used for v in jaxpr.invars]


def inputs_read(jaxpr: Jaxpr) -> list[bool]:
    """Return for each input of any computation whether it uses or returns the input."""
    used, results = _flow(jaxpr)
    used |= {x for x in results if isinstance(x, Var)}
    return [v in used for v in jaxpr.invars]


def _flow(jaxpr: Jaxpr) -> tuple[set[Var], list[Any]]:
    """Return the variables that a computation uses, and the variable that each result is.

    What a called function only passes on is its argument: since JAX 0.11, calls with `inline=True`
    are not inlined before compilation.
    """
    used: set[Var] = set()
    passed_on: dict[Var, Any] = {}

    def origin(v: Any) -> Any:
        return passed_on.get(v, v) if isinstance(v, Var) else v

    for eqn in jaxpr.eqns:
        given = [origin(v) for v in eqn.invars]
        if eqn.primitive.name != "jit":
            used.update(v for v in given if isinstance(v, Var))
            continue
        inner = eqn.params["jaxpr"].jaxpr
        inner_used, results = _flow(inner)
        outer = dict(zip(inner.invars, given))
        used.update(v for k, v in outer.items() if k in inner_used and isinstance(v, Var))
        passed_on |= {
            a: outer[b] for a, b in zip(eqn.outvars, results) if isinstance(b, Var) and b in outer
        }
    return used, [origin(v) for v in jaxpr.outvars]
