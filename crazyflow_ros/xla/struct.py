"""Immutable dataclasses that are JAX pytrees."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


def static_field(default: Any = dataclasses.MISSING) -> Any:
    """Return a field that is part of the pytree's structure: not an array, and not traced."""
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static_field, dataclasses.field))
class Struct:
    """Base class whose subclasses become frozen dataclasses, registered with JAX."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # a dataclass since the line above
        static = [f.name for f in fields if f.metadata.get("static")]
        leaves = [f.name for f in fields if f.name not in static]
        jax.tree_util.register_dataclass(cls, data_fields=leaves, meta_fields=static)

    @classmethod
    def lazy(cls, field: Callable[[str], Any]) -> Self:
        """Return an instance whose fields are computed when they are first read.

        Args:
            field: Maps the name of a field to its value.
        """
        new = object.__new__(cls)
        new.__dict__["_field"] = field
        return new

    @property
    def present(self) -> dict[str, Any]:
        """The fields by name; of a lazy instance, only those that have been read or replaced."""
        return {k: v for k, v in vars(self).items() if k in type(self).__dataclass_fields__}  # type: ignore[attr-defined]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        fields = self.__dataclass_fields__  # type: ignore[attr-defined]
        if not changes.keys() <= fields.keys():
            unknown = sorted(changes.keys() - fields.keys())
            raise TypeError(f"{type(self).__name__} has no fields {unknown}")
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    if not TYPE_CHECKING:  # so that type checkers report attributes that are not fields

        def __getattr__(self, name: str) -> Any:
            field = self.__dict__.get("_field")
            if field is None or name not in type(self).__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            return self.__dict__.setdefault(name, field(name))

        def __getstate__(self) -> dict[str, Any]:
            return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def pytree(*static: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of classes whose instances become JAX pytrees of their attributes.

    Args:
        *static: Attributes that are part of the structure, see `static_field`; they can be hashed,
            and their `repr` shows any difference.
    """

    def register(cls: type[T]) -> type[T]:
        def flatten(tree: T) -> tuple[list[Any], tuple[tuple[str, ...], tuple[Any, ...]]]:
            own = vars(tree)
            names = tuple(sorted(own.keys() - set(static)))
            return [own[name] for name in names], (names, tuple(own[name] for name in static))

        def unflatten(structure: tuple[tuple[str, ...], tuple[Any, ...]], leaves: Any) -> T:
            names, fixed = structure
            new = object.__new__(cls)
            vars(new).update(zip(names, leaves), **dict(zip(static, fixed)))
            return new

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)
        return cls

    return register
