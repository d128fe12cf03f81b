"""The Crazyflie's firmware, in whose checkout tests find what ours has to equal."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def sources(*, compiled: bool = True) -> Path:
    """The sources in the checkout that CRAZYFLIE_FIRMWARE names; skips the test without them.

    Args:
        compiled: Whether a compiler is needed, too.
    """
    checkout = os.environ.get("CRAZYFLIE_FIRMWARE", "")
    if not checkout:
        pytest.skip("CRAZYFLIE_FIRMWARE names no checkout of crazyflie-firmware, of 2026 or later")
    if compiled and not shutil.which("gcc"):
        pytest.skip("there is no gcc to build the firmware with")
    found = Path(checkout, "src")
    assert found.is_dir(), f"CRAZYFLIE_FIRMWARE: there is no {found}"
    return found


def build(
    source: Path,
    harness: Path,
    folder: Path,
    *,
    folders: Sequence[str],
    files: Sequence[str],
    absent: Sequence[str],
    flags: Sequence[str] = ("-w",),
) -> ctypes.CDLL:
    """Build a part of the firmware as a library, and load it.

    Args:
        source: See `sources`.
        harness: Folder with our harness.c and host.h.
        folder: Folder of the library; its headers go before those of the firmware.
        folders: Folders of headers below the sources.
        files: Source files without their suffix.
        absent: Headers that host.h replaces.
        flags: More options of the compiler.
    """
    for name in absent:
        (folder / name).touch()
    library = folder / "firmware.so"
    command = ["gcc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-DUNIT_TEST_MODE", *flags]
    command += ["-include", str(harness / "host.h"), f"-I{folder}"]
    command += [f"-I{source / name}" for name in folders] + [str(harness / "harness.c")]
    command += [str(source / f"{name}.c") for name in files]
    subprocess.run([*command, "-lm", "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
