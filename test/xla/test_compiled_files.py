"""Traced and compiled results in files: found again, never confused, never trusted."""

from __future__ import annotations

import gc
import math
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax_cache import without_jax_cache

from crazyflow_ros.utils import enable_cache
from crazyflow_ros.xla import compiled_files, kept_files
from crazyflow_ros.xla.compiled_files import CompiledFiles
from crazyflow_ros.xla.start_up import StartUp
from crazyflow_ros.xla.struct import Struct, static_field

FLY = """
import sys
import jax, numpy as np
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.xla.compiled_files import open_cache

keeps, *kinds = sys.argv[1:]
if keeps == "kept":
    open_cache(lambda text: print("told:", text))
box = Obstacles.create(["box"], [[1.0, 1.0, 0.1]], [[0.0, 0.0, -0.03]], slots=1)
traces = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: traces.append(event) if "trace" in event else None
)
for kind in kinds:
    traces.clear()
    freq, shapes, model = kind.split(",")
    config = SimulationConfig(drone_model=model, control="rotor_vel", freq=int(freq))
    engine = Engine(config, ["cf0", "cf1"])
    if shapes == "box":
        engine.world.use(box)
    engine.set_commands(["cf0"], rows(Level.rotor_vel, np.full((1, 4), 21.5e3)))
    end = engine.advance(1, [250, 250], 0)[-1]
    flown = end.pos, end.quat, end.vel, end.ang_vel, end.rotor_vel
    print("flown:", len(traces), np.hstack(flown).tobytes().hex())
"""
# Fast to compile, and with a device that nothing runs on.
FLAGS = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=2"


class Flights:
    """Flights in a process of its own, with files in a folder or without."""

    def __init__(self, folder: Path | None, *kinds: str) -> None:
        run = [sys.executable, "-c", FLY, "kept" if folder else "unkept", *kinds]
        environment = os.environ | {"XLA_FLAGS": FLAGS, "XDG_CACHE_HOME": str(folder)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(run, env=environment, **pipes)

    def end(self) -> tuple[list[str], list[int], str]:
        """The flown states, the numbers of functions that were traced, and what was told."""
        output, errors = self._process.communicate(timeout=300)
        assert self._process.returncode == 0, errors
        lines = [line.split(": ", 1) for line in output.splitlines()]
        traces, flown = zip(*(text.split() for name, text in lines if name == "flown"))
        told = [text for name, text in lines if name == "told"]
        return list(flown), list(map(int, traces)), told[-1] if told else ""


USUAL = "500,none,cf2x_L250"


def fly(folder: Path | None, *kinds: str) -> tuple[list[str], list[int], str]:
    return Flights(folder, *(kinds or [USUAL])).end()


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("compiled-*"))


