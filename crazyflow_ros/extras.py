"""Packages that only some features need: the extras of this package."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

_NEEDED = {
    "casadi": ("casadi", "casadi"),
    "mjx": ("mujoco.mjx", "mujoco-mjx"),
    "record": ("mcap", "mcap"),
    "images": ("PIL", "pillow"),
    "filters": ("re2", "google-re2"),
    "view": ("viser", "viser"),
    "swarm": ("pettingzoo", "pettingzoo"),
    "sb3": ("stable_baselines3", "stable-baselines3"),
    "foxglove": ("foxglove", "foxglove-sdk"),
    "learn": ("optax", "optax"),
    "collada": ("collada", "pycollada"),
    "foundation": ("h5py", "h5py"),
    "onnx": ("onnx", "onnx"),
}
"""The module and the package that each extra provides."""


_OF_WARP = ("Failed to import warp:", "Failed to import mujoco_warp:")
"""What MJX prints when it is imported without warp, its back end for GPUs, which we do not use."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A context for imports of the packages of an extra.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how to install it.
    """
    module, _ = _NEEDED[name]
    try:
        with _without_warp() if name == "mjx" else nullcontext():
            yield
    except ImportError as error:
        if find_spec(module) is not None:  # it is there, and something else is wrong with it
            raise
        raise _missing(name) from error


def require(name: str) -> None:
    """Check that the packages of an extra are there, for a process that imports them.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how to install it.
    """
    if find_spec(_NEEDED[name][0]) is None:
        raise _missing(name)


def _missing(name: str) -> ModuleNotFoundError:
    module, package = _NEEDED[name]
    text = f"the Python package {package} is not installed: pip install 'crazyflow_ros[{name}]'"
    return ModuleNotFoundError(text, name=module)


@contextmanager
def _without_warp() -> Iterator[None]:
    """Leave out what MJX prints about warp, and nothing else."""
    if "mujoco.mjx" in sys.modules:
        yield
        return
    show = builtins.print

    def show_others(*values: Any, **options: Any) -> None:
        if not (values and values[0] in _OF_WARP):
            show(*values, **options)

    builtins.print = show_others
    try:
        yield
    finally:
        builtins.print = show
