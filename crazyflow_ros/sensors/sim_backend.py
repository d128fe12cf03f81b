"""Sensors in the worlds of a `Sim`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.extras import extra
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.sensors.backend import carriers, motions_in_sim
from crazyflow_ros.sensors.mjx_backend import MjxBackend
from crazyflow_ros.sensors.state_backend import InertialSensor, RigidMotion
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.data import SimData

with extra("mjx"):
    from mujoco import mjx


class SimBackend(MjxBackend):
    """The worlds of a `Sim` at the moment of reading.

    MuJoCo knows only the poses of the drones, so sensors that depend on positions alone are right.
    Gyroscopes, velocimeters and accelerometers of drones are computed from the simulation's own
    state, with the accelerations at the end of the last step. All other sensors are refused. Add
    sensors to `sim.spec`, then call `sim.build_mjx()`.

    Args:
        sim: The simulation.
    """

    contact_forces = False

    def __init__(self, sim: Sim) -> None:
        super().__init__(sim.mj_model, sim.mjx_model, sim.mjx_data)
        self.sim = sim
        self._sensed: mjx.Data | None = None
        self._inertial: dict[int, tuple[int, InertialSensor]] = {}  # with the drone
        self._sense = self._compiled()

    def worlds(self) -> mjx.Data:
        """Return frames and contacts of all worlds."""
        self.sim.sync()
        self.data = self.sim.mjx_data
        return self.data

    def sensordata(self) -> Array:
        """See `Backend`."""
        if self.worlds() is not self._sensed:
            self._sensed = self.data
            self._readings = self._sense(self._mjx_model, self.data, self.sim.data)
        return self._readings

    def motions(self, bodies: np.ndarray) -> tuple[Array, Array, Array]:
        """See `Backend`; all bodies but those of drones stand still."""
        return motions_in_sim(self.sim.data, carriers(self.model, self.sim.n_drones, bodies))

    def check_sensor(self, sensor: int) -> None:
        """Refuse sensors of velocities, accelerations or forces, except inertial ones of drones.

        Raises:
            ValueError: The sensor is one of these.
        """
        for drone in range(self.sim.n_drones):
            body = self.model.body(f"drone:{drone}").id
            if inertial := InertialSensor.of(self.model, sensor, body):
                self._inertial[int(self.model.sensor_adr[sensor])] = drone, inertial
                self._sense, self._sensed = self._compiled(), None
                return
        super().check_sensor(sensor)
        if self.model.sensor_needstage[sensor] != mujoco.mjtStage.mjSTAGE_POS:
            raise ValueError(
                f"sensor {self.model.sensor(sensor).name!r}: a Sim has no velocities and forces in "
                "MuJoCo, take them from sim.data"
            )

    def _compiled(self) -> Callable[[mjx.Model, mjx.Data, SimData], Array]:
        # A new function each time, because JAX reuses the trace of an equal one.
        return jax.jit(lambda *args: self._sensed_by(*args))

    def _sensed_by(self, model: mjx.Model, worlds: mjx.Data, data: SimData) -> Array:
        readings = jax.vmap(mjx.sensor_pos, in_axes=(None, 0))(model, worlds).sensordata
        states, rates = data.states, data.states_deriv
        gravity = jnp.broadcast_to(data.params.gravity_vec, states.vel.shape)
        fields = (states.vel, states.ang_vel, rates.acc, rates.ang_acc, gravity)
        for start, (drone, sensor) in self._inertial.items():
            own = (field[:, drone] for field in fields)
            motion = RigidMotion(rotation_matrix(states.quat[:, drone]), *own)
            reading = sensor.read(motion)
            readings = readings.at[:, start : start + 3].set(reading.astype(readings.dtype))
        return readings
