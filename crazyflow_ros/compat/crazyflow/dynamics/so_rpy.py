"""The model `so_rpy`."""

from crazyflow_ros.compat.crazyflow.dynamics.core import Dynamics
from crazyflow_ros.compat.crazyflow.dynamics.model import dynamics_euler_of, dynamics_of
from crazyflow_ros.compat.crazyflow.dynamics.symbolic import symbolic_of
from crazyflow_ros.dynamics.so_rpy import Params

__all__ = [
    "Params",
    "dynamics",
    "dynamics_euler",
    "symbolic_dynamics",
    "symbolic_dynamics_euler",
]

dynamics = dynamics_of(Dynamics.so_rpy, __name__)
dynamics_euler = dynamics_euler_of(Dynamics.so_rpy, __name__)
symbolic_dynamics = symbolic_of(Dynamics.so_rpy, __name__)
symbolic_dynamics_euler = symbolic_of(Dynamics.so_rpy, __name__, euler=True)
