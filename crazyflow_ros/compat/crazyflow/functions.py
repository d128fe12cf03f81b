"""Functions of this package with the signatures that Crazyflow's functions have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

from crazyflow_ros.compat.crazyflow.utils import MATRICES


def with_parameters(
    function: Callable[..., Any], module: str, names: Sequence[str], **fixed: Any
) -> Callable[..., Any]:
    """Return a function whose parameters of a drone are keyword-only arguments by name.

    Args:
        function: A function of `compat.control` or `compat.dynamics`.
        module: Name of the module that it belongs to.
        names: Names of its parameters.
        **fixed: Arguments that Crazyflow's function does not have.
    """

    @wraps(function)
    def wrapped(*args: Any, **given: Any) -> Any:
        arguments = signature(wrapped).bind(*args, **given).arguments
        params = {name: figure(name, arguments.pop(name)) for name in names}
        return function(**arguments, **params, **fixed)

    known = signature(function).parameters.values()
    inputs = [p for p in known if p.kind != p.VAR_KEYWORD and p.name not in fixed]
    only = [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
    wrapped.__signature__ = signature(function).replace(parameters=[*inputs, *only])  # type: ignore[attr-defined]
    wrapped.__module__ = module
    return wrapped


def figure(name: str, value: Any) -> Any:
    """Return a parameter with all of its own axes, of which Crazyflow omits those of size 1."""
    value = np.asarray(value) if isinstance(value, int | float) else value
    while value.ndim < (2 if name in MATRICES else 1):
        value = value[None]
    return value