def test_a_second_start_traces_nothing_and_flies_the_same_bits_but_not_of_another_kind(
    tmp_path: Path,
) -> None:
    """Two processes keep a flight at the same time; others, a third."""
    from crazyflow_ros.drones.folders import FIGURES, folder_of

    (unkept,) = fly(None)[0]
    folder = tmp_path / "kept"
    for flight in [Flights(folder, USUAL), Flights(folder, USUAL)]:
        flown, _, told = flight.end()
        assert flown == [unkept] and not told
    assert len(files(folder)) == len([*(folder / "crazyflow_ros").iterdir()]) == 3

    figures = (folder_of("cf2x_L250") / FIGURES).read_text()
    mass = next(line for line in figures.splitlines() if line.startswith("mass"))
    for name, text in (("same", figures), ("heavy", figures.replace(mass, "mass = 0.025"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / FIGURES).write_text(text)
    same, heavy = (f"500,none,{tmp_path / name}" for name in ("same", "heavy"))
    flown, traces, _ = fly(folder, same, heavy, "1000,none,cf2x_L250", "500,box,cf2x_L250")
    assert flown[0] == unkept and all(traces)
    assert len(set(flown)) == 4
    assert fly(folder) == ([unkept], [0], "")

    for file in files(folder):
        file.write_bytes(file.read_bytes()[:-10])
    flown, traces, told = fly(folder)
    assert flown == [unkept] and traces[0]
    assert "it is damaged" in told and str(folder) in told
    assert fly(folder) == ([unkept], [0], "")


ONES = np.ones(3, np.float32)


class Process:
    """What one process knows of a folder."""

    def __init__(self, folder: Path) -> None:
        self.told: list[str] = []
        self.files = CompiledFiles(folder, self.told.append)

    def times(self, factor: float) -> Callable[[np.ndarray], jax.Array]:
        """A compiled multiplication, tried."""
        program = self.files.compiled(lambda: lambda x: x * factor, [ONES], "times", factor)
        np.testing.assert_array_equal(program(ONES), factor * ONES)
        return program


def programs(folder: Path) -> list[Path]:
    """The files with code, which are longer than others here."""
    return [file for file in files(folder) if file.stat().st_size > 1000]


def test_code_that_is_gone_is_compiled_anew(tmp_path: Path) -> None:
    Process(tmp_path).times(2)
    (code,) = programs(tmp_path)
    code.unlink()
    second, third = Process(tmp_path), Process(tmp_path)
    second.times(2)
    third.times(2)
    assert (second.files.n_compiled, third.files.n_compiled) == (1, 0) and not second.told


def test_another_source_traces_but_does_not_compile_the_same_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Process(tmp_path).times(2)
    monkeypatch.setattr(compiled_files, "source", lambda: "another version")
    later = Process(tmp_path)
    later.times(2)
    assert later.files.n_compiled == 0 and len(programs(tmp_path)) == 1
    later.times(3)
    assert later.files.n_compiled == 1
    monkeypatch.setattr(compiled_files, "machine", lambda: "another processor")
    elsewhere = Process(tmp_path)
    elsewhere.times(2)
    assert elsewhere.files.n_compiled == 1


class Scaled(Struct):
    """An argument of which the compiled code may not depend on everything."""

    x: Any
    factor: int = static_field()


SAME_TEXT: dict[str, list[tuple[Callable[..., Any], list[Any]]]] = {
    "arguments that are used": [
        (lambda x, y: x * 2.0, [ONES, 3 * ONES]),
        (lambda x, y: y * 2.0, [ONES, 3 * ONES]),
    ],
    "structures of arguments": [
        (lambda x: x[0] * 2.0, [(ONES,)]),
        (lambda x: x[0] * 2.0, [[ONES]]),
        (lambda x: x["a"] * 2.0, [{"a": ONES}]),
    ],
    "parts of structures that are no arrays": [
        (lambda s: s.x * 2.0, [Scaled(ONES, 3)]),
        (lambda s: s.x * 2.0, [Scaled(ONES, 4)]),
    ],
    "structures of results": [
        (lambda x: Scaled(x * 2.0, 3), [ONES]),
        (lambda x: Scaled(x * 2.0, 4), [ONES]),
    ],
    "shapes of arguments that are not used": [
        (lambda x, y: x * 2.0, [ONES, np.ones(4)]),
        (lambda x, y: x * 2.0, [ONES, np.ones((2, 2), np.int32)]),
    ],
}


@pytest.mark.parametrize("differs", SAME_TEXT)
@pytest.mark.parametrize("named", [True, False])
def test_programs_that_differ_only_in_what_they_take_and_return_are_not_confused(
    differs: str, named: bool, tmp_path: Path
) -> None:
    for _ in range(2):  # processes
        process = Process(tmp_path)
        for number, (fn, arguments) in enumerate(SAME_TEXT[differs]):
            what = ["same text", differs, number] if named else []
            program = process.files.compiled(lambda fn=fn: fn, arguments, *what)
            ours, right = program(*arguments), fn(*arguments)
            assert jax.tree.structure(ours) == jax.tree.structure(right)
            jax.tree.map(np.testing.assert_array_equal, ours, right)
        assert not process.told
    assert process.files.n_compiled == 0


def test_programs_for_other_devices_are_not_confused(tmp_path: Path) -> None:
    """In a process of its own, which has two devices."""
    program = f"""if True:
        import jax
        from pathlib import Path
        from crazyflow_ros.xla.compiled_files import CompiledFiles
        files = CompiledFiles(Path({str(tmp_path)!r}), lambda text: print("told:", text))
        for device in jax.devices():
            x = jax.device_put(1.5, device)
            twice = files.compiled(lambda: lambda x: 2 * x, [x], "twice")
            print(twice(x), *(device.id for device in twice(x).devices()))
    """
    for _ in range(2):
        run = [sys.executable, "-c", program]
        environment = os.environ | {"XLA_FLAGS": FLAGS}
        done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines() == ["3.0 0", "3.0 1"], done.stderr


def test_a_copy_of_another_file_is_told_and_replaced(tmp_path: Path) -> None:
    """Whether it is code or its name."""
    Process(tmp_path).times(2)
    code, name = sorted(files(tmp_path), key=lambda file: -file.stat().st_size)
    others = tmp_path / "others"
    Process(others).times(3)
    other_code, other_name = sorted(files(others), key=lambda file: -file.stat().st_size)
    for mine, other in ((code, other_code), (name, other_name)):
        mine.write_bytes(other.read_bytes())
        for n_told in (1, 0):
            process = Process(tmp_path)
            process.times(2)
            assert len(process.told) == n_told and process.files.n_compiled <= n_told
            assert all(str(mine) in told and "copy" in told for told in process.told)


def test_the_programs_used_last_stay_loaded(tmp_path: Path) -> None:
    process = Process(tmp_path)
    first, second = process.times(0.5), process.times(1)
    for factor in range(2, compiled_files._MOST_LOADED + 1):
        assert process.times(0.5) is first
        process.times(factor)
    assert process.times(0.5) is first
    assert process.times(1) is not second
    assert process.files.n_compiled == compiled_files._MOST_LOADED + 1 and not process.told


def test_postponed_code_is_found_at_once_and_written_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_files, "_WRITING", math.inf)
    process, number = Process(tmp_path), compiled_files._MOST_LOADED + 2
    process.files.postpone()
    for factor in [*range(number), *range(number)]:
        process.times(factor)
    assert process.files.n_compiled == number and not programs(tmp_path)
    process.files.close()
    assert len(programs(tmp_path)) == number
    later = Process(tmp_path)
    later.times(0)
    assert later.files.n_compiled == 0


def test_postponed_code_does_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where worlds are loaded for days: a camera compiles for each of them."""
    monkeypatch.setattr(compiled_files, "_WRITING", math.inf)
    process, most = Process(tmp_path), compiled_files._MOST_UNWRITTEN
    process.files.postpone()
    made = []
    for factor in range(most + 2 * compiled_files._MOST_LOADED):
        made.append(weakref.ref(process.times(factor)))
    gc.collect()
    assert sum(program() is not None for program in made) <= most + compiled_files._MOST_LOADED
    process.files.close()
    assert len(programs(tmp_path)) == most


def test_code_for_which_the_end_has_no_time_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_files, "_WRITING", 0.0)
    process, later = Process(tmp_path), Process(tmp_path)
    process.files.postpone()
    process.times(2)
    process.files.close()
    assert not programs(tmp_path)
    later.times(2)
    assert later.files.n_compiled == 1 and not later.told


def test_code_that_jax_has_in_its_own_cache_is_not_kept_twice(tmp_path: Path) -> None:
    """Serialised again it would fail when it is called."""
    with without_jax_cache():
        enable_cache(tmp_path / "jax")
        first = Process(tmp_path / "first")
        first.times(2)
        assert programs(tmp_path / "first")
        for _ in range(2):
            second = Process(tmp_path / "second")
            second.times(2)
            assert not programs(tmp_path / "second") and not second.told


def test_a_function_that_jax_cannot_serialise_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise NotImplementedError("constants")

    monkeypatch.setattr(serialize_executable, "serialize", refuse)
    process = Process(tmp_path)
    process.times(2)
    (told,) = process.told
    assert "constants" in told and not programs(tmp_path)


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def test_result_is_found_by_all_that_describes_it(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(10))

    def traced(freq: int) -> int:
        return process.files.traced(lambda: next(numbers), "form", freq)

    assert [traced(500), traced(500), traced(250), traced(500)] == [0, 0, 1, 0]
    with jax.enable_x64(True):
        assert traced(500) == 2
    monkeypatch.setattr(compiled_files, "source", lambda: "another version")
    assert traced(500) == 3 and not process.told


def test_file_that_others_can_write_to_is_not_read(process: Process, tmp_path: Path) -> None:
    assert process.files.traced(lambda: 1, "form") == 1
    (file,) = files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o620)
    assert process.files.traced(lambda: 2, "form") == 2
    (told,) = process.told
    assert told.startswith(f"{file} ") and "other users can write to it" in told
    assert process.files.traced(lambda: 3, "form") == 2


def _owned_by(user: int) -> Callable[[int], os.stat_result]:
    """Return `os.fstat` for files of another user."""
    fstat = os.fstat

    def changed(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        status[stat.ST_UID] = user
        return os.stat_result(status)

    return changed


def test_file_of_another_user_is_not_read(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.files.traced(lambda: 1, "form")
    monkeypatch.setattr(os, "fstat", _owned_by(54321))
    assert process.files.traced(lambda: 2, "form") == 2
    assert "another user (54321)" in process.told[0]


def test_least_used_files_are_removed(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(3):
        process.files.traced(lambda: "old", i)
        (file,) = (x for x in files(tmp_path) if x.stat().st_mtime > time.time() - 1000)
        os.utime(file, (time.time() - 5000 + i,) * 2)
    monkeypatch.setattr(kept_files, "_MOST_BYTES", sum(x.stat().st_size for x in files(tmp_path)))
    assert process.files.traced(lambda: "new", 0) == "old"  # used now
    process.files.traced(lambda: "old", 3)
    assert len(files(tmp_path)) == 3
    monkeypatch.undo()
    found = [process.files.traced(lambda: "new", i) for i in range(4)]
    assert found == ["old", "new", "old", "old"] and not process.told


def test_a_writer_that_is_killed_leaves_nothing_for_long(process: Process, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    program = f"""if True:
        import os, signal
        from crazyflow_ros.checks import files
        files.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        files.write_file({str(tmp_path / "compiled-0")!r}, bytes(1000))
    """
    killed = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    (part,) = {*tmp_path.iterdir()} - {tmp_path / "mine.txt"}
    Process(tmp_path)
    assert part.exists()  # somebody may be writing it
    os.utime(part, (time.time() - 7200,) * 2)
    Process(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_what_nobody_has_used_for_months_is_removed(process: Process, tmp_path: Path) -> None:
    process.files.traced(lambda: "old", "used")
    process.files.traced(lambda: "old", "unused")
    for file in files(tmp_path):
        os.utime(file, (time.time() - 80 * 86400,) * 2)
    assert process.files.traced(lambda: "new", "used") == "old"
    (unused,) = (file for file in files(tmp_path) if file.stat().st_mtime < time.time() - 86400)
    os.utime(unused, (time.time() - 100 * 86400,) * 2)
    Process(tmp_path)
    assert not unused.exists() and len(files(tmp_path)) == 1


def test_full_disk_is_told_once_and_leaves_nothing_half(process: Process, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        process.times(2)
        process.times(3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (told,) = process.told
    assert str(tmp_path) in told and "cannot be written (File too large)" in told
    assert not [*tmp_path.iterdir()]


def test_read_only_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    Process(tmp_path).times(2)
    monkeypatch.setattr(kept_files, "write_file", refuse)  # root may write anywhere
    monkeypatch.setattr(os, "utime", refuse)
    process = Process(tmp_path)
    process.times(2)
    assert process.files.n_compiled == 0 and not process.told
    process.times(3)
    (told,) = process.told
    assert "cannot be written (Permission denied)" in told


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_folder_that_others_can_write_is_not_used(mode: int, tmp_path: Path) -> None:
    Process(tmp_path).times(2)
    kept = files(tmp_path)
    tmp_path.chmod(mode)
    process = Process(tmp_path)
    process.times(2)
    process.times(2)
    (told,) = process.told
    assert str(tmp_path) in told and "writable for others" in told
    assert process.files.n_compiled == 1 and files(tmp_path) == kept


@pytest.mark.parametrize("mask", [0o002, 0o022, 0o077])
def test_others_can_neither_read_nor_write_what_is_kept(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "old").mkdir(mode=0o755)
        for folder in (tmp_path / "old", tmp_path / "new"):
            process = Process(folder)
            process.files.traced(lambda: 1, "form")
            with StartUp(process.files, print).compiling("form"):
                pass
            assert not process.told
    finally:
        os.umask(before)
    for folder in (tmp_path / "old", tmp_path / "new"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (*_, times) = written = [*folder.iterdir()]
        assert len(written) == 2 and times
        assert {stat.S_IMODE(file.stat().st_mode) for file in written} == {0o600}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    process = Process(tmp_path)
    assert process.files.traced(lambda: 1, "form") == 1
    (told,) = process.told
    assert "another user (12345)" in told and not files(tmp_path)


def test_no_folder_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = Process(tmp_path / "file" / "cache")
    assert process.files.traced(lambda: 1, "form") == 1
    (told,) = process.told
    assert "cannot be created (Not a directory)" in told
