"""The model `first_principles`."""

from crazyflow_ros.compat.crazyflow.dynamics.core import Dynamics
from crazyflow_ros.compat.crazyflow.dynamics.model import dynamics_of
from crazyflow_ros.compat.crazyflow.dynamics.symbolic import symbolic_of
from crazyflow_ros.dynamics.first_principles import Params

__all__ = ["Params", "dynamics", "symbolic_dynamics"]

dynamics = dynamics_of(Dynamics.first_principles, __name__)
symbolic_dynamics = symbolic_of(Dynamics.first_principles, __name__)
