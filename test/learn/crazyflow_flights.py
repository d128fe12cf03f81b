"""Fly a policy in Crazyflow 0.4.0: python crazyflow_flights.py inputs.npz outputs.npz

Runs in Crazyflow's own environment, so it imports nothing of ours. See rotorpy_flights.py.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np
from crazyflow import Sim
from numpy_policy import act

HEIGHT = np.array([0.0, 0.0, 20.0])  # of the goal above the floor, m


def main() -> None:
    """Fly all starts at the same time, and write the distances at the end."""
    inputs = dict(np.load(sys.argv[1]))
    x = np.asarray(inputs["body"], np.float32)
    drone = str(inputs["drone"])
    sim = Sim(len(x), 1, drone=drone, dynamics="first_principles", control="rotor_vel", freq=500)
    parts = np.split(x[:, None], [3, 7, 10, 13], axis=-1)
    parts[0] = parts[0] + HEIGHT
    names = ("pos", "quat", "vel", "ang_vel", "rotor_vel")
    arrays = {name: jnp.asarray(p, jnp.float32) for name, p in zip(names, parts)}
    sim.data = sim.data.replace(states=sim.data.states.replace(**arrays))
    action, ticks = np.zeros((len(x), 4)), 500 // int(inputs["freq"])
    for _ in range(int(inputs["steps"])):
        s = sim.data.states
        pos, quat, vel, rates = (np.asarray(m)[:, 0] for m in (s.pos, s.quat, s.vel, s.ang_vel))
        action, command = act(inputs, pos - HEIGHT, quat, vel, rates, action)
        sim.rotor_vel_control(np.asarray(command, np.float32)[:, None])
        sim.step(ticks)
    distances = np.linalg.norm(np.asarray(sim.data.states.pos)[:, 0] - HEIGHT, axis=-1)
    np.savez(sys.argv[2], distances=distances)


if __name__ == "__main__":
    main()
