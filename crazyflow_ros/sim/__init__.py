"""Batched, differentiable quadrotor simulation in JAX."""

from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.compile.programs import Composed
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.integration import Integrator
from crazyflow_ros.sim.sim import Sim

__all__ = ["Composed", "Dynamics", "Integrator", "Sim", "SimData"]
