"""The functions of `elementwise` for tensors of torch, which differ from `jax.numpy`."""

from __future__ import annotations

from typing import Any

import torch
from torch import abs, arctan2, clip, cos, exp, ones_like, round, sin, sqrt, where, zeros_like

__all__ = [
    "abs", "arctan2", "clip", "constant", "cos", "exp", "maximum", "ones_like", "round",
    "sin", "sqrt", "stack", "where", "zeros_like",
]  # fmt: skip


def constant(values: Any, array: Any) -> Any:
    """Convert a NumPy array to a tensor with the precision and device of `array`."""
    return torch.as_tensor(values, dtype=array.dtype, device=array.device)


def maximum(x: Any, y: Any) -> Any:
    """Return the larger of two numbers; `torch.maximum` takes tensors only."""
    return torch.clip(x, min=y)


def stack(arrays: Any, axis: int) -> Any:
    """Return tensors joined along a new axis."""
    return torch.stack(arrays, dim=axis)
