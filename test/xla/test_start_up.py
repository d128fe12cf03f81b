"""What is said of the start beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crazyflow_ros.xla.compiled_files import CompiledFiles
from crazyflow_ros.xla.start_up import StartUp, process_age


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


def test_the_time_of_another_setup_says_nothing(tmp_path: Path) -> None:
    start(tmp_path, "a", compiles=True)
    assert start(tmp_path, "b", compiles=True).startswith("compiling, which takes 10 to 60 s")


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


def test_a_process_knows_its_age() -> None:
    assert 0 < process_age() < 24 * 3600
