"""The command line of the Makefile: variables that it knows, and those that it refuses."""

from __future__ import annotations

import os
import subprocess

import pytest
from paths import ROOT

CHOICES = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL")


def make(*arguments: str, **chosen: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in (*OF_MAKE, *CHOICES)}
    return subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        env=environment | chosen,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_arguments_may_hold_spaces() -> None:
    end = make("-j2", "test", "ARGS=-k launch --durations=3")
    assert end.returncode == 0, end.stderr
    assert "pytest" in end.stdout and end.stdout.rstrip().endswith("-k launch --durations=3")


@pytest.mark.parametrize("given", ["n_drones=2", "n_drones:=2", "DRONES=a b"])
def test_a_variable_that_nothing_reads_is_refused_by_name(given: str) -> None:
    end = make("sim", given)
    assert end.returncode == 2
    name = given.replace(":", "").partition("=")[0]
    assert f"unknown variable {name}, known are ARGS" in end.stderr


def test_the_folder_of_real_flights_can_be_given() -> None:
    end = make("reality", "CRAZYFLOW_ROS_FLIGHTS=/somewhere", "ARGS=--mass 0.03")
    assert end.returncode == 0, end.stderr
    assert '"/somewhere/nanobench" --drone examples/14_real_drone' in end.stdout
    assert "--mass 0.03" in end.stdout


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, "LOCALHOST"),
        ({CHOICES[0]: "SUBNET"}, "SUBNET"),
        ({CHOICES[1]: "10.0.0.2"}, ""),
        ({CHOICES[2]: "10.0.0.2:11811"}, ""),
    ],
)
def test_ros_stays_on_this_machine_unless_the_user_chose(
    chosen: dict[str, str], expected: str
) -> None:
    # The line is run in spite of --dry-run because it begins with a plus sign.
    end = make(f"--eval=shown: ; @+echo [$${CHOICES[0]}]", "shown", **chosen)
    assert f"[{expected}]" in end.stdout.split(), end.stderr
