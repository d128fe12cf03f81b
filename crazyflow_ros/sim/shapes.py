"""The shapes of a simulation's data: which axes are worlds and drones, and what may be assigned."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.tree_util import GetAttrKey

from crazyflow_ros.dynamics.obstacles import FIGURE_NDIM
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.leaves import described, layout, path_name
from crazyflow_ros.xla.on_device import on_device

Path = tuple[Any, ...]

OF_ROTORS = ("rpm2thrust", "rpm2torque", "rotor_dyn_coef", "prop_inertia")
"""Parameters whose first axis is that of rotors, or 1 if all rotors are alike."""
_ROTOR_VEL = (GetAttrKey("states"), GetAttrKey("rotor_vel"))
_OF_NUMPY = (np.ndarray, np.generic, bool, int, float)
"""Types that JAX accepts in place of its own arrays."""


class Shapes:
    """Shapes and dtypes of a simulation's initial data."""

    def __init__(self, data: SimData, mixed: bool) -> None:
        """Record the shapes of `data`.

        Args:
            data: Data with parameters that all worlds share.
            mixed: Whether the parameters have an axis of drones.
        """
        core = data.core
        self.sizes = (core.n_worlds, core.n_drones)
        self._freq, self._mixed = core.freq, mixed
        self._first = {
            path: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
            for path, leaf in jax.tree.leaves_with_path(data)
            if not _is_obstacle(path)
        }
        self._checked: set[object] = set()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shapes) and self._kind == other._kind

    def __hash__(self) -> int:
        return hash(self._kind)

    @property
    def _kind(self) -> tuple[object, ...]:
        return self.sizes, self._freq, self._mixed, tuple(self._first.items())

    def lead(self, path: Path, leaf: Array) -> tuple[int, ...]:
        """Return the leading axes of a parameter.

        Raises:
            ValueError: The leading axes are not axes of drones or worlds.
        """
        lead = leaf.shape[: leaf.ndim - self._figure_ndim(path, leaf)]
        pairs = zip(lead[::-1], self.sizes[::-1])
        if len(lead) > 2 or any(n not in (1, size) for n, size in pairs):
            raise ValueError(
                f"{path_name(path)} has the leading axes {lead}, expected (n_drones,) or "
                f"(n_worlds, n_drones) = {self.sizes}, or 1 instead of them"
            )
        return lead

    def checked(self, data: SimData, now: SimData, device: Any = None) -> SimData:
        """Return data that fit this simulation, with arrays of JAX in place of those of NumPy.

        Unlike in the initial data, parameters may have leading axes, and there may be additional
        arrays with axes of worlds and drones. A number stands for an array of size 1.

        Args:
            data: The data. In lazy data, only fields that have been read or replaced are checked.
            now: Valid data, which may share fields with `data`.
            device: Device or sharding of arrays that come from NumPy; None for JAX's default.

        Raises:
            ValueError: Something has another shape or dtype, or is missing; the message names it.
        """
        if not isinstance(data, SimData):
            raise ValueError(f"data must be a SimData, got {data!r}")
        fine, put = now.present, dict[str, Any]()
        for name, field in data.present.items():
            if field is fine.get(name):
                continue
            kinds = set(map(type, jax.tree.leaves(field)))
            if any(issubclass(kind, _OF_NUMPY) for kind in kinds):
                convert = partial(self._on_device, device, GetAttrKey(name))
                field = put[name] = jax.tree.map_with_path(convert, field)
            if (key := (name, layout(field))) not in self._checked:
                self._check_field(GetAttrKey(name), field)
                self._checked.add(key)
        return data.replace(**put) if put else data

    def _on_device(self, device: Any, name: GetAttrKey, path: Path, leaf: Any) -> Any:
        """Return numbers as an array of JAX, and anything else unchanged, to be refused later."""
        first = self._first.get(path := (name, *path))
        is_number = isinstance(leaf, bool | int | float | np.generic)
        if is_number and first is not None:
            shape = first.shape[self._mixed :] if is_param(path) else first.shape
            if shape in ((), (1,)):
                leaf = np.full(shape, leaf)
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind not in "biufc":
            return leaf
        return on_device(leaf, device)

    def _check_field(self, name: GetAttrKey, field: Any) -> None:
        given = {(name, *path): leaf for path, leaf in jax.tree.leaves_with_path(field)}
        for path, first in self._first.items():
            if path[0] == name and path not in given:
                raise ValueError(f"{path_name(path)} must be an array, {described(first)}")
        for path, leaf in given.items():
            self._check_leaf(path, leaf)
        if name.name == "core" and field.freq != self._freq:
            raise ValueError(f"core.freq is {field.freq}, this simulation has {self._freq}")

    def _check_leaf(self, path: Path, leaf: Any) -> None:
        first = self._first.get(path)
        if not isinstance(leaf, Array):
            expected = f", {described(first)}" if first is not None else ""
            raise ValueError(f"{path_name(path)} must be an array{expected}, got {leaf!r}")
        if is_param(path):
            n_lead = len(self.lead(path, leaf))
            if first is not None:
                first = first.update(shape=self._core_shape(path, leaf, first.shape[self._mixed :]))
        else:
            n_lead = 0
            n_worlds, n_drones = self.sizes
            if first is None and leaf.shape[:2] not in ((n_worlds, 1), (n_worlds, n_drones)):
                expected = f"[{n_worlds},{n_drones} or 1,...]"
                raise ValueError(f"{path_name(path)} is {described(leaf)}, expected {expected}")
        if first is not None and (
            leaf.shape[n_lead:] != first.shape or not _same(leaf.dtype, first.dtype)
        ):
            raise ValueError(f"{path_name(path)} is {described(leaf)}, expected {described(first)}")

    def _core_shape(self, path: Path, leaf: Array, first: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a parameter: rotors may have figures of their own."""
        n_rotors = self._first[_ROTOR_VEL].shape[-1]
        of_each = (n_rotors, *first[1:])
        is_of_each = (
            _names(path)[-1] in OF_ROTORS and leaf.shape[leaf.ndim - len(first) :] == of_each
        )
        return of_each if is_of_each else first

    def _figure_ndim(self, path: Path, leaf: Array) -> int:
        """Return the number of axes of a parameter, without leading ones."""
        if _is_obstacle(path):
            return FIGURE_NDIM[_names(path)[-1]]
        first = self._first.get(path)
        return len(first.shape) - self._mixed if first is not None else leaf.ndim


def is_param(path: Path) -> bool:
    """Return whether a leaf is a parameter.

    Worlds and drones share parameters that have no leading axes.
    """
    return "params" in _names(path)


def _is_obstacle(path: Path) -> bool:
    return "obstacles" in _names(path)


def _names(path: Path) -> list[str]:
    return [getattr(key, "name", "") for key in path]


def _same(dtype: Any, expected: Any) -> bool:
    """Return whether JAX converts arrays of one dtype to the other."""
    if dtype == expected:
        return True
    return bool(jax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == expected)
