"""The run of Crazyflow's tests on this package finds what passes, fails and is absent."""

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).with_name("crazyflow_suite.py")
TESTS = """
import pytest
from crazyflow import Sim
from crazyflow.sim import Physics, visualize
from crazyflow.sim.visualize import draw_line
from unittest.mock import patch

def test_present():
    assert callable(visualize.draw_line)
    with patch("crazyflow.sim.sim.Sim.render", return_value=3):
        assert Sim(physics=Physics.so_rpy, drone_model="cf2x_L250").render() == 3

def test_of_0_1():
    import numpy as np
    cmd = np.zeros((1, 1, 13))
    assert cmd.shape == (1, 1, 16) and cmd[0, 0, 12] == 1

def test_wrong():
    assert 1 == 2, "one is not two"
"""


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SUITE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_outcomes_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_theirs.py").write_text(TESTS)
    (tmp_path / "tests" / "test_broken.py").write_text("from crazyflow import Warp")
    done = run(str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert "| tests/test_theirs.py | 2 | 1 | 0 |" in done.stdout, done.stdout
    for reason in ("cannot import name 'Warp'", "AssertionError: one is not two"):
        assert reason in done.stdout, done.stdout


def test_absent_names_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "visualize.py").write_text("def draw_line(): 0\ndef draw_tube(): 0\n")
    done = run(str(tmp_path), "--names")
    assert done.stdout == "crazyflow.sim.visualize: draw_tube\n", done.stderr
