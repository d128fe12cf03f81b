"""The words of the command line, without a simulator."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_processes import command, run_python
from other_packages import metadata
from paths import ROOT
from ros_client import own_domain

from crazyflow_ros.client.command_line.command import ProgramCommand, SimulatorCommand
from crazyflow_ros.client.command_line.command_list import (
    UnknownCommand,
    find,
    group_help,
    groups,
    overview,
)
from crazyflow_ros.client.command_line.text import matching, table, value, wind

DOMAIN = own_domain("test_command_words")
EVERY = [command for group in groups().values() for command in group]
COMMANDS = [command for command in EVERY if isinstance(command, SimulatorCommand)]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_python(DOMAIN, "-m", "crazyflow_ros", *words)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_has_examples_that_it_understands(command: SimulatorCommand) -> None:
    assert command.examples
    for example in command.examples:
        found, rest = find(shlex.split(example))
        assert found is command
        command.parser().parse_intermixed_args(rest)
    helped = command.parser().format_help()
    assert all(example in helped for example in command.examples)
    assert helped.startswith(f"usage: python -m crazyflow_ros {command.name}")


def test_the_help_lists_all_commands_once() -> None:
    text = overview()
    for one in EVERY:
        assert len(re.findall(rf"^  {one.name} +{re.escape(one.text)}$", text, re.M)) == 1
    helped = run("--help")
    assert helped.returncode == 0 and text in helped.stdout
    assert group_help("wind").count("\n  wind ") == 1 and not group_help("takeoff")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with commands: one that works, one of a name that is taken, and two broken ones."""
    own = {
        "survey": "surveys.fields:fly",
        "land": "surveys.fields:fly",
        "sow": "surveys.seeds:sow",
        "reap": "surveys.nowhere:reap",
    }
    metadata(tmp_path, "field-surveys", {"crazyflow_ros.commands": own})
    (folder := tmp_path / "surveys").mkdir()
    (folder / "__init__.py").write_text("raise ImportError('heavy')\n")
    (folder / "seeds.py").write_text("def sow(words, program): return 0\n")
    (folder / "fields.py").write_text(
        "def fly(words, program):\n"
        '    """Fly a survey of a field.\n\n    And more."""\n'
        "    print(*words, program)\n    return 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_package_adds_commands_which_the_help_lists_without_importing_it(package: Path) -> None:
    listed = [" ".join(line.split()) for line in overview().splitlines()]
    assert "survey fly a survey of a field" in listed
    assert "sow of the package field-surveys 1.0" in listed
    assert "reap of the package field-surveys 1.0" in listed
    assert [line for line in listed if line.startswith("land ")] == [
        "land land, and wait until the drone stands on the floor"
    ]
    assert "surveys" not in sys.modules
    refused = command("survey a b")
    assert refused.returncode == 1 and "package field-surveys 1.0" in refused.stderr
    assert "heavy" in refused.stderr and "Traceback" not in refused.stderr
    (package / "__init__.py").write_text("")
    done = command("survey a b")
    assert (done.returncode, done.stdout) == (7, "a b python -m crazyflow_ros survey\n")
    assert "did you mean 'survey'" in command("survy").stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("takeof cf0", "there is no command 'takeof'; did you mean 'takeoff'?"),
        ("parm list", "there is no command 'parm'; did you mean 'param'?"),
        ("world lod room", "there is no command 'world lod'; did you mean 'load'?"),
        ("checkpoint", "checkpoint needs a second word; it is one of save, restore"),
        ("wind --gusts 1", "wind needs a second word; it is one of get, set"),
        ("wind 2 0", "there is no command 'wind 2'; it is one of get, set"),
        ("xyzzy", "there is no command 'xyzzy'; --help lists all"),
        ("n_drones=2", "there is no command 'n_drones=2'"),
    ],
)
def test_misspelt_commands_get_a_suggestion(words: str, hint: str) -> None:
    with pytest.raises(UnknownCommand) as error:
        find(shlex.split(words))
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("takof", "did you mean 'takeoff'?"),
        ("takeoff cf0 high", "argument height: invalid float value: 'high'"),
        ("land", "the following arguments are required: drone"),
        ("param set wind", "the following arguments are required: value"),
        ("list --name /a", "unrecognized arguments: --name /a"),
        ("list --wait nan", "--wait is a number of seconds, not nan"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(words: str, reason: str) -> None:
    done = command(words)
    assert done.returncode == 2 and not done.stdout
    assert "usage: python -m crazyflow_ros" in done.stderr and reason in done.stderr
    assert "Traceback" not in done.stderr


def test_programs_have_their_help_under_their_names() -> None:
    for program in (one for one in EVERY if isinstance(one, ProgramCommand)):
        helped = command(f"{program.name} --help")
        assert helped.returncode == 0
        assert helped.stdout.startswith(f"usage: python -m crazyflow_ros {program.name}")


@pytest.mark.parametrize(
    ("called", "named"),
    [("simulator", "ros2 run crazyflow_ros simulator"), ("crazyflow_ros", "crazyflow_ros")],
)
def test_help_names_the_program_as_it_was_called(called: str, named: str, tmp_path: Path) -> None:
    script = tmp_path / called  # as setuptools writes them for colcon and for pip
    script.write_text("from crazyflow_ros.__main__ import main\nmain()\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, script, "step", "--help"]
    helped = subprocess.run(command, env=env, text=True, capture_output=True, timeout=60)
    assert helped.returncode == 0
    assert f"\n  {named} step 500\n" in helped.stdout


def test_a_simulator_that_is_not_there_gets_advice() -> None:
    done = run("takeoff", "cf0", "--node", "nobody", "--wait", "1")
    assert done.returncode == 1 and not done.stdout
    told = f"takeoff: there is no simulator /nobody in ROS domain {DOMAIN}, waited 1 s\n"
    assert told in done.stderr
    assert "python -m crazyflow_ros --ros-args -p drones:=[cf0]" in done.stderr
    assert "--namespace" in done.stderr and "ROS_DOMAIN_ID" in done.stderr


@pytest.mark.parametrize(
    ("given", "reason"), [("--node 'a b'", "a b"), ("--namespace '/a b'", "/a b")]
)
def test_a_name_that_no_node_can_have_is_refused(given: str, reason: str) -> None:
    done = command(f"list {given}")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("list: ") and reason in done.stderr


@pytest.mark.parametrize(
    "words", ["replay {}", "view {}", "reality {}", "identify {} --drone cf2x_L250 --output out"]
)
def test_a_file_that_cannot_be_read_is_named_once_with_the_reason(
    tmp_path: Path, words: str
) -> None:
    os.mkfifo(tmp_path / "fifo.mcap")
    for file, reason in (
        ("none.mcap", "none.mcap: No such file or directory"),
        ("fifo.mcap", "fifo.mcap is not a regular file"),
    ):
        done = command(words.format(file), tmp_path)
        assert done.returncode != 0
        said = done.stderr.strip().splitlines()[-1]
        assert said.endswith(reason) and said.count(file) <= 2, done.stderr
        assert "Errno" not in done.stderr and "page" not in done.stderr


@pytest.mark.parametrize(
    ("mean", "gusts", "text"),
    [
        ((2.0, 0.0, 0.0), 0.0, "wind is 2.0 m/s from the west, without gusts"),
        ((0.0, -3.0, 0.0), 0.3, "wind is 3.0 m/s from the north, with gusts of 0.3 m/s"),
        ((-1.0, -1.0, 0.0), 0.0, "wind is 1.4 m/s from the north-east, without gusts"),
        ((1.0, 1.0, 0.5), 0.0, "wind is 1.4 m/s from the south-west and 0.5 m/s upwards, without"),
        ((0.0, 0.0, -1.0), 0.0, "wind is 1.0 m/s downwards"),
        ((0.0, 0.0, 0.0), 0.5, "there is no mean wind, with gusts of 0.5 m/s"),
        ((0.0, 0.0, 0.0), 0.0, "there is no wind"),
    ],
)
def test_a_wind_is_named_by_where_it_comes_from(
    mean: tuple[float, ...], gusts: float, text: str
) -> None:
    assert wind(mean, gusts).startswith(text)


def test_values_tables_and_filters() -> None:
    assert [value(v) for v in ("room", "", True, 2.0, [0.0, 1.5], ["a"], [])] == [
        "room", "''", "true", "2.0", "[0.0, 1.5]", "[a]", "[]",
    ]  # fmt: skip
    assert table([("a", "bc"), ("def", "")]) == "a    bc\ndef"
    lines = {"/cf0/odom": "nav_msgs/msg/Odometry", "/cf0/pose": "geometry_msgs/msg/PoseStamped"}
    assert matching(lines, None) == lines
    assert [*matching(lines, "nav_msgs")] == ["/cf0/odom"]
    assert [*matching(lines, "cf0*Pose")] == ["/cf0/pose"]
    assert not matching(lines, ".")  # no expression, but a text
