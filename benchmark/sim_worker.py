"""Speed of one library, ours or Crazyflow's, as a line of JSON.

It runs in the library's own environment:

    python sim_worker.py (crazyflow_ros | crazyflow) ROW    # see MEASURES
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
from functools import reduce
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

REPEATS = 5
SECONDS = 0.2  # approximate duration of a repeat
TICKS = {1: 500, 64: 500, 1024: 500, 16384: 100}  # of a long call; 20 with more worlds
DIVIDED = 8192  # worlds for each core from which on `Sim.step` uses all cores without a mesh
PER_CYCLE = 5  # ticks
CYCLES = {1: 1000, 1024: 100, 16384: 10}  # of a policy, in one compiled loop
OF_ROLLOUT = 50  # cycles
OBSERVED = ("pos", "quat", "vel", "ang_vel")  # 13 numbers
OF_GRADIENT = 100  # ticks
REVERSE = 3.2  # operations of a tick with its gradient over those of the tick, as XLA counts them


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
    """Return the shortest time of one `run`, including everything it started."""
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
    return min(times)


def flying(
    library: str, n_worlds: int, control: str, dynamics: str = "first_principles", **options: Any
) -> Any:
    """Return a `Sim` of drones that are high above the floor and have a command."""
    if library == "crazyflow":
        options["device"] = jax.default_backend()  # otherwise the CPU
    sim = importlib.import_module(f"{library}.sim").Sim(
        n_worlds=n_worlds,
        drone="cf2x_L250",
        dynamics=dynamics,
        control=control,
        freq=500,
        **options,
    )
    sim.reset()
    pos = sim.data.states.pos.at[..., 2].set(100.0)
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos))
    getattr(sim, f"{control}_control")(command(control, n_worlds))
    return sim


def on_all_devices() -> dict[str, Any]:
    """Return the arguments of a `Sim` whose worlds are divided among all devices."""
    devices = jax.device_count()
    return {"mesh": jax.make_mesh((devices,), ("worlds",))} if devices > 1 else {}


def use_cores(library: str) -> None:
    """Let ours use one core for each CPU device. JAX's own threads keep all cores."""
    n = jax.device_count()
    if library == "crazyflow_ros" and jax.default_backend() == "cpu":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n])


def finish(sim: Any) -> None:
    """Wait for the steps of a simulation."""
    jax.block_until_ready(sim.data.states.pos)


def seconds_per_tick(sim: Any, n_worlds: int) -> float:
    """Return the time of a tick of all worlds in a call of many."""
    n = TICKS.get(n_worlds, 20)
    return seconds_per_call(lambda: sim.step(n), lambda: finish(sim)) / n


def least(sim: Any, n_ticks: float, n_worlds: int, n_numbers: int) -> dict[str, float]:
    """Return the least time of a cycle of ours: its ticks alone, and one copy of what it handles.

    Args:
        sim: The simulation; that of Crazyflow is not measured.
        n_ticks: Ticks of a cycle.
        n_worlds: Number of worlds.
        n_numbers: Numbers that a cycle reads and writes in each world.
    """
    if not type(sim).__module__.startswith("crazyflow_ros"):
        return {}
    source = np.ones((n_worlds, n_numbers), np.float32)
    target = source.copy()
    copying = seconds_per_call(lambda: np.copyto(target, source))
    return {"least": n_ticks * seconds_per_tick(sim, n_worlds) + copying}


def measure_policy(library: str, n_worlds: int) -> dict[str, float]:
    """Measure a cycle of a linear policy in a long compiled loop, on all devices."""
    n_cycles = CYCLES[n_worlds]
    sim, run = rollout(library, n_worlds, n_cycles)
    data = sim.data
    seconds = seconds_per_call(lambda: jax.block_until_ready(run(data))) / n_cycles
    return {"s": seconds, **least(sim, PER_CYCLE, n_worlds, 13 + 4)}


