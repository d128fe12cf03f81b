"""The packages that this one needs, and its extras, which only some features need."""

from __future__ import annotations

import builtins
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import Any, NamedTuple


class Extra(NamedTuple):
    """What a feature needs."""

    module: str
    requirements: tuple[str, ...]
    """Packages on PyPI with their versions; the first one brings the module."""


NEEDED = {
    # Between what is tested. Kernels, packing and sensors use more than the public interface of
    # JAX and MJX, of which each minor version may drop a part: crazyflow_ros/xla/compiler.py.
    "jax": "jax>=0.9,<0.11",
    "jaxlib": "jaxlib>=0.9,<0.11",
    "mujoco": "mujoco>=3.17,<3.18",
    "numpy": "numpy>=2,<3",
    "yaml": "pyyaml>=6",
    "scipy": "scipy>=1.11,<2",  # JAX needs it in any case
}
"""Modules without which there is no simulator, and what brings them; setup.py reads it here."""

EXTRAS = {
    # models for predictive controllers
    "casadi": Extra("casadi", ("casadi>=3.6,<4",)),
    # contacts of `Sim`, sensors over its worlds
    "mjx": Extra("mujoco.mjx", ("mujoco-mjx>=3.17,<3.18",)),
    "record": Extra("mcap", ("mcap>=1.2,<2", "mcap-ros2-support>=0.5,<1")),
    "collada": Extra("collada", ("pycollada>=0.7,<1",)),  # meshes of robots
    "meshes": Extra("trimesh", ("trimesh>=4.5,<6",)),  # glTF, and colours of OBJ files
    "xacro": Extra("xacro", ("xacro>=2.1,<3",)),  # robots' descriptions
    "images": Extra("PIL", ("pillow>=10",)),  # compressed pictures
    "filters": Extra("re2", ("google-re2>=1.1,<2",)),  # of simulation_interfaces
    # the page, whose guard stands before the server of this version
    "view": Extra("viser", ("viser==1.1.1",)),
    "film": Extra("av", ("av>=14,<19",)),  # videos of flights
    "foxglove": Extra("foxglove", ("foxglove-sdk>=0.30,<0.31",)),
    "hosts": Extra("zenoh", ("eclipse-zenoh>=1.5,<2",)),  # one time for several simulators
    "learn": Extra("optax", ("optax>=0.2.4,<0.3", "matplotlib", "gymnasium>=1.1")),
    "foundation": Extra("h5py", ("h5py>=3.10,<4",)),  # policies of foundation-policy
    "completion": Extra("shtab", ("shtab>=1.7,<2",)),  # of the command line in a shell
    "onnx": Extra("onnx", ("onnx>=1.16,<2",)),  # policies of ONNX
    "gym": Extra("gymnasium", ("gymnasium>=1.1",)),
    "swarm": Extra("pettingzoo", ("pettingzoo>=1.24", "gymnasium>=1.1")),
    "sb3": Extra("stable_baselines3", ("stable-baselines3>=2.4", "gymnasium>=1.1")),
    "brax": Extra("brax", ("brax>=0.12", "gymnasium>=1.1")),
    "gymnax": Extra("gymnax", ("gymnax>=0.0.9", "gymnasium>=1.1")),
    "rsl_rl": Extra("rsl_rl", ("rsl-rl-lib>=5", "gymnasium>=1.1")),
}
"""The extras of this package, which setup.py reads here."""

LARGE = ("sb3", "brax", "gymnax", "rsl_rl")
"""Extras that `make setup` leaves out: torch alone has 2 GB."""

_OF_WARP = ("Failed to import warp:", "Failed to import mujoco_warp:")
"""What MJX prints when it is imported without warp, its back end for GPUs, which we do not use."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A context for imports of the packages of an extra.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how to install it.
    """
    module = EXTRAS[name].module
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
    found = None
    with suppress(ModuleNotFoundError):  # of the package that the module is in
        found = find_spec(EXTRAS[name].module)
    if found is None:
        raise _missing(name)


def _missing(name: str) -> ModuleNotFoundError:
    module, requirements = EXTRAS[name]
    (package,) = re.findall(r"^[\w-]+", requirements[0])
    install = shlex.join([sys.executable, "-m", "pip", "install", *requirements])
    text = f"the Python package {package} is not installed: {install}"
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
