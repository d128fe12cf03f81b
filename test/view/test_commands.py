"""Commands on the page work where and how the user has started it."""

import sys
from pathlib import Path

import pytest

from crazyflow_ros.view.status_line import command_of, page_of


def started(
    monkeypatch: pytest.MonkeyPatch, python: str, script: str = "/x/crazyflow_ros/__main__.py"
) -> None:
    """A page that was started with this program, which runs this script."""
    monkeypatch.setattr(sys, "orig_argv", [python, "-m", "crazyflow_ros", "view"])
    monkeypatch.setattr(sys, "argv", [script, "view"])


@pytest.mark.parametrize(
    ("python", "shown"),
    [
        ("python", "python"),  # of an environment that is activated
        (".venv/bin/python", ".venv/bin/python"),
        ("../other env/bin/python3", "'../other env/bin/python3'"),
        ("{here}/env/bin/python", "env/bin/python"),  # as make and other programs start it
        ("/opt/env/bin/python", "/opt/env/bin/python"),
    ],
)
def test_the_python_is_the_one_that_runs_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, python: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    started(monkeypatch, python.format(here=tmp_path))
    assert command_of() == f"{shown} -m crazyflow_ros"
    assert page_of("/lab/second") == (
        f"{shown} -m crazyflow_ros view --node second --namespace /lab"
    )
    assert page_of("NAME") == f"{shown} -m crazyflow_ros view --node NAME"


def test_what_ros2_run_has_started_names_ros2_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started(monkeypatch, "/usr/bin/python3", "/opt/ws/install/lib/crazyflow_ros/view")
    assert command_of() == "ros2 run crazyflow_ros simulator"
    assert page_of("/second") == "ros2 run crazyflow_ros view --node second"