def measure_rollout(library: str, n_worlds: int) -> dict[str, float]:
    """Measure a call of a short compiled loop of a linear policy, which returns the last states."""
    sim, run = rollout(library, n_worlds, OF_ROLLOUT)
    # Not all of the data: JAX makes an object of each of its arrays, in a microsecond or more.
    fly, data = jax.jit(lambda data: run(data).states), sim.data
    return {
        "s": seconds_per_call(lambda: jax.block_until_ready(fly(data))),
        **least(sim, OF_ROLLOUT * PER_CYCLE, n_worlds, OF_ROLLOUT * (13 + 4)),
    }


def rollout(library: str, n_worlds: int, n_cycles: int) -> tuple[Any, Callable[[Any], Any]]:
    """Return a simulation, and the function from its data to those after a linear policy flew."""
    functional = importlib.import_module(f"{library}.sim.functional")
    use_cores(library)
    sim = flying(library, n_worlds, "attitude", **on_all_devices())
    step = sim.build_step_fn()
    gains = jnp.asarray(1e-4 * np.random.default_rng(0).normal(size=(13, 4)), jnp.float32)
    hover = jnp.asarray(command("attitude", 1))

    def cycle(data: Any, _: None) -> tuple[Any, None]:
        seen = jnp.concatenate([getattr(data.states, x) for x in OBSERVED], axis=-1)
        return step(functional.attitude_control(data, seen @ gains + hover), PER_CYCLE), None

    return sim, jax.jit(lambda data: jax.lax.scan(cycle, data, length=n_cycles)[0])


def measure_environment(library: str, n_worlds: int) -> dict[str, float]:
    """Measure a step of a vector environment, of one tick."""
    gymnasium = importlib.import_module("gymnasium")
    importlib.import_module(f"{library}.envs")
    environments: dict[str, tuple[str, dict[str, Any]]] = {
        "crazyflow_ros": ("crazyflow_ros/Reach-v0", {"action_freq": 500}),
        "crazyflow": ("DroneReachPos-v0", {"device": jax.default_backend()}),
    }
    name, options = environments[library]
    env = gymnasium.make_vec(name, num_envs=n_worlds, dynamics="so_rpy", freq=500, **options)
    env.reset(seed=0)
    action = env.action_space.sample()
    seconds = seconds_per_call(lambda: jax.block_until_ready(env.step(action)))
    alone = flying(library, n_worlds, "attitude", "so_rpy")
    # Action, observation, reward, and three flags of a byte
    return {"s": seconds, **least(alone, 1, n_worlds, 4 + 13 + 1 + 1)}


def measure_gradient(library: str, n_worlds: int) -> dict[str, Any]:
    """Measure the gradient of a loss of the final position with respect to a command."""
    functional = importlib.import_module(f"{library}.sim.functional")
    use_cores(library)
    sim = flying(library, n_worlds, "attitude", "so_rpy")
    step, start = sim.build_step_fn(), sim.data.states.pos
    offset = 0.05 * np.random.default_rng(0).normal(size=(n_worlds, 1, 4))
    cmd = jnp.asarray(command("attitude", n_worlds) + offset, jnp.float32)

    def loss(cmd: jax.Array, data: Any) -> jax.Array:
        moved = step(functional.attitude_control(data, cmd), OF_GRADIENT).states.pos - start
        return ((moved - 1.0) ** 2).sum()

    run, data = jax.jit(jax.value_and_grad(loss)), sim.data
    return {
        "s": seconds_per_call(lambda: jax.block_until_ready(run(cmd, data))),
        **least(sim, REVERSE * OF_GRADIENT, n_worlds, 4 + 4),
        "gradient": np.asarray(run(cmd, data)[1]).ravel().tolist(),
    }


