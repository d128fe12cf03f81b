"""The sweep over seeds and learning rates, with Ray on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from paths import ROOT

OPTIONS = "--seeds 1 --rates 0.01 0.02 --updates 20 --worlds 8"
pytest.importorskip("ray", reason="Ray is not installed: pip install ray")


def test_ray_trains_with_all_combinations_and_prints_the_best_last() -> None:
    """Ray's workers are processes of their own, which import the package by themselves."""
    sweep = ROOT / "examples" / "cluster" / "ray_sweep.py"
    done = subprocess.run(
        [sys.executable, str(sweep), *OPTIONS.split()],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(r"learning rate (\S+), seed (\d): (\S+)%", done.stdout)
    assert sorted((rate, seed) for rate, seed, _ in found) == [
        (rate, seed) for rate in ("0.01", "0.02") for seed in "0"
    ]
    shares = [float(share) for *_, share in found]
    assert shares == sorted(shares)
