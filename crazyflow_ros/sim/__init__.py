"""Batched, differentiable quadrotor simulation in JAX."""

import jax

from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim.compile.programs import Composed
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.integration import Integrator
from crazyflow_ros.sim.sim import Sim

__all__ = ["Composed", "Dynamics", "Integrator", "Sim", "SimData"]

# On a CPU, computing few worlds takes less time than handing the work to another thread.
jax.config.update("jax_cpu_enable_async_dispatch", False)