def measure_learning(library: str, n_worlds: int, per_action: int) -> dict[str, Any]:
    """Measure the gradient of a flight's cost with respect to the gains of a linear policy."""
    functional = importlib.import_module(f"{library}.sim.functional")
    use_cores(library)
    sim = flying(library, n_worlds, "attitude", "so_rpy")
    step, start = sim.build_step_fn(), sim.data.states.pos
    gains = jnp.asarray(1e-4 * np.random.default_rng(0).normal(size=(13, 4)), jnp.float32)
    hover = jnp.asarray(command("attitude", 1))

    def loss(gains: jax.Array, data: Any) -> jax.Array:
        def act(data: Any, _: None) -> tuple[Any, jax.Array]:
            seen = jnp.concatenate([getattr(data.states, x) for x in OBSERVED], axis=-1)
            data = step(functional.attitude_control(data, seen @ gains + hover), per_action)
            return data, ((data.states.pos - start - 1.0) ** 2).mean()

        return jax.lax.scan(act, data, length=OF_GRADIENT // per_action)[1].mean()

    run, data = jax.jit(jax.value_and_grad(loss)), sim.data
    return {
        "s": seconds_per_call(lambda: jax.block_until_ready(run(gains, data))),
        **least(sim, REVERSE * OF_GRADIENT, n_worlds, 13 + 4),
        "gradient": np.asarray(run(gains, data)[1]).ravel().tolist(),
    }


def measure_python(library: str, n_worlds: int, control: str) -> dict[str, float]:
    """Measure a cycle of a caller: command, some ticks, and the state as NumPy arrays."""
    sim = flying(library, n_worlds, control)
    numbers, set_command = command(control, n_worlds), getattr(sim, f"{control}_control")

    def cycle() -> None:
        set_command(numbers)
        sim.step(PER_CYCLE)
        for name in OBSERVED:
            np.asarray(getattr(sim.data.states, name))

    seconds = seconds_per_call(cycle)
    return {"s": seconds, **least(sim, PER_CYCLE, n_worlds, 13 + numbers.shape[-1])}


def measure_steps(library: str, n_worlds: int, control: str) -> dict[str, float]:
    """Measure a call of one tick and a call of many, on one core for each device."""
    use_cores(library)
    options = on_all_devices() if n_worlds < DIVIDED * jax.device_count() else {}
    sim = flying(library, n_worlds, control, **options)
    calling = seconds_per_call(lambda: sim.step(1), lambda: finish(sim))
    return {
        **(work(control) if library == "crazyflow_ros" else {}),
        "us_per_call": 1e6 * calling,
        "steps_per_s": n_worlds / seconds_per_tick(sim, n_worlds),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_limits(_: str, n_cores: int) -> dict[str, float]:
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
    states = sim.data.states
    moving = (states.pos, states.quat, states.vel, states.ang_vel, states.rotor_vel)
    tick = jax.jit(lambda data: reduce(lambda x, stage: stage(x), sim.step_pipeline, data))
    cost: Any = tick.lower(sim.data).cost_analysis() or {}  # known on the CPU only
    return {
        "flops_per_step": cost.get("flops"),
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
    sim.step(PER_CYCLE)
    finish(sim)
    return {"s": time.perf_counter() - start, "s_of_cpu": time.process_time() - busy}


def measure_contacts(library: str) -> dict[str, Any]:
    """Return the time for the contacts of one world, computed after each step."""
    sim = importlib.import_module(f"{library}.sim").Sim(drone="cf2x_L250", control="attitude")
    sim.reset()
    times = []
    for _ in range(500):
        sim.step(1)
        finish(sim)
        start = time.perf_counter()
        np.asarray(sim.contacts())
        times.append(time.perf_counter() - start)
    return {"us_per_contacts": 1e6 * median(times)}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "policy": measure_policy,
    "rollout": measure_rollout,
    "environment": measure_environment,
    "gradient": measure_gradient,
    "learning": measure_learning,
    "python": measure_python,
    "steps": measure_steps,
    "limits": measure_limits,
    "first": measure_first,
    "contacts": measure_contacts,
}
"""By the first word of a row; the others, separated by colons, are arguments."""


if __name__ == "__main__":
    name, *words = sys.argv[2].split(":")
    arguments = [int(word) if word.isdecimal() else word for word in words]
    print(json.dumps(MEASURES[name](sys.argv[1], *arguments)), flush=True)
