"""Expansion of xacro files, in a process of its own: xacro keeps its state in globals."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from crazyflow_ros.checks import limits
from crazyflow_ros.extras import extra
from crazyflow_ros.scene.description.places import PREFIXES, packages_around

_TIMEOUT = 60.0  # s of wall time
_SHOWN = 300  # characters of an error
_BYTES = 1 << 30  # of its process
_EXPAND = """import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop()),) * 2)
import xacro
try:
    xacro.main()
except MemoryError:
    sys.exit("error: it needs more than 1 GiB of memory")
"""


def is_xacro(path: Path, content: bytes) -> bool:
    """Return whether a file is one of xacro."""
    return path.suffix == ".xacro" or b"<xacro:" in content


def expanded(path: Path) -> bytes:
    """Return what xacro makes of a file, with the default values of its arguments.

    `$(find <package>)` also finds packages around the file that are not installed.

    Raises:
        ValueError: xacro refuses it.
        ModuleNotFoundError: xacro is not installed.
    """
    with extra("xacro"):
        import xacro  # noqa: F401
    with tempfile.TemporaryDirectory() as prefix:
        share = Path(prefix, "share")
        index = share / "ament_index/resource_index/packages"
        index.mkdir(parents=True)
        for name, folder in packages_around(path.absolute().parent).items():
            (index / name).touch()
            (share / name).symlink_to(folder)
        prefixes = os.pathsep.join(filter(None, [prefix, os.environ.get(PREFIXES)]))
        try:
            done = subprocess.run(
                [sys.executable, "-c", _EXPAND, str(path), str(_BYTES)],
                env={**os.environ, PREFIXES: prefixes},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"xacro has not finished within {_TIMEOUT:g} s") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").replace(f"{share}/", "")
            reason = " ".join((said.partition("error: ")[2] or said).split())
            raise ValueError(f"xacro: {limits.shown(reason, _SHOWN)}")
        return done.stdout.replace(f"{share}/".encode(), b"package://")
