"""Memory of controllers."""

from __future__ import annotations

from jax import Array

Memory = dict[str, tuple[Array, ...]]
"""Component arrays of one shape by name."""

RATES = "rates"
"""Name of an attitude controller's desired body rates [rad/s], which nothing depends on."""
