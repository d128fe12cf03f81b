"""Parameter files: what rcl cannot read, or does not read as it is meant, is told before."""

from __future__ import annotations

from pathlib import Path

import pytest
import rclpy
import yaml
from rclpy.node import Node

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.launch_support import read_nodes
from crazyflow_ros.ros.parameters.parameter_files import check_parameter_files


def check(tmp_path: Path, text: str, *others: str) -> list[str]:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    return check_parameter_files(["--ros-args", "--params-file", str(file), *others], "crazyflow")


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ValueError, match=r"p\.yaml") as refused:
        check(tmp_path, text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # without the names above
        ("n: 3\nseed: 4\n", "'n' is not under the name of a node and ros__parameters"),
        ("/crazyflow:\n  seed: 4\n", "'seed' is not under ros__parameters of /crazyflow"),
        ("/crazyflow:\n  ros_parameters:\n    seed: 4\n", "'ros_parameters'; did you mean 'ros__"),
        ("ros__parameters:\n  seed: 4\n", "'seed' is not under"),
        ("- seed: 4\n", "no nodes with parameters"),
        ("seed\n", "no nodes with parameters"),
        # wrong indentation
        (
            "/crazyflow:\n  ros__parameters:\n      seed: 4\n    n: 3\n",
            "line 4: 'n' is indented by 4",
        ),
        ("/a:\n    ros__parameters:\n        seed: 4\n      wind: [0.0]\n", "line 4: 'wind'"),
        ("/a:\n  ros__parameters:\n    seed: 4\n      n: 3\n", "line 4: 'n' is indented by 6"),
        ("/a:\n  ros__parameters:\n  seed: 4\n", "'seed' is beside ros__parameters of /a"),
        ("/a:\n  ros__parameters:\n\tseed: 4\n", "line 3: 'seed' is indented by a tab"),
        ("/a:\n  # a comment: here\n  ros__parameters:\n    x: 1\n   y: 2\n", "line 5: 'y'"),
    ],
)
def test_a_file_of_another_form_is_refused_and_the_form_is_shown(
    tmp_path: Path, text: str, message: str
) -> None:
    said, _, form = refusal(tmp_path, text).partition("\nA parameter file looks like this:\n")
    assert message in said
    shown = yaml.safe_load(form)  # it is one that can be read
    (tmp_path / "shown.yaml").write_text(form.replace("\n  ", "\n")[2:])
    assert list(shown) == ["/crazyflow"] and shown["/crazyflow"]["ros__parameters"]
    assert check(tmp_path, yaml.safe_dump(shown)) == []


def test_the_form_has_the_parameters_of_the_file(tmp_path: Path) -> None:
    said = refusal(tmp_path, "drones: [x, y]\nscene: room\n")
    assert "  /crazyflow:\n    ros__parameters:\n      drones: [x, y]\n      scene: room" in said


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "seed of /crazyflow has no value"),
        ("[1, 2.5]", "seed of /crazyflow has numbers with and without a point, [1, 2.5]"),
        ("[[1, 2], [3, 4]]", "seed of /crazyflow has lists in a list, [[1, 2], [3, 4]]"),
        ("[true, a]", "seed of /crazyflow has values of several types in a list"),
        ("{a: {b: [1, x]}}", "seed.a.b of /crazyflow has values of several types"),
        ("[1, 2", "line 4"),
    ],
)
def test_a_value_that_rcl_does_not_take_is_refused_by_name(
    tmp_path: Path, value: str, message: str
) -> None:
    text = f"/crazyflow:\n  ros__parameters:\n    seed: {value}\n"
    said = refusal(tmp_path, text)
    assert message in said and "Sequence" not in said
    context = rclpy.Context()
    with pytest.raises(Exception, match="params file"):  # indeed, it does not
        context.init(["--ros-args", "--params-file", str(tmp_path / "p.yaml")])


GOOD = {
    "/crazyflow:\n  ros__parameters:\n    seed: 4\n": [],
    "crazyflow:\n  ros__parameters:\n    seed: 4\n": [],
    "/**:\n  ros__parameters:\n    seed: 4\n": [],
    "/**/crazyflow:\n  ros__parameters:\n    seed: 4\n": [],
    "/**:\n  crazyflow:\n    ros__parameters:\n      seed: 4\n": [],
    "/other:\n  ros__parameters: {x: 1}\n/*:\n  ros__parameters: {seed: 4}\n": [],
    "/crazyflow:\n  ros__parameters:\n    seed: 4\n    wind: [0.0, 1.0]\n    a.b: c\n": [],
    # nothing for this node
    "/a/crazyflow:\n  ros__parameters:\n    seed: 4\n": ["/crazyflow, only of /a/crazyflow"],
    "/crazyflou:\n  ros__parameters:\n    seed: 4\n": ["/crazyflow, only of /crazyflou"],
    "": ["/crazyflow"],
}


@pytest.mark.parametrize(("text", "warnings"), GOOD.items())
def test_what_rcl_reads_is_accepted_and_told_if_it_is_not_for_this_node(
    tmp_path: Path, text: str, warnings: list[str]
) -> None:
    said = check(tmp_path, text)
    assert [line.partition("no parameters of ")[2] for line in said] == warnings
    context = rclpy.Context()
    context.init(["--ros-args", "--params-file", str(tmp_path / "p.yaml")])
    node = Node("crazyflow", context=context, automatically_declare_parameters_from_overrides=True)
    assert node.has_parameter("seed") == (not warnings)
    context.try_shutdown()


def test_remappings_change_the_name_of_the_node(tmp_path: Path) -> None:
    text = "/lab/sim:\n  ros__parameters:\n    seed: 4\n"
    assert check(tmp_path, text, "-r", "__ns:=/lab", "-r", "__node:=sim") == []
    assert "of /lab/crazyflow, only of /lab/sim" in check(tmp_path, text, "-r", "__ns:=/lab")[0]


def test_our_own_files_are_good() -> None:
    path = str(resource("config", "simulator.yaml"))
    assert check_parameter_files(["--ros-args", "--params-file", path], "crazyflow") == []


def test_a_missing_file_is_named_without_a_number_of_an_error() -> None:
    with pytest.raises(ValueError, match=r"^/no/p.yaml cannot be read: No such file"):
        check_parameter_files(["--ros-args", "--params-file", "/no/p.yaml"], "crazyflow")


def test_launch_files_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("/crazyflow:\n  freq: 500\n")
    with pytest.raises(ValueError, match=r"^params_file: .*'freq' is not under ros__parameters"):
        read_nodes("params_file", str(file))
