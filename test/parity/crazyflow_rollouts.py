"""Fly the cases of a file in Crazyflow.

    python crazyflow_rollouts.py inputs.npz outputs.npz folder_of_compiled_code

Runs in Crazyflow's own environment, so it imports nothing of ours. The inputs hold for each case
`<name>/config` (JSON: drone, dynamics, integrator, control, rates, n_worlds, n_drones, ticks,
reset_before) and the arrays `<name>/<field of SimState>`, `<name>/commands` (one for each entry of
ticks) and `<name>/reset_mask`. The outputs hold the states after each entry of ticks, stacked.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["JAX_ENABLE_X64"] = "1"

import jax
import numpy as np
from crazyflow import Sim

INPUTS = ("pos", "quat", "vel", "ang_vel", "rotor_vel", "force", "torque")
OUTPUTS = ("pos", "quat", "vel", "ang_vel", "rotor_vel")


def fly(config: dict, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states of one case after each of its commands."""
    sim = Sim(
        n_worlds=config["n_worlds"],
        n_drones=config["n_drones"],
        drone=config["drone"],
        dynamics=config["dynamics"],
        control=config["control"],
        integrator=config["integrator"],
        **config["rates"],
    )
    # On the device from the start: arrays that are not would have everything compiled again.
    arrays = jax.device_put(arrays, sim.device)
    states = sim.data.states.replace(**{name: arrays[name] for name in INPUTS})
    sim.data = sim.data.replace(states=states)
    history: dict[str, list[np.ndarray]] = {name: [] for name in OUTPUTS}
    for i, (command, ticks) in enumerate(zip(arrays["commands"], config["ticks"])):
        if i == config["reset_before"]:
            sim.reset(arrays["reset_mask"])
        getattr(sim, f"{config['control']}_control")(command)
        for _ in range(ticks):  # each count of ticks would be compiled anew
            sim.step(1)
        for name in OUTPUTS:
            history[name].append(np.asarray(getattr(sim.data.states, name)))
    return {name: np.stack(values) for name, values in history.items()}


def main() -> None:
    """Read flights, fly them, write the results."""
    input_file, output_file, cache = sys.argv[1:]
    # Drones differ in their figures only: compile each kind of flight once, and for later runs.
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    inputs = np.load(input_file)
    results = {}
    for case in [key.removesuffix("/config") for key in inputs.files if key.endswith("/config")]:
        prefix = f"{case}/"
        names = [k for k in inputs.files if k.startswith(prefix) and k != f"{case}/config"]
        arrays = {k.removeprefix(prefix): inputs[k] for k in names}
        for name, values in fly(json.loads(str(inputs[f"{case}/config"])), arrays).items():
            results[f"{case}/{name}"] = values
    np.savez(output_file, **results)


if __name__ == "__main__":
    main()
