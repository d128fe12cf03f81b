"""A dynamics model of your own: first principles, with a drag that grows with the square of speed.

Run it from the root folder of the repository: .venv/bin/python examples/03_dynamics_model.py
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics import BodyDerivative, BodyState, Wrench, first_principles
from crazyflow_ros.dynamics.components import Vec4, add, dot, scale
from crazyflow_ros.sim import Sim


class Params(first_principles.Params):
    """Parameters of the model: those of first principles, and one more."""

    quadratic_drag: Array
    """(1,) N/(m/s)^2."""

    def derivative(self, state: BodyState, command: Vec4, external: Wrench) -> BodyDerivative:
        """Time derivative of the state.

        Args:
            state: State of the drones; each vector is a tuple of arrays, see `components`.
            command: Speeds of the rotors [RPM].
            external: Wrench on the centre of mass, world frame.
        """
        speed = jnp.sqrt(dot(state.vel, state.vel) + 1e-12)  # has a gradient at rest, too
        drag = scale(state.vel, -self.quadratic_drag[..., 0] * speed)
        return super().derivative(
            state, command, external._replace(force=add(external.force, drag))
        )


def make_sim(quadratic_drag: float, **arguments: object) -> Sim:
    """A simulation that follows the model; the arguments are those of `Sim`."""
    sim = Sim(dynamics="first_principles", **arguments)  # type: ignore[arg-type]
    known = sim.data.params
    fields = {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}
    params = Params(**fields, quadratic_drag=jnp.array([quadratic_drag]))
    sim.data = sim.data.replace(params=params)
    sim.build_default_data()  # a reset keeps the model
    return sim


def speed_after_fall(quadratic_drag: float) -> float:
    """Speed [m/s] after a fall of two seconds with the rotors at rest."""
    sim = make_sim(quadratic_drag, control="rotor_vel")
    above = sim.data.states.pos + jnp.array([0.0, 0.0, 100.0])
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=above))
    sim.step(2 * sim.freq)
    return float(np.linalg.norm(sim.data.states.vel[0, 0]))


def main() -> None:
    """Drop a drone without and with the drag."""
    for drag in (0.0, 0.01):
        print(f"{drag} N/(m/s)^2: {speed_after_fall(drag):.2f} m/s after 2 s")


if __name__ == "__main__":
    main()
