"""The simulation under Crazyflow's names."""

from crazyflow_ros.compat.crazyflow.sim.sim import Sim
from crazyflow_ros.dynamics import Dynamics

__all__ = ["Dynamics", "Sim"]
