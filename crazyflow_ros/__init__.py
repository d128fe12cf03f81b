"""Quadrotor simulator for ROS 2, and a batched, differentiable one for plain Python.

The names here are also those of `control`, `drones`, `dynamics` and `sim`.
"""

from __future__ import annotations

import sys

if sys.argv[:1] == ["-m"] and __name__ in sys.orig_argv[-len(sys.argv)] and not sys.flags.safe_path:
    # `python -m crazyflow_ros` searches the working folder first: a file `types.py` in it would
    # take the place of Python's own.
    sys.path.append(sys.path.pop(0))

    def _tell(kind: Any, error: BaseException, trace: Any) -> None:
        if not issubclass(kind, KeyboardInterrupt):  # during an import, or wherever nobody waits
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = _tell

from typing import TYPE_CHECKING, Any

from crazyflow_ros.lazy import lazy, moved
from crazyflow_ros.opengl import choose_opengl

if TYPE_CHECKING:
    from crazyflow_ros.control import Control
    from crazyflow_ros.drones import Drone
    from crazyflow_ros.dynamics import Dynamics
    from crazyflow_ros.sim import Sim

    __version__: str
    """Version of the package."""

__all__ = ["Control", "Drone", "Dynamics", "Sim", "__version__"]

choose_opengl()  # before anything imports MuJoCo

moved("crazyflow_ros.demo", "crazyflow_ros.client.figure_eight")

_name = lazy(
    __name__, {"Control": "control", "Drone": "drones", "Dynamics": "dynamics", "Sim": "sim"}
)


def __getattr__(name: str) -> Any:
    """Import public names on first use: the node starts faster without `Sim`."""
    if name == "__version__":
        from crazyflow_ros.resources import package_version

        return package_version()
    return _name(name)


def __dir__() -> list[str]:
    """Return the public names, also those that have not been imported yet."""
    return sorted({*globals(), *__all__})
