"""Crazyflow 0.4's interface: staged commands, pipelines, plugins, hook, sharding."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.compat.crazyflow import Sim
from crazyflow_ros.compat.crazyflow.exception import ConfigError
from crazyflow_ros.compat.crazyflow.sim import functional, pipeline
from crazyflow_ros.compat.crazyflow.sim.visualize import draw_line
from crazyflow_ros.compat.crazyflow.utils import CORE_NDIM_KEY, world_mask
from crazyflow_ros.sim import Sim as OurSim

SCRIPT = """
import sys
import crazyflow
from unittest.mock import patch
from crazyflow.control.mellinger.control import MellingerStateData
from crazyflow.dynamics import parametrize, so_rpy
from crazyflow.dynamics.so_rpy.dynamics import dynamics
from crazyflow.envs.reach_pos_env import ReachPosEnv
from crazyflow.sim import Sim, visualize
from crazyflow_ros.compat.crazyflow.sim import Sim as Renamed
assert Sim is Renamed is crazyflow.Sim and callable(so_rpy.dynamics)
with patch("crazyflow.sim.sim.Sim.render", return_value=3):
    print(Sim().render(), __name__, sys.argv[1:])
"""

SHARDED = """
import jax, numpy as np
from jax.sharding import PartitionSpec
from crazyflow_ros.compat.crazyflow import Sim
from crazyflow_ros.compat.crazyflow.sim.sharding import world_mesh
sim = Sim(n_worlds=4, control="attitude")
mesh = world_mesh(jax.devices())
cmd = np.tile([[[0.1, 0.0, 0.0, 0.7]]], (4, 1, 1))
results = []
for _ in range(2):
    sim.reset()
    sim.attitude_control(cmd)
    sim.step(200)
    results.append(np.asarray(sim.data.states.pos))
    placed = sim.data.states.pos.sharding
    sim.shard(mesh)
