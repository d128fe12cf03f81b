"""The command line in a terminal: completion by real shells, narrow windows, colours, Ctrl-C."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_processes import command
from paths import ROOT

from crazyflow_ros.client.command_line.command_list import overview
from crazyflow_ros.client.command_line.text import table

pytest.importorskip("shtab", reason="the extra completion is not installed")

COMPLETE = """
source {script}
COMP_WORDS=({words} "{begun}")
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
cd {folder}
$(complete -p crazyflow_ros | sed -E 's/.*-F (\\w+).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "script"
    done = command("completion bash")
    assert done.returncode == 0
    path.write_text(done.stdout)
    return path


@pytest.mark.parametrize(
    ("words", "begun", "completed"),
    [
        ("", "ta", {"takeoff"}),
        ("", "w", {"wind", "world"}),
        ("", "doc", {"doctor"}),
        ("world", "", {"list", "current", "load", "unload"}),
        ("takeoff cf0", "--dur", {"--duration"}),
        ("list", "--na", {"--namespace"}),
        ("completion", "", {"bash", "zsh"}),
        ("param load", "gain", {"gains.yaml"}),
        ("view", "fli", {"flight.mcap"}),
    ],
)
def test_bash_completes_commands_options_and_files(
    script: Path, tmp_path: Path, words: str, begun: str, completed: set[str]
) -> None:
    for file in ("gains.yaml", "flight.mcap"):
        (tmp_path / file).touch()
    words = f".venv/bin/crazyflow_ros {words}"
    code = COMPLETE.format(script=script, words=words, begun=begun, folder=tmp_path)
    done = subprocess.run(["bash", "-c", code], text=True, capture_output=True)
    assert {word.strip() for word in done.stdout.splitlines()} - {"-h", "--help"} == completed


def test_zsh_reads_its_script(tmp_path: Path) -> None:
    if (zsh := shutil.which("zsh")) is None:
        pytest.skip("zsh is not installed")
    path = tmp_path / "_crazyflow_ros"
    path.write_text(command("completion zsh").stdout)
    subprocess.run([zsh, "-n", path], check=True)
    code = f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u"
    code += "; echo $_comps[crazyflow_ros]"
    done = subprocess.run([zsh, "-fc", code], text=True, capture_output=True, check=True)
    assert done.stdout.strip() == "_crazyflow_ros"


@pytest.mark.parametrize("columns", [10, 40, 60])
def test_in_a_narrow_terminal_tables_keep_all_words_within_its_width(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    rows = [("cf0", "flying", "(-0.50, -0.50, 1.00) m", "3.97 V, 98% of a battery that is full")]
    whole, helped = table(rows), overview()
    monkeypatch.setenv("COLUMNS", str(columns))
    for wide, narrow in ((whole, table(rows)), (helped, overview())):
        assert narrow.split() == wide.split()
        assert max(map(len, narrow.splitlines())) <= max(columns, 32)


@pytest.mark.parametrize(
    ("variables", "has_colours"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "RCUTILS_COLORIZED_OUTPUT": "1"}, True),
    ],
)
def test_the_log_of_ros_has_colours_as_the_user_wants(
    variables: dict[str, str], *, has_colours: bool
) -> None:
    pytest.importorskip("rclpy")
    assert (b"\x1b[" in log(variables, is_terminal=True)) == has_colours


def test_colours_can_be_had_without_a_terminal() -> None:
    pytest.importorskip("rclpy")
    assert b"\x1b[" not in log({}, is_terminal=False)
    assert b"\x1b[" in log({"FORCE_COLOR": "1"}, is_terminal=False)


def log(variables: dict[str, str], *, is_terminal: bool) -> bytes:
    """What a process with these variables writes when it logs a warning."""
    code = (
        "from crazyflow_ros.ros.middleware import configure_middleware; configure_middleware()\n"
        "from rclpy.logging import get_logger; get_logger('drone').warning('low battery')"
    )
    names = ("NO_COLOR", "FORCE_COLOR", "RCUTILS_COLORIZED_OUTPUT")
    env = {name: value for name, value in os.environ.items() if name not in names} | variables
    if not is_terminal:
        run = [sys.executable, "-c", code]
        return subprocess.run(run, env=env, stderr=subprocess.PIPE, check=True).stderr
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as reader, os.fdopen(theirs, "wb") as terminal:
        subprocess.run([sys.executable, "-c", code], env=env, stderr=terminal, check=True)
        return reader.read(4096)


@pytest.mark.parametrize("program", ["identification", "ros.recording.replay"])
def test_ctrl_c_during_imports_ends_a_program_without_a_traceback(
    program: str, tmp_path: Path
) -> None:
    interrupt = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "numpy.py").write_text(interrupt)  # which they import
    run = [sys.executable, "-m", f"crazyflow_ros.{program}"]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    default = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    done = subprocess.run(run, env=env, preexec_fn=default, text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
