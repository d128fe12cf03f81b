"""Forms and compiled functions kept between starts: found again, never confused, never trusted."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.compiler import CacheEntries

FLY = """
import sys, pathlib
import jax, numpy as np
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.xla.code_cache import CodeCache

folder, freq, shapes, model = pathlib.Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5]
cache = CodeCache(folder, lambda text: print("told:", text))
if folder.name != "none":
    cache.keep_traces()
box = Obstacles.create(["box"], [[1.0, 1.0, 0.1]], [[0.0, 0.0, -0.03]], slots=1)
traces = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: traces.append(event) if "trace" in event else None
)
config = SimulationConfig(drone_model=model, control="rotor_vel", freq=freq)
engine = Engine(config, ["cf0", "cf1"])
if shapes == "box":
    engine.world.use(box)
engine.set_commands(["cf0"], np.full((1, 4), 21.5e3))
end = engine.advance(1, [100, 100], 0)[-1]
print("flown:", np.hstack((end.pos, end.rotor_vel)).tobytes().hex())
print("traces:", len(traces))
cache.close()
"""


def fly(
    folder: Path, freq: int = 500, shapes: str = "none", drone: str | Path = "cf2x_L250"
) -> tuple[str, int, str]:
    """Return the flown states, the number of functions that were traced, and what was told."""
    run = [sys.executable, "-c", FLY, str(folder), str(freq), shapes, str(drone)]
    quickly = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}  # to compile
    done = subprocess.run(run, env=quickly, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    return lines["flown"], int(lines["traces"]), lines.get("told", "")


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("kept-*"))


@pytest.fixture(scope="module")
def unkept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """States of a flight for which nothing was kept."""
    return fly(tmp_path_factory.mktemp("unkept") / "none")[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, unkept: str) -> Path:
    """A folder in which such a flight is kept."""
    folder = tmp_path_factory.mktemp("kept")
    flown, traces, told = fly(folder)
    assert flown == unkept and traces and not told
    assert len(files(folder)) == 2
    return folder


def test_a_second_start_traces_nothing_and_flies_the_same_bits(folder: Path, unkept: str) -> None:
    assert fly(folder) == (unkept, 0, "")


def test_another_rate_obstacle_or_drone_is_not_confused_with_it(
    folder: Path, tmp_path: Path, unkept: str
) -> None:
    from crazyflow_ros.drones.folders import FIGURES, folder_of

    own = tmp_path / "own"
    own.mkdir()
    figures = (folder_of("cf2x_L250") / FIGURES).read_text()
    (own / FIGURES).write_text(figures)
    same = fly(folder, drone=own)
    assert same[0] == unkept and same[1]
    assert fly(folder, drone=own)[1] == 0
    mass = next(line for line in figures.splitlines() if line.startswith("mass"))
    (own / FIGURES).write_text(figures.replace(mass, "mass = 0.025"))
    heavier, rate, box = fly(folder, drone=own), fly(folder, freq=1000), fly(folder, shapes="box")
    assert len({unkept, heavier[0], rate[0], box[0]}) == 4
    assert heavier[1] and rate[1] and box[1]
    assert fly(folder, shapes="box") == (box[0], 0, "")
    assert fly(folder) == (unkept, 0, "")


def test_damaged_file_is_told_and_replaced(folder: Path, unkept: str) -> None:
    for file in files(folder):
        good = file.read_bytes()
        file.write_bytes(good[:-10])
        os.utime(file, (0, 0))
    flown, traces, told = fly(folder)
    assert flown == unkept and traces
    assert "it is damaged" in told and str(folder) in told
    assert fly(folder) == (unkept, 0, "")


def test_code_that_is_gone_is_compiled_anew(folder: Path, unkept: str) -> None:
    for entry in folder.glob("*-cache"):
        entry.unlink()
    flown, traces, told = fly(folder)
    assert flown == unkept and traces and not told
    assert fly(folder) == (unkept, 0, "")


class Store:
    """Results kept in this process."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.told: list[str] = []
        self.folder = folder
        told = self.told.append
        store = compiled_files._Store(folder, CacheEntries.__new__(CacheEntries), told, told)
        patch.setattr(compiled_files, "_store", store)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(tmp_path, monkeypatch)


def test_result_is_found_by_all_that_describes_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_files.keep(np.arange(3), "form", 500)
    assert compiled_files.find("form", 500).tolist() == [0, 1, 2]
    assert compiled_files.find("form", 250) is None
    with jax.enable_x64(True):
        assert compiled_files.find("form", 500) is None
    monkeypatch.setattr(compiled_files, "surroundings", lambda: "another version")
    assert compiled_files.find("form", 500) is None and not store.told


def test_file_that_others_can_write_to_is_not_read(store: Store) -> None:
    compiled_files.keep(1, "form")
    (file,) = files(store.folder)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o620)
    assert compiled_files.find("form") is None
    assert store.told == [f"{file} is not used and is replaced: other users can write to it"]
    compiled_files.keep(2, "form")
    assert compiled_files.find("form") == 2


def _owned_by(user: int) -> Callable[[int], os.stat_result]:
    """Return `os.fstat` for files of another user."""
    fstat = os.fstat

    def changed(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        status[stat.ST_UID] = user
        return os.stat_result(status)

    return changed


def test_file_of_another_user_is_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_files.keep(1, "form")
    monkeypatch.setattr(os, "fstat", _owned_by(54321))
    assert compiled_files.find("form") is None
    assert "it belongs to another user (54321)" in store.told[0]


def test_least_used_files_are_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_files, "_MOST_FILES", 3)
    for i in range(3):
        compiled_files.keep(i, i)
        (file,) = (x for x in files(store.folder) if x.stat().st_mtime > 1e6)
        os.utime(file, (i + 1, i + 1))
    assert compiled_files.find(0) == 0  # used now
    compiled_files.keep(3, 3)
    assert [compiled_files.find(i) for i in range(4)] == [0, None, 2, 3] and not store.told


def test_folder_that_cannot_be_written_is_told(store: Store) -> None:
    store.folder.rmdir()
    compiled_files.keep(1, "form")
    assert store.told == ["No such file or directory"]
