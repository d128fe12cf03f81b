"""Speed of `Sim` in one library, ours or Crazyflow's, as one JSON line per row.

It runs in the library's own environment, ours on DEVICES cores:

    python sim_worker.py (crazyflow_ros | crazyflow) DEVICES ROW...
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

REPEATS = 3
SECONDS = 0.3  # approximate duration of a repeat


def command(control: str, n_worlds: int) -> np.ndarray:
    """Return a command that keeps the drone in the air."""
    values = {
        "rotor_vel": [19217.0] * 4,
        "force_torque": [0.33, 0.0, 0.0, 0.0],
        "body_rate": [0.05, -0.03, 0.1, 0.33],
        "attitude": [0.05, -0.03, 0.1, 0.33],
        "state": [0.1, -0.1, 1.0, *[0.0] * 9, 1.0, *[0.0] * 3],
    }[control]
    return np.broadcast_to(np.array(values, np.float32), (n_worlds, 1, len(values)))


def seconds_per_call(
    run: Callable[[], object], finish: Callable[[], object] = lambda: None
) -> float:
    """Return the median time of one `run`, including everything it started."""
    run(), finish()
    start = time.perf_counter()
    run(), finish()
    calls = max(1, round(SECONDS / (time.perf_counter() - start)))
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        finish()
        times.append((time.perf_counter() - start) / calls)
    return median(times)


def measure(library: str, devices: int, n_worlds: int, control: str) -> dict[str, object]:
    """Measure one row: a call of one tick, a call of many, and a cycle of a caller."""
    sim_class = importlib.import_module(f"{library}.sim").Sim
    mesh = {"mesh": jax.make_mesh((devices,), ("worlds",))} if devices > 1 else {}
    sim = sim_class(n_worlds=n_worlds, drone="cf2x_L250", control=control, freq=500, **mesh)
    sim.reset()
    sim.data = sim.data.replace(
        states=sim.data.states.replace(pos=sim.data.states.pos.at[..., 2].set(100.0))
    )
    numbers, set_command = command(control, n_worlds), getattr(sim, f"{control}_control")
    set_command(numbers)
    ticks = {1: 500, 1024: 500, 16384: 100}.get(n_worlds, 20)

    def finish() -> None:
        jax.block_until_ready(sim.data.states.pos)

    def cycle() -> None:
        set_command(numbers)
        sim.step(5)
        states = sim.data.states
        for array in (states.pos, states.quat, states.vel, states.ang_vel):
            np.asarray(array)

    return {
        **(work(control) if library == "crazyflow_ros" else {}),
        "library": library,
        "n_worlds": n_worlds,
        "control": control,
        "us_per_call": 1e6 * seconds_per_call(lambda: sim.step(1), finish),
        "us_per_cycle": 1e6 * seconds_per_call(cycle, finish),
        "steps_per_s": n_worlds * ticks / seconds_per_call(lambda: sim.step(ticks), finish),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_limits(n_cores: int) -> dict[str, float]:
    """Measure the limits of the first cores: floating-point operations and memory bandwidth."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])  # before JAX starts threads
    side, numbers = 2048, np.ones(1 << 26, np.float32)
    matrix, copy = jnp.ones((side, side)), numbers.copy()
    parts = list(zip(np.array_split(copy, n_cores), np.array_split(numbers, n_cores)))
    product = jax.jit(jnp.matmul)
    with ThreadPoolExecutor(n_cores) as pool:
        multiplying = seconds_per_call(lambda: product(matrix, matrix).block_until_ready())
        copying = seconds_per_call(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts)))
    return {"flops_per_s": 2 * side**3 / multiplying, "bytes_per_s": 2 * numbers.nbytes / copying}


def work(control: str) -> dict[str, float]:
    """Return operations, as counted by XLA, and bytes of a tick of one drone.

    The bytes are the command, read once, and the state, read and written.
    """
    sim = importlib.import_module("crazyflow_ros.sim").Sim(drone="cf2x_L250", control=control)
    step = importlib.import_module("crazyflow_ros.sim.compile.stepping").tick_of(sim.step_pipeline)
    states = sim.data.states
    moving = (states.pos, states.quat, states.vel, states.ang_vel, states.rotor_vel)
    cost: Any = jax.jit(step).lower(sim.data).cost_analysis()
    return {
        "flops_per_step": cost["flops"],
        "bytes_per_step": 2 * sum(x.nbytes for x in moving) + command(control, 1).nbytes,
    }


def measure_first(library: str, control: str) -> dict[str, float]:
    """Return the seconds until the first `Sim` has done its first step, with nothing compiled."""
    n_worlds = 1024
    sim_class = importlib.import_module(f"{library}.sim").Sim
    start, busy = time.perf_counter(), time.process_time()
    sim = sim_class(n_worlds=n_worlds, drone="cf2x_L250", control=control)
    sim.reset()
    getattr(sim, f"{control}_control")(command(control, n_worlds))
    sim.step(5)
    jax.block_until_ready(sim.data.states.pos)
    return {"s": time.perf_counter() - start, "s_of_cpu": time.process_time() - busy}


def measure_contacts(library: str) -> dict[str, Any]:
    """Return the time for the contacts of one world, computed after each step."""
    sim = importlib.import_module(f"{library}.sim").Sim(drone="cf2x_L250", control="attitude")
    sim.reset()
    times = []
    for _ in range(500):
        sim.step(1)
        jax.block_until_ready(sim.data.states.pos)
        start = time.perf_counter()
        np.asarray(sim.contacts())
        times.append(time.perf_counter() - start)
    return {"library": library, "us_per_contacts": 1e6 * median(times)}


if __name__ == "__main__":
    on_devices = int(sys.argv[2])
    if on_devices > 1:
        jax.config.update("jax_num_cpu_devices", on_devices)
    for row in sys.argv[3:]:
        worlds, mode = row.split(":")
        if mode == "contacts":
            found = measure_contacts(sys.argv[1])
        elif worlds == "first":
            found = measure_first(sys.argv[1], mode)
        elif mode == "limits":
            found = measure_limits(on_devices)
        else:
            found = measure(sys.argv[1], on_devices, int(worlds), mode)
        print(json.dumps(found), flush=True)
