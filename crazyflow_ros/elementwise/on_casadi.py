"""The functions of `elementwise` for scalar expressions of CasADi."""

from __future__ import annotations

from typing import Any

import casadi as cs
from casadi import atan2 as arctan2
from casadi import cos, exp, sin, sqrt
from casadi import fabs as abs
from casadi import fmax as maximum

__all__ = [
    "abs", "arctan2", "clip", "cos", "exp", "maximum", "ones_like", "sin", "sqrt", "where",
    "zeros_like",
]  # fmt: skip


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition is true, y elsewhere."""
    return cs.if_else(condition, x, y)


def clip(x: Any, least: Any, most: Any) -> Any:
    """Return the nearest number between two limits."""
    return cs.fmin(cs.fmax(x, least), most)


def zeros_like(x: Any) -> Any:
    """Return zero."""
    return type(x)(0)


def ones_like(x: Any) -> Any:
    """Return one."""
    return type(x)(1)
