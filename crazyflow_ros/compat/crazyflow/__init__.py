"""Crazyflow 0.4's modules under their names, for code written for it.

Rename the import (`from crazyflow_ros.compat.crazyflow.sim import Sim`), or run a script as it is:
`python -m crazyflow_ros.compat.crazyflow SCRIPT`. See docs/guides/crazyflow.md.
"""

from importlib.util import find_spec

from crazyflow_ros.compat.crazyflow.control import Control
from crazyflow_ros.compat.crazyflow.drones import Drone
from crazyflow_ros.compat.crazyflow.dynamics import Dynamics
from crazyflow_ros.compat.crazyflow.sim import Sim

__all__ = ["Control", "Drone", "Dynamics", "Sim"]

__version__ = "0.4.0"

if find_spec("gymnasium") is not None:
    from crazyflow_ros.compat.crazyflow import envs  # noqa: F401  # registers the environments
