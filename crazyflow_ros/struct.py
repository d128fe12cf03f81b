"""Immutable dataclasses that are JAX pytrees."""

from __future__ import annotations

import dataclasses
from typing import Any, Self, dataclass_transform

import jax


def static_field() -> Any:
    """A field that belongs to the structure of the pytree: not an array, and not traced."""
    return dataclasses.field(metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static_field, dataclasses.field))
class Struct:
    """Base class: subclasses become frozen dataclasses, registered with JAX."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # made one in the line above
        static = [f.name for f in fields if f.metadata.get("static")]
        leaves = [f.name for f in fields if f.name not in static]
        jax.tree_util.register_dataclass(cls, data_fields=leaves, meta_fields=static)

    def replace(self, **changes: Any) -> Self:
        """Copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]
