"""Fly lsy_drone_racing's levels with its own controllers, on this package or on Crazyflow.

    python test/parity/racing.py FOLDER [--ours] [--flights 3] [--steps 200]

FOLDER is a checkout of lsy_drone_racing, of which nothing is changed. It is written for Crazyflow
0.1, so the arguments that 0.4 renamed are translated, for both sides alike. It prints one line of
JSON for each level: time and gates passed of each flight, and environment steps per second of one
world and of 256.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

LEVELS = ("level0", "level1", "level2", "level3")
CONTROLLERS = {"state": "state_controller.py", "attitude": "attitude_controller.py"}


class Stages(OrderedDict[str, Any]):
    """A pipeline of Crazyflow 0.4 that can be sliced and extended as the tuple of 0.1."""

    def __getitem__(self, key: Any) -> Any:
        return tuple(self.items())[key] if isinstance(key, slice) else super().__getitem__(key)

    def __add__(self, others: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*self.items(), *others)


def reset_stage(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reset stage of Crazyflow 0.1, of data and mask, with the arguments of 0.4."""
    if len(signature(fn).parameters) == 3:
        return fn
    return lambda data, default_data, mask=None: fn(data, mask)


def simulation(base: type) -> type:
    """A `Sim` that takes the arguments of Crazyflow 0.1."""

    class RacingSim(base):  # type: ignore[misc, valid-type]
        def __init__(self, physics: str, drone_model: str, **options: Any) -> None:
            super().__init__(dynamics=physics, drone=drone_model, **options)

        @property
        def drone_model(self) -> str:
            return str(self.drone)

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "reset_pipeline" and isinstance(value, tuple):
                value = [x if isinstance(x, tuple) else (f"own{i}", reset_stage(x))
                         for i, x in enumerate(value)]  # fmt: skip
            if name in ("step_pipeline", "reset_pipeline"):
                items = value.items() if isinstance(value, OrderedDict) else value
                value = Stages(x if isinstance(x, tuple) else (f"own{i}", x)
                               for i, x in enumerate(items))  # fmt: skip
            super().__setattr__(name, value)

    return RacingSim


def commands_of_13(functional: Any) -> SimpleNamespace:
    """Setters of commands that take 13 numbers with a yaw, as in Crazyflow 0.1."""
    import jax.numpy as jnp

    def state_control(data: Any, cmd: Any) -> Any:
        half = cmd[..., 9:10] / 2
        zeros = jnp.zeros_like(half)
        quat = (zeros, zeros, jnp.sin(half), jnp.cos(half))
        cmd = jnp.concatenate([cmd[..., :9], *quat, cmd[..., 10:13]], axis=-1)
        return functional.state_control(data, cmd)

    return SimpleNamespace(
        state_control=state_control, attitude_control=functional.attitude_control
    )


def prepare(folder: Path, is_ours: bool) -> Any:
    """Import the racing environments on one of the two simulators."""
    sys.path.insert(0, str(folder))
    if is_ours:
        from crazyflow_ros.compat.crazyflow.hook import install

        install()
    from lsy_drone_racing.envs import race_core

    race_core.Sim = simulation(race_core.Sim)
    race_core.F = commands_of_13(race_core.F)
    return race_core


def environment(config: Any, n_envs: int) -> Any:
    """The environment of a level, a vector one for several worlds."""
    import gymnasium

    options = {
        "freq": config.env.freq,
        "sim_config": config.sim,
        "sensor_range": config.env.sensor_range,
        "control_mode": config.env.control_mode,
        "track": config.env.track,
        "disturbances": config.env.get("disturbances"),
        "randomizations": config.env.get("randomizations"),
        "seed": 7,
    }
    if n_envs == 1:
        return gymnasium.make(config.env.id, **options)
    return gymnasium.make_vec(config.env.id, num_envs=n_envs, **options)


def flights(config: Any, controller: type, env: Any, number: int) -> list[tuple[float, int]]:
    """Time [s] of each flight until it finished or crashed, and gates passed, of four."""
    results = []
    for _ in range(number):
        obs, info = env.reset()
        pilot, tick = controller(obs, info, config), 0
        while True:
            seconds = tick / config.env.freq
            action = pilot.compute_control(obs, info)
            obs, *outcome, info = env.step(action)
            if pilot.step_callback(action, obs, *outcome, info) or any(outcome[1:]):
                break
            tick += 1
        gates = int(obs["target_gate"])
        results.append((seconds, 4 if gates == -1 else gates))
    return results


def steps_per_second(env: Any, steps: int, n_envs: int) -> float:
    """Environment steps per second of all worlds, after compilation."""
    obs, _ = env.reset()
    space = env.action_space.shape
    action = np.zeros(space, np.float32)
    action[..., :3] = np.asarray(obs["pos"]) if len(space) > 1 else obs["pos"]
    if space[-1] == 4:
        action[..., :3] = 0
    env.step(action)
    start = time.perf_counter()
    for _ in range(steps):
        obs, *_ = env.step(action)
    np.asarray(obs["pos"])
    return steps * n_envs / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ours", action="store_true", help="on this package, not on Crazyflow")
    parser.add_argument("--flights", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="for the speed; 0 skips it")
    parser.add_argument("--levels", nargs="*", default=LEVELS)
    parser.add_argument("--controls", nargs="*", default=list(CONTROLLERS))
    options = parser.parse_args()
    folder = options.folder.resolve()
    prepare(folder, options.ours)
    from gymnasium.wrappers.jax_to_numpy import JaxToNumpy
    from lsy_drone_racing.utils import load_config, load_controller

    for level, mode in product(options.levels, options.controls):
        config = load_config(folder / "config" / f"{level}.toml")
        config.env.control_mode = mode
        controller = load_controller(folder / "lsy_drone_racing" / "control" / CONTROLLERS[mode])
        make = partial(environment, config)
        env = JaxToNumpy(make(1))
        line = {"level": level, "control": mode}
        line["flights"] = flights(config, controller, env, options.flights)
        if options.steps:
            line["one"] = round(steps_per_second(env, options.steps, 1))
            line["many"] = round(steps_per_second(make(256), max(options.steps // 10, 1), 256))
        env.close()
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
