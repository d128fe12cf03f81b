"""The run of Crazyflow's tests on this package finds what passes, fails and is absent."""

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).with_name("crazyflow_suite.py")
TESTS = """
import pytest
from crazyflow import Sim, Warp
from crazyflow.sim import visualize
from crazyflow.sim.visualize import draw_line, draw_tube
from crazyflow.teleport import beam
from unittest.mock import patch

def test_present():
    assert Sim.__module__ == "crazyflow_ros.sim.sim" and visualize.draw_line is draw_line
    with patch("crazyflow.sim.sim.Sim.render", return_value=3):
        assert Sim().render() == 3

def test_absent():
    draw_tube(1)

def test_absent_module():
    isinstance(1, beam)

def test_wrong():
    assert 1 == 2, "one is not two"
"""


def test_outcomes_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_theirs.py").write_text(TESTS)
    (tmp_path / "tests" / "test_broken.py").write_text("for x in __import__('crazyflow').Warp: 0")
    command = [sys.executable, str(SUITE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr
    assert "| tests/test_theirs.py | 1 | 3 | 0 |" in done.stdout
    for reason in (
        "AbsentError: crazyflow.sim.visualize.draw_tube does not exist here",
        "AbsentError: crazyflow.teleport.beam does not exist here",
        "AbsentError: crazyflow.Warp does not exist here",
        "AssertionError: one is not two",
    ):
        assert reason in done.stdout, done.stdout


def test_absent_names_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "visualize.py").write_text("def draw_line(): 0\ndef draw_tube(): 0\n")
    command = [sys.executable, str(SUITE), str(tmp_path), "--names"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "crazyflow.sim.visualize: draw_tube\n"
