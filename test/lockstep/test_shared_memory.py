"""What may be in the way of a segment of shared memory: refused by the parameter that names it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crazyflow_ros.lockstep.shared_memory import FOLDER, NameInUse, SharedMemory

ADVICE = "choose another one with the parameter ros2_control.shared_memory"


@pytest.fixture
def path() -> Iterator[Path]:
    """Of a segment whose name nobody else has."""
    path = FOLDER / f"crazyflow_ros.test.{os.getpid()}"
    yield path
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def name_of(path: Path) -> str:
    return path.name.removeprefix("crazyflow_ros.")


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link", "link"])
def test_something_else_at_its_path_is_refused_and_left_alone(
    path: Path, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "target"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("mine")
    memory = SharedMemory(name_of(path), ["cf0"])
    with pytest.raises(NameInUse, match=f"{path} is not a shared memory segment; .*{ADVICE}"):
        memory.publish()
    memory.close()
    assert os.path.lexists(path) and (kind != "link" or target.read_text() == "mine")


FROM_ANOTHER_USER = """
import os, sys
from crazyflow_ros.lockstep.shared_memory import SharedMemory
memory = SharedMemory(sys.argv[1], ["cf0"])
if os.getuid() == 0:
    os.setuid(65534)
try:
    memory.publish()
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("is_running", [True, False])
def test_segment_of_another_user_is_refused_with_his_name(path: Path, is_running: bool) -> None:
    """Whoever runs the tests as nobody but himself has no rights to his own file instead."""
    mine = SharedMemory(name_of(path), ["cf0"])
    mine.publish()
    if os.getuid() != 0:
        path.chmod(0)
    if not is_running:
        os.close(mine._file)
    run = [sys.executable, "-c", FROM_ANOTHER_USER, name_of(path)]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert f"{path} belongs to the user " in said and said.rstrip().endswith(ADVICE)
    assert path.exists()
    if is_running:
        mine.close()


def test_two_simulators_with_one_name_are_told_of_the_parameter(path: Path) -> None:
    mine, other = (SharedMemory(name_of(path), ["cf0"]) for _ in range(2))
    mine.publish()
    with pytest.raises(NameInUse, match=f"process {os.getpid()}, uses the name .*{ADVICE}"):
        other.publish()
    other.close()
    assert path.exists()
    mine.close()
    assert not path.exists()


FULL = """
import resource, signal
from crazyflow_ros.lockstep.shared_memory import SharedMemory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    SharedMemory("full", ["cf0"])
except ValueError as error:
    print(error)
"""


def test_no_room_is_found_out_before_anything_is_written() -> None:
    said = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=True)
    assert "no room for" in said.stdout and f"bytes of shared memory in {FOLDER}" in said.stdout
