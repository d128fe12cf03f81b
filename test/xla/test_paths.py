"""Where tests find what was compiled: as users do, and a fixed part of them also nowhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from jax_cache import NOTHING_KEPT, VARIABLE
from paths import ROOT

from crazyflow_ros.xla import compiled_files

FIXED_PART = ("sim/compile/test_packing.py", "engine/test_battery.py", "xla/test_paths.py")


def test_a_running_simulation_is_found_where_users_find_it() -> None:
    files = compiled_files.opened()
    assert (files is None or files.folder is None) == NOTHING_KEPT


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
