"""A pipeline stage of your own: rotors that wear out, which the stage has to remember.

Run it from the root folder of the repository: .venv/bin/python examples/02_pipeline_stage.py
"""

from __future__ import annotations

import jax.numpy as jnp

from crazyflow_ros.sim import Sim, SimData, pipeline


class Wear:
    """Lets rotors turn slower the more turns they have made.

    Args:
        loss: Share of the speed that is lost with a million turns.
    """

    def __init__(self, loss: float) -> None:
        self.loss = loss

    def begin(self, data: SimData) -> SimData:
        """Called when the stage enters the pipeline: adds what it remembers, one row a drone."""
        turns = jnp.zeros_like(data.states.rotor_vel)
        return data.replace(plugins=data.plugins | {"turns": turns})

    def __call__(self, data: SimData) -> SimData:
        """Called in each tick."""
        turns = data.plugins["turns"] + data.states.rotor_vel / 60 / data.core.freq
        actuators = data.controls.actuators * (1 - self.loss * 1e-6 * turns)
        return data.replace(
            controls=data.controls.replace(actuators=actuators),
            plugins=data.plugins | {"turns": turns},
        )


def make_sim() -> Sim:
    """A simulation with the stage between the limits of the motors and the integrator."""
    sim = Sim(control="rotor_vel")
    sim.step_pipeline = pipeline.insert_before(sim.step_pipeline, "integrate", Wear(loss=100.0))
    return sim


def main() -> None:
    """Let the rotors turn for five seconds."""
    sim = make_sim()
    sim.rotor_vel_control(jnp.full((1, 1, 4), 15_000.0))
    for _ in range(5):
        sim.step(sim.freq)
        turns, speed = sim.data.plugins["turns"][0, 0, 0], sim.data.states.rotor_vel[0, 0, 0]
        print(f"{turns:.0f} turns, {speed:.0f} RPM")


if __name__ == "__main__":
    main()
