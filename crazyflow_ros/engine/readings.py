"""What the compiled function reads from the data of a simulation after a step."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.engine.form import GROUPS, POS_LOW
from crazyflow_ros.engine.isolation import HoldableControls
from crazyflow_ros.estimation import beacons
from crazyflow_ros.scene.frames import world_to_body
from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.actuation import Battery


class Readings:
    """The columns of the output, see `form.output_columns`, except those of single stretches.

    Args:
        sim: The simulation.
        cell: The batteries, if there are any.
    """

    def __init__(self, sim: Sim, cell: Battery | None) -> None:
        self._sim, self._cell, self._has_rotors = sim, cell, sim.dynamics.has_rotors

    def columns(self, data: SimData) -> dict[str, Array]:
        """Return the columns (M, k) by name."""
        return {
            **self._motion(data),
            "contact": self._contact(data),  # with the wind, whose drag is not a contact
            POS_LOW: data.plugins[POS_LOW][0],
            **self._battery(data),
            **self._desired(data),
            **self._believed(data),
        }

    def _motion(self, data: SimData) -> dict[str, Array]:
        """Return the columns of state and accelerations."""
        states, rate, controls = data.states, data.states_deriv, data.controls
        assert isinstance(controls, HoldableControls)
        moves = ~controls.held
        acc, ang_acc = (jnp.where(moves & jnp.isfinite(x), x, 0) for x in (rate.acc, rate.ang_acc))
        obeyed, command = controls.armed & self._has_rotors, controls.rotor_vel
        columns = {
            "pos": states.pos,
            "quat": states.quat,
            "vel": states.vel,
            "ang_vel": states.ang_vel,
            "acc": acc,
            "ang_acc": ang_acc,
            "body_vel": world_to_body(states.quat, states.vel),
            "specific_force": world_to_body(states.quat, acc - data.params.gravity_vec),
            "rotor_vel": states.rotor_vel if self._has_rotors else jnp.zeros_like(states.rotor_vel),
            "rotor_command": jnp.where(obeyed & jnp.isfinite(command), command, 0),
        }
        return {name: x[0] for name, x in columns.items()}

    def _contact(self, data: SimData) -> Array:
        assert isinstance(data.controls, HoldableControls)
        wrench = self._sim.contact_wrench(data)
        return jnp.where(~data.controls.held & jnp.isfinite(wrench), wrench, 0)[0]

    def _battery(self, data: SimData) -> dict[str, Array]:
        """Return the columns of the batteries, if there are any."""
        if self._cell is None:
            return {}
        volts, current = self._cell.under_load(data)
        return {
            "battery.voltage": volts[0, :, None],
            "battery.current": current[0, :, None],
            "battery.drawn": data.plugins["battery"][0],
        }

    @staticmethod
    def _desired(data: SimData) -> dict[str, Array]:
        """Return the columns of the desired values, if there is a position controller."""
        controls = data.controls
        position, attitude, mixer = controls.state, controls.attitude, controls.force_torque
        if position is None or attitude is None:
            return {}
        columns = {
            "attitude": attitude.cmd,
            "rates": attitude.memory[RATES],
            "wrench": jnp.zeros_like(attitude.cmd) if mixer is None else mixer.cmd,
            "integral": position.memory.get(INTEGRAL, jnp.zeros_like(attitude.ang_vel_des)),
        }
        return {f"desired.{k}": jnp.where(jnp.isfinite(x), x, 0)[0] for k, x in columns.items()}

    @staticmethod
    def _believed(data: SimData) -> dict[str, Array]:
        """Return the columns of the estimates and of what they heard, if there are estimators."""
        if data.estimate is None:
            return {}
        estimate = data.estimate
        found = {f"believed.{name}": getattr(estimate, name)[0] for name in GROUPS["believed"]}
        if estimate.beacons is not None:
            found["heard"] = estimate.beacons[0][:, beacons.heard(estimate.positioning)]
        return found
