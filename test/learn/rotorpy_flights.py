"""Fly a policy in rotorpy's Crazyflie: python rotorpy_flights.py inputs.npz outputs.npz

Runs in an environment of rotorpy's own, so it imports nothing of ours: the policy is evaluated with
NumPy. The inputs are the arrays of the policy (see `test_transfer.numbers_of`), `body` (N, 17),
`freq` and `steps`.
"""

from __future__ import annotations

import copy
import sys

import numpy as np
from numpy_policy import act
from rotorpy.vehicles.crazyflie_params import quad_params
from rotorpy.vehicles.multirotor import Multirotor

# rotorpy counts its rotors from the front left one, clockwise; ours from the front right one.
TO_ROTORPY = [3, 0, 1, 2]
RPM = 2 * np.pi / 60  # rad/s


def main() -> None:
    """Fly all starts one after the other, and write the distances at the end."""
    inputs = dict(np.load(sys.argv[1]))
    dt, distances = 1 / float(inputs["freq"]), []
    vehicle = Multirotor(copy.deepcopy(quad_params), integrator_kwargs={"method": "RK45"})
    for x in np.asarray(inputs["body"], float):
        state = {
            "x": x[:3],
            "q": x[3:7],
            "v": x[7:10],
            "w": x[10:13],
            "wind": np.zeros(3),
            "rotor_speeds": x[13:][TO_ROTORPY] * RPM,
        }
        action = np.zeros(4)
        for _ in range(int(inputs["steps"])):
            motion = (state["x"], state["q"], state["v"], state["w"])
            action, command = act(inputs, *(np.asarray(m)[None] for m in motion), action[None])
            action, command = action[0], command[0]
            speeds = {"cmd_motor_speeds": command[TO_ROTORPY] * RPM}
            state = vehicle.step(state, speeds, dt)
        distances.append(np.linalg.norm(state["x"]))
    np.savez(sys.argv[2], distances=np.array(distances))


if __name__ == "__main__":
    main()
