"""What is said of the start beforehand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from crazyflow_ros.xla.compiled_files import CompiledFiles
from crazyflow_ros.xla.start_up import StartUp, process_age, telling


def start(folder: Path, *what: object, compiles: bool = False) -> str:
    """What is said of one start."""
    said: list[str] = []
    files = CompiledFiles(folder, print)
    with StartUp(files, said.append).compiling(*what):
        files.n_compiled += compiles
    (text,) = said
    return text


def test_it_says_what_the_last_start_has_taken(tmp_path: Path) -> None:
    assert start(tmp_path, "a", compiles=True).startswith("compiling, which takes 10 to 60 s")
    assert start(tmp_path, "a") == "loading compiled code"
    assert start(tmp_path, "a") == "loading compiled code, which took 0.0 s the last time"
    assert start(tmp_path, "b").startswith("compiling, which takes 10 to 60 s")  # another setup


def test_starts_at_the_same_time_forget_nothing_of_one_another(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path, print)
    with StartUp(files, print).compiling("a"):
        start(tmp_path, "b", compiles=True)
    assert start(tmp_path, "a").startswith("loading compiled code")
    assert start(tmp_path, "b").startswith("loading compiled code")


def test_another_version_compiles_what_the_last_one_has_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "a", compiles=True)
    monkeypatch.setattr("crazyflow_ros.xla.start_up.source", lambda: "another version")
    assert start(tmp_path, "a").startswith("compiling, which took 0.0 s the last time")
    assert start(tmp_path, "a").startswith("loading compiled code, which took")


def test_what_is_kept_may_be_anything(tmp_path: Path) -> None:
    file = tmp_path / "start_up.json"
    for content in ("", "[", "[1]", '{"a": "x"}', "[" * 50_000):
        file.write_text(content)
        assert start(tmp_path, "a").startswith("compiling, which takes 10 to 60 s")
        assert len(json.loads(file.read_text())) == 1
    assert start(file / "nowhere", "a").startswith("compiling")


def test_what_takes_long_is_told_again_and_again_until_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crazyflow_ros.xla.start_up._PERIOD", 0.01)
    said, often = list[str](), threading.Event()

    def note(text: str) -> None:
        said.append(text)
        if len(said) > 3:
            often.set()

    with StartUp(CompiledFiles(tmp_path, print), note).compiling("a"):
        assert often.wait(60)
    count = len(said)
    assert said[0].startswith("compiling, which takes 10 to 60 s")
    assert all(text.startswith("still compiling the physics, for ") for text in said[1:])
    threads = [thread.name for thread in threading.enumerate()]
    assert "progress" not in threads and len(said) == count


def test_what_is_done_at_once_is_not_told() -> None:
    said: list[str] = []
    with telling("something", said.append):
        pass
    assert said == []


# To fold it, XLA's interpreter needs some seconds.
SLOW = """
import jax
def slow(x):
    y = jax.numpy.arange(1500.0)
    return x + jax.lax.reduce_window(y, 0.0, jax.lax.add, (5000,), (1,), "SAME").sum()
jax.jit(slow).lower(1.0).compile()
"""


@pytest.mark.parametrize("is_silenced", [False, True])
def test_alarms_about_slow_compilations_can_be_silenced(is_silenced: bool) -> None:
    before = "from crazyflow_ros.xla.flags import silence_alarms; silence_alarms()"
    script = (before if is_silenced else "") + SLOW
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert ("slow_operation_alarm" in done.stderr) == (not is_silenced)


@pytest.mark.parametrize("program", ["", ".learn", ".crazyflie"])
def test_programs_silence_the_alarms(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as they can: JAX reads the variable when it is imported."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with pytest.raises(SystemExit):
        import_module(f"crazyflow_ros{program}.__main__").main(["--help"])
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


def test_a_process_knows_its_age() -> None:
    assert 0 < process_age() < 24 * 3600
