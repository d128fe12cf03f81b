"""A flight of worlds that are divided among devices: for test_sharding.

    python sharded_flight.py PORT N_PROCESSES PROCESS FILE

writes what this process has of the worlds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from crazyflow_ros.sim import Sim, SimData, pipeline
from crazyflow_ros.sim.randomize import randomize_mass, randomize_pos
from crazyflow_ros.sim.wind import Dryden

N, M = 12, 2


def fly(mesh: Mesh | None, show: Callable[[str, dict[str, jax.Array]], None]) -> Sim:
    """Randomised resets; commands before and between steps; gusts."""
    sim = Sim(N, M, control="rotor_vel", mesh=mesh)
    sim.reset_pipeline = (randomize_pos(0.5), randomize_mass(0.1))
    sim.reset(np.ones(N, bool))
    command = np.random.default_rng(0).uniform(12e3, 20e3, (N, M, 4))
    sim.rotor_vel_control(command)
    sim.step(7)
    sim.rotor_vel_control(command[::-1])  # on packed data
    sim.step(20)
    vel = np.random.default_rng(1).normal(size=(N, M, 3))
    sim.data = sim.data.replace(states=sim.data.states.replace(vel=vel))
    sim.step(3)
    show("flown", _leaves(sim.data))
    sim.reset(np.arange(N) % 3 == 0)
    gusts = Dryden(wind=(3.0, 1.0))
    sim.step_pipeline = pipeline.insert_before(sim.step_pipeline, "integrate", gusts)
    sim.step(20)
    show("in gusts", _leaves(sim.data))
    states = sim.data.states
    pos = np.random.default_rng(2).uniform(0, 0.1, (N, M, 3))
    sim.data = sim.data.replace(states=states.replace(pos=pos))
    slots = sim.contact_slots()
    show("contacts", {".touching": sim.contacts("drone:0"), ".distance": slots.distance})
    return sim


def check_own_worlds(sim: Sim, first: int, end: int) -> None:
    """Contacts of a world are known to the process that has it."""
    touching = sim.contacts()
    own = np.concatenate([shard.data for shard in touching.addressable_shards])
    for world in range(N):
        if first <= world < end:
            assert len(sim.contact_list(world)) == own[world - first].sum()
        else:
            with pytest.raises(ValueError, match=f"another process; .* has {first} to {end - 1}"):
                sim.contact_list(world)


def _leaves(data: SimData) -> dict[str, jax.Array]:
    """By name; the random key as numbers."""
    key = jax.random.key_data(data.core.rng_key)
    data = data.replace(core=data.core.replace(rng_key=key))
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(data)}


def main(port: str, n_processes: str, process: str, file: str) -> None:
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(
        f"localhost:{port}", int(n_processes), int(process), initialization_timeout=60
    )
    parts: dict[str, np.ndarray] = {}

    def show(when: str, leaves: dict[str, jax.Array]) -> None:
        for name, leaf in leaves.items():
            for shard in leaf.addressable_shards:
                first = shard.index[0].start or 0 if shard.index else 0
                parts[f"{when} {name} {first}"] = np.asarray(shard.data)

    sim = fly(jax.make_mesh((jax.device_count(),), ("worlds",)), show)
    np.savez(file, **parts)
    own = N // int(n_processes)
    check_own_worlds(sim, own * int(process), own * (int(process) + 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
