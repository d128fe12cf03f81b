"""Ticks as functions of arrays (rows, worlds, drones), see `blocks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt, prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.sim.compile.blocks import leaf_of, rows_of
from crazyflow_ros.sim.compile.packing import Packing
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.functional import stored_command
from crazyflow_ros.sim.leaves import changed_leaves, read_leaves, traced
from crazyflow_ros.sim.stages import Stage

_LONGEST = 256  # ticks whose states a derivative stores

_rows_of = jax.jit(rows_of)

Ending = Callable[[SimData, SimData], SimData]
"""A function that runs after all ticks, from the data before and after them to the final data."""


class Packed(NamedTuple):
    """The arrays that hold the data."""

    moving: list[Array]
    """(rows, worlds, drones): what changes in each world."""
    fixed: list[Array]
    """(rows, worlds, drones): what is only read."""
    shared: list[Array]
    """Arrays that are only read and that all worlds share."""
    common: list[Array]
    """Arrays that change and that all worlds share."""


class Ticks:
    """Any number of ticks of data of one layout.

    Row by row, they are functions of a list of arguments: those of `Packed`, one after the other,
    with tuples of rows in place of the arrays (rows, worlds, drones).

    Attributes:
        moving: The leaves in each array that changes, by their index.
        fixed: The leaves in each array that is only read.
        common: The leaves that change and that all worlds share, such as the random key. If there
            are any, a tick needs all worlds at once.
        state: Places of the arguments that a tick changes.
        n_own: Number of arguments of which each world has its own part.
        n_arguments: Number of arguments.
        read: Places of the arguments of which each world has its own part and whose values before
            the ticks matter. If there are none, all places, because a call needs an argument.
        changed: The leaves that ticks or commands change.
        used: For each leaf, whether it is in the arrays: it changes, is read, or is the command.
    """

    def __init__(
        self,
        tick: Stage,
        last: Ending | None,
        data: SimData,
        owned: list[bool],
        together: bool,
        apart: Sequence[Sequence[str]] = (),
    ) -> None:
        """Lay out `data`.

        Args:
            tick: Advances the data by one tick.
            last: What comes after all ticks, if anything.
            data: Gives structure, shapes and dtypes.
            owned: For each leaf, whether its first axis is that of the worlds.
            together: Put leaves of one dtype into one array, because each array costs time in each
                call of a compiled function. Within a compiled function, separate arrays save the
                assembly.
            apart: Plugins that share no array with other leaves, in groups that may share one.
        """
        leaves, self._treedef = jax.tree.flatten(data)
        self._shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        self._tick, self._last, self._owned = tick, last, owned
        jaxpr = traced(tick, data)
        in_tick, in_last = changed_leaves(jaxpr), [False] * len(leaves)
        if last:
            in_last = changed_leaves(traced(lambda after: last(data, after), data))
            jaxpr = traced(lambda data: last(data, tick(data)), data)
        moves = [a or b for a, b in zip(in_tick, in_last)]
        reads = read_leaves(jaxpr)
        stored = stored_command(data)
        command = next(i for i, leaf in enumerate(leaves) if leaf is stored)
        single = {command: -1} | {
            i: k
            for k, group in enumerate(apart)
            for name in group
            for i in plugin_leaves(data, name)
        }
        self.changed = [i for i, moving in enumerate(moves) if moving or i in single]
        self.used = [a or b or i in single for i, (a, b) in enumerate(zip(moves, reads))]

        def grouped(places: list[int]) -> list[list[int]]:
            groups: dict[object, list[int]] = {}
            for i in places:
                kind = (self._shapes[i].dtype, self._shapes[i].shape[1], single.get(i))
                groups.setdefault(kind if together else i, []).append(i)
            return list(groups.values())

        own = [i for i, used in enumerate(self.used) if used and owned[i]]
        shared = [i for i, used in enumerate(self.used) if used and not owned[i]]
        self.moving = grouped([i for i in own if in_tick[i]])
        n_in_tick = len(self.moving)
        self.moving += grouped([i for i in own if moves[i] and not in_tick[i]])
        self.fixed = grouped([i for i in own if not moves[i]])
        self.n_own = len(self.moving) + len(self.fixed)
        self.common = [i for i in shared if moves[i]]
        self._shared = [i for i in shared if not moves[i]]
        self._packing = Packing([self._shapes[i] for i in self._shared]) if together else None
        n_shared = len(self._packing.dtypes) if self._packing else len(self._shared)
        self.n_arguments = self.n_own + n_shared + len(self.common)
        self.state = [*range(n_in_tick), *range(self.n_own + n_shared, self.n_arguments)]
        n_moving, own_groups = len(self.moving), [*self.moving, *self.fixed]
        self._finished = [
            *(k for k, group in enumerate(self.moving) if any(in_last[i] for i in group)),
            *(self.n_own + n_shared + k for k, i in enumerate(self.common) if in_last[i]),
        ]
        # Part of `Packed` and index of each leaf.
        self._places = {
            i: (int(k >= n_moving), k - n_moving * (k >= n_moving))
            for k, group in enumerate(own_groups)
            for i in group
        }
        self._command = command
        read = [k for k, group in enumerate(own_groups) if any(reads[i] for i in group)]
        self.read = read or [*range(self.n_own)]

    @property
    def _groups(self) -> tuple[list[list[int]], list[list[int]]]:
        return self.moving, self.fixed

    def pack(self, data: SimData) -> Packed:
        """Return the arrays that hold the data."""
        leaves = jax.tree.leaves(data)
        moving, fixed = (
            [jnp.concatenate([rows_of(leaves[i]) for i in group]) for group in groups]
            for groups in self._groups
        )
        shared = [leaves[i] for i in self._shared]
        if self._packing:
            shared = list(self._packing.pack(shared))
        return Packed(moving, fixed, shared, [leaves[i] for i in self.common])

    def whole(self, packed: Packed) -> SimData:
        """Return the data. Leaves that nothing reads are zero."""
        return self._data([*packed.moving, *packed.fixed, *packed.shared, *packed.common])

    def unpack(self, packed: Packed) -> dict[int, Array]:
        """Return the leaves that ticks or commands change, by their index."""
        leaves = dict(zip(self.common, packed.common))
        for groups, arrays in zip(self._groups, packed):
            for group, array in zip(groups, arrays):
                for i, rows in self.rows_of_each(group):
                    if i in self.changed:
                        leaves[i] = leaf_of(array[rows], self._shapes[i].shape)
        return leaves

    def rows_of_each(self, group: list[int]) -> list[tuple[int, slice]]:
        """Return for each leaf its rows in the array of a group."""
        slices, start = [], 0
        for i in group:
            end = start + prod(self._shapes[i].shape[2:])
            slices.append((i, slice(start, end)))
            start = end
        return slices

    def shapes(self, n_worlds: int) -> list[jax.ShapeDtypeStruct]:
        """Return shapes and dtypes of the arguments, as arrays, for a number of worlds."""
        own = [
            jax.ShapeDtypeStruct(
                (self.rows_of_each(group)[-1][1].stop, n_worlds, self._shapes[group[0]].shape[1]),
                self._shapes[group[0]].dtype,
            )
            for group in [*self.moving, *self.fixed]
        ]
        shared = [self._shapes[i] for i in self._shared]
        if self._packing:
            shared = self._packing.shapes
        return [*own, *shared, *(self._shapes[i] for i in self.common)]

    def array_of(self, packed: Packed, leaf: int | None) -> Any:
        """Return the array that holds a leaf which is alone in it, by default the command."""
        part, place = self._places[self._command if leaf is None else leaf]
        return packed[part][place]

    def commanded(
        self, packed: Packed, value: Array | np.ndarray, leaf: int | None = None
    ) -> Packed:
        """Return the data with a new command, or another new leaf, (worlds, drones, k)."""
        # With NumPy, because a compiled call takes longer than a step of few worlds.
        is_numpy = isinstance(value, np.ndarray)
        rows: Any = np.ascontiguousarray(value.transpose(2, 0, 1)) if is_numpy else _rows_of(value)
        part, place = self._places[self._command if leaf is None else leaf]
        own = packed.moving, packed.fixed
        arrays = list(own[part])
        arrays[place] = rows
        changed = (own[0], arrays) if part else (arrays, own[1])
        return Packed(*changed, packed.shared, packed.common)

    def flown(self, args: Sequence[Any], n_ticks: Array | int) -> list[Any]:
        """Return the arguments after `n_ticks` ticks.

        If `n_ticks` is an int, the result can be differentiated in reverse mode. That stores the
        states at all ticks or, if there are many, at some of them, and computes the ticks in
        between again.
        """

        def tick(_: Array, state: list[Any]) -> list[Any]:
            after = self.tick(replaced(args, self.state, state))
            return [after[i] for i in self.state]

        def loop(n: Array | int, body: Callable[..., list[Any]], state: list[Any]) -> list[Any]:
            if isinstance(n, int):
                if n == 1:  # its derivative need not compute it again
                    return body(jnp.int32(0), state)
                body = jax.checkpoint(body, prevent_cse=False)  # there is nothing to prevent
            return jax.lax.fori_loop(0, n, body, state)

        state = [args[i] for i in self.state]
        if isinstance(n_ticks, int) and n_ticks > _LONGEST:
            size = isqrt(n_ticks)
            state = loop(n_ticks // size, lambda _, state: loop(size, tick, state), state)
            n_ticks %= size
        return self.last(args, replaced(args, self.state, loop(n_ticks, tick, state)))

    def tick(self, args: Sequence[Any]) -> list[Any]:
        """Return the arguments after a tick."""
        return self._after(self._tick, args, self.state)

    def last(self, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        """Return the arguments after the function that follows all ticks.

        Args:
            before: The arguments before all ticks.
            after: The arguments after them.
        """
        if self._last is None:
            return list(after)
        ending = partial(self._last, self._data(before, True))
        return self._after(ending, after, self._finished, True)

    def _after(
        self, stage: Stage, args: Sequence[Any], places: list[int], whole: bool = False
    ) -> list[Any]:
        """Return the arguments, with those at `places` as a stage leaves them."""
        leaves = jax.tree.leaves(stage(self._data(args, whole)))

        def value(place: int) -> Any:
            if place >= self.n_own:
                return leaves[self.common[place - self.n_arguments]]
            parts = (leaves[i] for i in self.moving[place])
            return tuple(row for x in parts for row in split(x.reshape(*x.shape[:2], -1)))

        return replaced(args, places, [value(i) for i in places])

    def _data(self, args: Sequence[Any], whole: bool = False) -> SimData:
        """Return the data. Leaves that nothing reads are zero.

        Args:
            args: The arguments, with arrays (rows, worlds, drones) or tuples of their rows.
            whole: Whether to join rows such that operations on whole leaves vectorise; otherwise,
                operations on components do.
        """
        n_worlds = args[0][0].shape[0]
        n_common = len(self.common)
        shared = args[self.n_own : self.n_arguments - n_common]
        values = self._packing.unpack(tuple(shared)) if self._packing else shared
        leaves: dict[int, Any] = dict(zip(self._shared, values))
        leaves |= zip(self.common, args[self.n_arguments - n_common :])
        for group, array in zip([*self.moving, *self.fixed], args):
            for i, rows in self.rows_of_each(group):
                part, shape = array[rows], self._shapes[i].shape
                if isinstance(part, tuple) and not whole:
                    leaves[i] = stack(part).reshape(-1, *shape[1:])
                else:
                    leaves[i] = leaf_of(jnp.stack(part), shape)
        for i, (x, own) in enumerate(zip(self._shapes, self._owned)):
            if i not in leaves:
                leaves[i] = jnp.zeros((n_worlds, *x.shape[1:]) if own else x.shape, x.dtype)
        data: SimData = jax.tree.unflatten(self._treedef, [leaves[i] for i in range(len(leaves))])
        return data.replace(core=data.core.replace(n_worlds=n_worlds))


def plugin_leaves(data: SimData, name: str) -> list[int]:
    """Return the index of the leaf of a plugin, if there is such a plugin."""
    paths = enumerate(path for path, _ in jax.tree.leaves_with_path(data))
    return [i for i, path in paths if path[0].name == "plugins" and path[1].key == name]


def replaced(args: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return the arguments with other values at some places."""
    args = list(args)
    for i, value in zip(places, values, strict=True):
        args[i] = value
    return args
