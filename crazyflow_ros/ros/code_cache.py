"""The folder in which JAX keeps compiled code between runs, and what may be wrong with it.

JAX writes an entry in place, never writes it again, and loads what it finds as machine code. So a
folder of somebody else is not used. And of what a process wrote that was killed, or found the disk
full, the next one removes the entries that are not whole: they would never be replaced.
"""

from __future__ import annotations

import fcntl
import os
import stat
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from crazyflow_ros.compiler import LateEntries

ENTRIES = "*-cache"
"""What the files of JAX are called."""

_MARK = ".running-"  # files that processes lock while they may write entries
_OURS = "persistent compilation cache entry"  # in JAX's warnings
_WRITING = 0.8  # s for what was postponed: a process has to end soon after it is told to

_ZSTANDARD = b"\x28\xb5\x2f\xfd"  # first bytes

Warn = Callable[[str], object]


def cache_folder() -> Path:
    """The folder of compiled code."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "crazyflow_ros"


class CodeCache:
    """Has JAX use the folder, as far as it can be trusted, and tells once what is wrong with it.

    Args:
        folder: Is made if it is not there.
        warn: Is told what is wrong.
    """

    def __init__(self, folder: Path, warn: Warn) -> None:
        self._folder, self._warn = folder, warn
        self._mark: Path | None = None
        self._is_whole = True  # all that this process wrote
        self._has_warned = False
        self._late: LateEntries | None = None
        self._show_others = warnings.showwarning
        if self._is_usable():
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
            warnings.filterwarnings("always", f".*{_OURS}")
            warnings.showwarning = self._show

    def postpone(self) -> None:
        """Write what is compiled from now on in `close`: to write it makes all threads wait."""
        self._late = LateEntries()

    def close(self) -> None:
        """Write what was postponed, as far as there is time, and say that all entries are complete.

        Without it the next process removes those of this one that are not.
        """
        if self._late is not None:
            self._late.write(_WRITING)
        if self._mark is not None and self._is_whole:
            self._mark.unlink(missing_ok=True)

    def _is_usable(self) -> bool:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._folder.stat()
        except OSError as error:
            self._tell(f"cannot be made ({error.strerror})")
            return False
        if status.st_uid not in (os.geteuid(), 0):
            self._tell(f"belongs to another user, number {status.st_uid}, and is not used")
            return False
        if status.st_mode & stat.S_IWOTH:
            self._tell("can be written by everybody, and is not used")
            return False
        try:
            self._remove_doubtful()
            self._begin()
        except OSError as error:
            self._tell(f"cannot be written ({error.strerror})")
        return True

    def _begin(self) -> None:
        mark = self._folder / f"{_MARK}{os.getpid()}-{os.urandom(4).hex()}"
        self._lock = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # which the kernel drops when the process ends
        self._mark = mark

    def _remove_doubtful(self) -> None:
        """Remove what is not whole of what was written since a process began that did not close."""
        for mark in self._folder.glob(f"{_MARK}*"):
            with suppress(FileNotFoundError, BlockingIOError), mark.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                since = os.fstat(file.fileno()).st_mtime_ns
                for entry in self._folder.glob(ENTRIES):
                    with suppress(FileNotFoundError):
                        if entry.stat().st_mtime_ns >= since and not _is_whole(entry):
                            entry.unlink()
                mark.unlink()

    def _show(self, message: Any, *rest: Any, **options: Any) -> None:
        """In place of `warnings.showwarning`: JAX warns of each entry."""
        text = str(message)
        if _OURS not in text:
            self._show_others(message, *rest, **options)
            return
        self._is_whole, is_reading = False, "reading" in text
        if is_reading and self._mark is not None:
            os.utime(self._mark, (0, 0))  # it may be of any time
        reason = text.partition("': ")[2] or text
        self._tell(f"cannot be {'read' if is_reading else 'written'} ({reason[:200]})")

    def _tell(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"the folder of compiled code, {self._folder}, {problem}: what is not in it is "
                "compiled anew at each start. XDG_CACHE_HOME can name another place"
            )


def _is_whole(entry: Path) -> bool:
    """Whether an entry can be unpacked, in one of the two ways in which JAX packs them."""
    content = entry.read_bytes()
    try:
        if content.startswith(_ZSTANDARD):
            import zstandard

            zstandard.decompress(content)
        else:
            zlib.decompress(content)
    except Exception:
        return False
    return True
