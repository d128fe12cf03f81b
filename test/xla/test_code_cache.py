"""The folder of compiled code: half entries, full disks, folders of others."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

COMPILE = """
import ctypes, os, pathlib, resource, signal, sys
from crazyflow_ros.xla.code_cache import CodeCache
folder, fault = pathlib.Path(sys.argv[1]), sys.argv[2]
if fault == "read-only":  # for root nothing is, without giving up what makes it root
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, nothing) == 0
cache = CodeCache(folder, lambda text: print("told:", text))
if fault == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
if "postponed" in fault:
    cache.postpone()
import jax, jax.numpy as jnp
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append("cache_hits" in event))

def compile():
    with jax.log_compiles(False):
        jax.jit(lambda x: jnp.sin(x) @ x.T)(jax.numpy.ones((30, 30)))
    print("hits:", sum(hits), flush=True)

compile()
if "postponed" in fault:
    print("entries:", len(list(folder.glob("*-cache"))))
    jax.clear_caches()
    compile()
if fault == "postponed, full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
if "killed" in fault:
    os.kill(os.getpid(), signal.SIGKILL)
cache.close()
"""


def compile_in(folder: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-c", COMPILE, str(folder), fault]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def entries(folder: Path) -> set[Path]:
    return set(folder.glob("*-cache"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all entries."""
    folder = tmp_path_factory.mktemp("compiled") / "cache"
    done = compile_in(folder)
    assert "told" not in done.stdout and done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Iterator[Path]:
    """The same folder, as JAX finds entries nowhere else; it is as before afterwards."""
    before = shutil.copytree(compiled, tmp_path / "before")
    yield compiled
    shutil.rmtree(compiled)
    shutil.copytree(before, compiled)


def test_entry_of_a_process_that_was_killed_while_it_wrote_is_written_anew(folder: Path) -> None:
    good = {entry: entry.read_bytes() for entry in entries(folder)}
    assert good and set(folder.iterdir()) == good.keys()
    first, *others = good
    first.unlink()
    assert compile_in(folder, "killed").returncode == -signal.SIGKILL
    os.truncate(first, len(good[first]) // 2)  # as if that had been within the last of its writes
    again = compile_in(folder)
    assert "told" not in again.stdout and again.returncode == 0, again.stderr
    assert first.stat().st_size > 0.9 * len(good[first])
    assert {entry.read_bytes() for entry in others} == {good[entry] for entry in others}
    assert f"hits: {len(good)}" in compile_in(folder).stdout
    assert set(folder.iterdir()) == good.keys()


def test_entries_that_are_postponed_are_found_at_once_and_written_in_the_end(
    compiled: Path, tmp_path: Path
) -> None:
    number = len(entries(compiled))
    assert number
    folder = tmp_path / "postponed"
    postponed = compile_in(folder, "postponed")
    assert postponed.stdout.split("\n")[:3] == ["hits: 0", "entries: 0", f"hits: {number}"]
    assert len(entries(folder)) == number and entries(folder) == set(folder.iterdir())
    assert f"hits: {number}" in compile_in(folder).stdout


def test_entries_that_are_postponed_are_lost_with_the_process(tmp_path: Path) -> None:
    assert compile_in(tmp_path, "postponed, killed").returncode == -signal.SIGKILL
    assert not entries(tmp_path)
    again = compile_in(tmp_path)
    assert "hits: 0" in again.stdout and "told" not in again.stdout


def test_disk_that_is_full_when_postponed_entries_are_written_is_told_once(tmp_path: Path) -> None:
    full = compile_in(tmp_path, "postponed, full")
    assert full.returncode == 0 and full.stdout.count("told:") == 1, full.stderr
    assert "cannot be written (OSError: [Errno 27] File too large" in full.stdout
    assert "Warning" not in full.stderr
    assert "told" not in compile_in(tmp_path).stdout
    assert "hits: 0" not in compile_in(tmp_path).stdout


def test_full_disk_is_told_once_and_leaves_nothing_half(tmp_path: Path) -> None:
    full = compile_in(tmp_path, "full")
    assert full.returncode == 0 and full.stdout.count("told:") == 1, full.stderr
    assert "cannot be written (OSError: [Errno 27] File too large" in full.stdout
    assert f"the compilation cache {tmp_path} " in full.stdout
    assert "Warning" not in full.stderr
    assert "told" not in compile_in(tmp_path).stdout
    assert "hits: 0" not in compile_in(tmp_path).stdout


def test_read_only_folder_is_told_once_and_read(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o555)
    nothing_yet = compile_in(empty, "read-only")
    assert nothing_yet.returncode == 0 and nothing_yet.stdout.count("told:") == 1
    assert "cannot be written (Permission denied)" in nothing_yet.stdout
    assert "Warning" not in nothing_yet.stderr and not entries(empty)
    folder.chmod(0o555)
    assert f"hits: {len(entries(folder))}" in compile_in(folder, "read-only").stdout


def test_entry_that_cannot_be_read_is_told_once_and_is_whole_the_next_time(folder: Path) -> None:
    for entry in entries(folder):
        os.truncate(entry, 50)
        os.utime(entry, (1, 1))  # long ago
    assert compile_in(folder).stdout.count("told:") == 1
    assert "told" not in compile_in(folder).stdout
    assert f"hits: {len(entries(folder))}" in compile_in(folder).stdout


def test_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    assert "is writable for everybody and is not used" in compile_in(folder).stdout
    assert not entries(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    assert "belongs to another user (12345) and is not used" in compile_in(folder).stdout
    assert not entries(folder)


def test_no_folder_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = compile_in(tmp_path / "file" / "cache").stdout
    assert said.count("told:") == 1 and "cannot be created (Not a directory)" in said
