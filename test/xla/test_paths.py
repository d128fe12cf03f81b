"""By which path tests fly: that of users, and a fixed part of them also with nothing kept."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax_cache import NOTHING_KEPT, VARIABLE
from paths import ROOT

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.sim import Sim
from crazyflow_ros.xla import compiled_files

FIXED_PART = ("sim/compile/test_direct_step.py", "engine/test_battery.py", "xla/test_paths.py")
IS_DIRECT = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether compiled code can be called without JAX on this machine."""


def test_a_sim_is_stepped_as_for_users_whatever_has_been_compiled_before() -> None:
    """Without JAX, as its own cache, which users do not have by default, would prevent."""
    for _ in range(2):
        sim = Sim(n_worlds=2, n_drones=3, control="rotor_vel")
        sim.rotor_vel_control(np.full((2, 3, 4), 15e3, np.float32))
        sim.step(2)
        assert sim._live._step.overwrites(sim._live._parts) == IS_DIRECT
        jax.clear_caches()


def test_a_running_simulation_is_advanced_as_in_a_simulator_that_starts_again() -> None:
    """Without JAX, if its code is kept."""
    files = compiled_files.opened()
    assert (files is None or files.folder is None) == NOTHING_KEPT
    engine = Engine(SimulationConfig(control="rotor_vel"), ["cf0"])
    engine.advance(1, [3], 0)
    program = engine.world.present_program
    assert program is not None
    assert (program.code is not None) == (IS_DIRECT and not NOTHING_KEPT)


@pytest.mark.skipif(NOTHING_KEPT, reason="this is that part")
def test_a_fixed_part_of_the_tests_passes_with_nothing_kept() -> None:
    """Neither JAX nor this package finds anything that was compiled before."""
    files = [str(ROOT / "test" / file) for file in FIXED_PART]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    environment = os.environ | {VARIABLE: "nothing"}
    done = subprocess.run(
        run, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
