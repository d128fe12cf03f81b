"""A force of your own: a fan at the origin that blows drones upwards.

Run it from the root folder of the repository: .venv/bin/python examples/01_force.py
"""

from __future__ import annotations

import jax.numpy as jnp

from crazyflow_ros.dynamics import BodyState, RigidBody, Wrench, floor_contact
from crazyflow_ros.sim import Sim

DRONE = "cf2x_L250"
FORCE, RADIUS = 0.5, 0.6  # N in the middle of the jet, m


def fan(state: BodyState, params: RigidBody) -> Wrench:
    """Force [N] and torque [N m] on the centre of mass, world frame.

    Args:
        state: State of the drones; each vector is a tuple of arrays, one for each axis.
        params: Parameters of the drones.
    """
    del params  # the force depends on the place alone
    x, y, _ = state.pos
    up = FORCE * jnp.exp(-(x * x + y * y) / RADIUS**2)
    zero = jnp.zeros_like(up)
    return Wrench(force=(zero, zero, up), torque=(zero, zero, zero))


def make_sim() -> Sim:
    """Three drones: in the jet, at its edge and beside it."""
    forces = (fan, floor_contact(DRONE, 500))  # with `forces`, name the floor, too
    sim = Sim(n_drones=3, drone=DRONE, control="rotor_vel", forces=forces)
    places = jnp.array([[[0.0, 0.0, 0.02], [0.3, 0.0, 0.02], [2.0, 0.0, 0.02]]])
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=places))
    return sim


def main() -> None:
    """Let the drones rise."""
    sim = make_sim()
    sim.step(sim.freq // 2)
    for place, _, height in sim.data.states.pos[0]:
        print(f"{place:.1f} m beside the fan: {height:.2f} m high after 0.5 s")


if __name__ == "__main__":
    main()
