"""Processes for what others send: nobody's files run in them, and they can do nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hidden_modules import hiding, ran
from paths import ROOT

from crazyflow_ros.checks.confinement import landlock
from crazyflow_ros.scene.description import Sandbox, read_text

PACKAGES = [path for path in sys.path if path.endswith("-packages")]
ASK = """
import sys
sys.path += {path!r}
from crazyflow_ros.policy.foreign import read_network
from crazyflow_ros.scene.description import Sandbox, read_text
sys.path[:0] = {first!r}
sandbox = Sandbox()
assert sandbox.check(read_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")).elements
sandbox.close()
for kind in {kinds!r}:
    try:
        read_network(kind, b"nothing")
    except ValueError as error:
        print(error)
"""


def run(words: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_files_of_the_working_folder_are_not_run(tmp_path: Path) -> None:
    """As with `python -m`, which searches the working folder first, by either name."""
    folder = hiding(tmp_path)
    script = ASK.format(path=[], first=["", str(folder)], kinds=["rltools", "onnx_model"])
    said = run(["-P", "-c", script], folder)
    assert not ran(folder)
    assert "not an RLtools" in said and "not an ONNX model" in said


def test_files_beside_a_script_are_not_run(tmp_path: Path) -> None:
    """Python's own come first there, too, but for the script itself."""
    folder, elsewhere = hiding(tmp_path / "scripts"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = folder / "ask.py"
    script.write_text(ASK.format(path=[], first=[str(folder)], kinds=["rltools"]))
    assert "RLtools" in run(["-P", str(script)], elsewhere)
    assert not ran(folder)


@pytest.mark.parametrize("where", ["checkout", "workspace"])
def test_packages_are_found_wherever_they_are(tmp_path: Path, where: str) -> None:
    """In a checkout without an installation, and below a workspace's folder of links.

    Without `site`, nothing but the path leads to the package.
    """
    folder = ROOT
    if where == "workspace":
        folder = tmp_path / "install" / "site-packages"
        folder.mkdir(parents=True)
        (folder / "crazyflow_ros").symlink_to(ROOT / "crazyflow_ros")
    path = [*([] if where == "checkout" else [str(folder)]), *PACKAGES]
    start = f"sys.path.insert(0, {str(ROOT)!r})" if where == "checkout" else ""
    script = f"import sys\n{start}\n" + ASK.format(path=path, first=[""], kinds=["rltools"])
    cwd = ROOT if where == "checkout" else tmp_path
    assert "RLtools" in run(["-S", "-P", "-c", script], cwd)


def test_why_a_process_does_not_start_is_in_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mujoco.py").write_text(f"raise ImportError('of another machine' * {10**3})")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(
        ValueError, match="does not start: it ends at once, ImportError: of anoth"
    ) as e:
        Sandbox().check(read_text("<mujoco/>"))
    assert len(str(e.value)) < 500


def confined(doing: str) -> subprocess.CompletedProcess[str]:
    script = f"""
import ctypes, os, signal, socket, subprocess
from crazyflow_ros.checks.confinement import confine
parent, null = os.getppid(), os.open("/dev/null", os.O_RDWR)
confine(1 << 30)
{doing}
"""
    words = [sys.executable, "-c", script]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "doing",
    [
        "open('/etc/passwd')",
        "os.listdir('/')",
        "socket.socket()",
        "os.execv('/bin/true', ['true'])",
        "os.mkdir('{folder}/made')",
        "os.unlink('{folder}/kept')",
        "os.truncate('{folder}/kept', 0)",
    ],
)
def test_a_confined_process_reaches_nothing(tmp_path: Path, doing: str) -> None:
    if not landlock() and "os." in doing:
        pytest.skip("the kernel has no Landlock")
    (tmp_path / "kept").write_text("all of it")
    done = confined(doing.format(folder=tmp_path))
    assert done.returncode == 1
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "all of it")]
    assert any(error in done.stderr for error in ("PermissionError", "Too many open files")), (
        done.stderr
    )


def test_a_confined_process_signals_no_other() -> None:
    if landlock() < 6:
        pytest.skip("the kernel's Landlock has no rule for signals")
    assert "PermissionError" in confined("os.kill(parent, 0)").stderr
    assert confined("os.kill(os.getpid(), 0)").returncode == 0


def test_without_landlock_limits_remain_and_the_log_says_so(tmp_path: Path) -> None:
    """Here a filter of system calls takes Landlock away, as from an old kernel."""
    script = """
import ctypes, logging, os, struct
logging.basicConfig(level=logging.INFO)
# Load the number of the call; is it 444? Then "no such call" (38), else allow.
filter = struct.pack("=HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, 444,
                     6, 0, 0, 0x50026, 6, 0, 0, 0x7fff0000)
memory = ctypes.create_string_buffer(filter)
program = struct.pack("@HP", 4, ctypes.addressof(memory))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program, 0, 0)
from crazyflow_ros.scene.description import Sandbox, read_text
sandbox = Sandbox()
for text in ("<mujoco/>", "<mujoco model='b'/>"):
    assert sandbox.check(read_text(text)).elements
sandbox.close()
from crazyflow_ros.checks.confinement import confine
confine(1 << 30)
open("/etc/passwd")
"""
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "Too many open files" in done.stderr, done.stderr
    assert done.stderr.count("no Landlock: Function not implemented") == 1