assert placed.spec == PartitionSpec("worlds") and len(placed.device_set) == 2
assert sim.data.params.mass.sharding.spec == PartitionSpec()
assert np.abs(results[1] - results[0]).max() < 1e-6 and results[0][..., 2].min() > 1e-3
print("ok")
"""


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_hook_runs_scripts_that_import_crazyflow(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = ("-m", "crazyflow_ros.compat.crazyflow", str(tmp_path / "script.py"), "a", "b")
    assert run(*command) == "3 __main__ ['a', 'b']\n"
    unasked = "import gymnasium, sys, crazyflow_ros.envs; print(*gymnasium.registry, *sys.modules)"
    assert not {x for x in run("-c", unasked).split() if ".compat" in x or x.startswith("Drone")}


def test_worlds_are_divided_among_devices() -> None:
    flags = "--xla_force_host_platform_device_count=2"
    assert run("-c", SHARDED, XLA_FLAGS=flags, JAX_PLATFORMS="cpu") == "ok\n"


@pytest.mark.parametrize("rate", [33, 100, 200])
def test_commands_wait_for_their_controller(rate: int) -> None:
    sim = Sim(n_worlds=2, control="attitude", freq=100, attitude_freq=rate)
    last, now = np.array([-1, -1]), np.array([0, 0])
    in_force = np.array(sim.data.controls.attitude.cmd[:, 0])
    rng = np.random.default_rng(0)
    for tick in range(8):
        due = (last == -1) | (now - last >= 100 / rate)
        np.testing.assert_array_equal(sim.controllable[:, 0], due)
        cmd = rng.uniform(0.1, 0.3, (2, 1, 4)).astype(np.float32)
        sim.attitude_control(cmd)
        sim.step()
        in_force = np.where(due[:, None], cmd[:, 0], in_force)
        last, now = np.where(due, now, last), now + 1
        attitude = sim.data.controls.attitude
        np.testing.assert_array_equal(attitude.cmd[:, 0], in_force)
        np.testing.assert_array_equal(attitude.staged_cmd, cmd)
        np.testing.assert_array_equal(attitude.steps[:, 0], last)
        if tick == 1:
            sim.reset(np.array([False, True]))
            last[1], now[1] = -1, 0
            in_force[1] = 0


@pytest.mark.parametrize("dynamics", ["first_principles", "so_rpy_rotor_drag"])
def test_flights_are_those_of_our_own_sim(dynamics: str) -> None:
    kinds: tuple[Any, ...] = (Sim, OurSim)
    sims = [kind(2, 2, dynamics=dynamics, control="state") for kind in kinds]
    cmd = np.zeros((2, 2, 16))
    cmd[..., :3], cmd[..., 12] = [0.3, -0.2, 0.5], 1.0
    for sim in sims:
        sim.state_control(cmd)
        sim.step(300)
    a, b = (np.asarray(sim.data.states.pos) for sim in sims)
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert a[..., 2].min() > 0.1


def test_pipelines_are_dictionaries_that_take_effect_when_built() -> None:
    sim = Sim(control="rotor_vel")
    assert list(sim.step_pipeline) == [
        *("clip_rotor_vel_cmd", "integration", "clip_floor_pos", "increment_steps")
    ]
    pipeline.insert_fn_after(sim.step_pipeline, "integration", lift)
    sim.step()
    assert sim.data.states.pos[0, 0, 2] < 0.5
    sim.build_step_fn()
    sim.step()
    assert sim.data.states.pos[0, 0, 2] > 0.5
    known: OrderedDict[str, Any] = OrderedDict(a=lift)
    pipeline.prepend_fn(known, lift)
    pipeline.insert_fn_before(known, "a", lift, "b")
    pipeline.replace_fn(known, len, "b")
    pipeline.remove_fn(known, "lift")
    assert known == OrderedDict(b=len, a=lift)
    for change in (
        lambda: pipeline.append_fn(known, lift, "a"),
        lambda: pipeline.remove_fn(known, "c"),
        lambda: pipeline.insert_fn_before(known, "c", lift),
    ):
        with pytest.raises(KeyError):
            change()


def lift(data: Any) -> Any:
    return data.replace(states=data.states.replace(pos=data.states.pos.at[..., 2].set(1.0)))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Counter:
    count: Any = field(metadata={CORE_NDIM_KEY: 1})
    common: Any

    def replace(self, **changes: Any) -> Counter:
        return replace(self, **changes)


def test_plugins_of_users_are_reset_by_world() -> None:
    def counting(data: Any) -> Any:
        counter = data.plugins["counter"]
        changed = counter.replace(count=counter.count + 1, common=counter.common + 1)
        return data.replace(plugins=data.plugins | {"counter": changed})

    sim = Sim(n_worlds=2)
    counter = Counter(jnp.zeros((2, 1), int), jnp.zeros(3))
    sim.data = sim.data.replace(plugins={"counter": counter, "other": jnp.ones(1)})
    pipeline.append_fn(sim.step_pipeline, counting)
    sim.build_default_data()
    sim.build_step_fn()
    sim.step(3)
    sim.reset(np.array([True, False]))
    found = sim.data.plugins["counter"]
    assert found.count[:, 0].tolist() == [0, 3] and found.common.tolist() == [3, 3, 3]
    mask = world_mask(sim.data)
    assert mask.states.pos and mask.plugins["counter"].count and not mask.plugins["counter"].common
    assert not mask.params.mass and not mask.core.rng_key


def test_gradients_of_staged_commands() -> None:
    sim = Sim(control="attitude")
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=jnp.ones((1, 1, 3))))
    step = sim.build_step_fn()

    def height(thrust: Any) -> Any:
        cmd = jnp.array([[[0.0, 0.0, 0.0, 1.0]]]) * thrust
        return step(functional.attitude_control(sim.data, cmd), 20).states.pos[0, 0, 2]

    thrust, h = 0.5, 1e-2
    slope = (height(thrust + h) - height(thrust - h)) / (2 * h)
    assert jax.jit(jax.grad(height))(thrust) == pytest.approx(float(slope), rel=1e-2)
    assert slope > 0


def test_a_line_of_one_point_draws_nothing() -> None:
    sim = Sim()
    draw_line(sim, np.zeros((1, 3)))
    assert not sim._markers
    draw_line(sim, np.eye(3))
    assert len(sim._markers) == 2


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError):
        Sim(dynamics="so_rpy", control="rotor_vel")
    sim = Sim(n_worlds=2)
    with pytest.raises(AssertionError, match="shape"):
        sim.attitude_control(np.zeros((1, 1, 4)))
    with pytest.raises(AssertionError, match="not enabled"):
        sim.state_control(np.zeros((2, 1, 16)))
    with pytest.raises(AssertionError, match="Mask"):
        sim.reset(np.array([True]))
