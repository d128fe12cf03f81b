"""The compilation cache: the folder in which JAX keeps compiled code between runs.

JAX writes an entry in place, never rewrites it, and executes it as machine code. The node therefore
refuses a folder that belongs to another user. If a process was killed or its disk was full, the
next process removes the entries left incomplete, which JAX would never replace.
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

from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.compiler import CacheEntries

ENTRIES = "*-cache"
"""Names of JAX's entries."""

_MARK = ".running-"  # prefix of a file that each process locks while it may write entries
_OURS = "persistent compilation cache entry"  # in JAX's warnings
_WRITING = 0.8  # s for postponed entries: a process must end soon after a signal

_ZSTANDARD = b"\x28\xb5\x2f\xfd"  # first bytes

Warn = Callable[[str], object]


def cache_folder() -> Path:
    """Return the folder of compiled code."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "crazyflow_ros"


class CodeCache:
    """Use of a trustworthy folder by JAX, with at most one warning about problems.

    Args:
        folder: The folder; created if missing.
        warn: Receives the warning.
    """

    def __init__(self, folder: Path, warn: Warn) -> None:
        self._folder, self._warn = folder, warn
        self._mark: Path | None = None
        self._is_whole = True  # whether all entries of this process are complete
        self._has_warned = False
        self._entries: CacheEntries | None = None
        self._show_others = warnings.showwarning
        self._usable = self._is_usable()
        if self._usable:
            jax.config.update("jax_compilation_cache_dir", str(folder))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
            warnings.filterwarnings("always", f".*{_OURS}")
            warnings.showwarning = self._show

    def keep_traces(self) -> None:
        """Also keep what is traced, see `compiled_files`, from now on."""
        if self._usable:
            self._entries = self._entries or CacheEntries()
            compiled_files.keep_in(self._folder, self._entries, self._warn, self._warn_unwritten)

    def postpone(self) -> None:
        """Postpone the writing of new entries to `close`, because it blocks all threads."""
        self._entries = self._entries or CacheEntries()
        self._entries.postpone()

    def close(self) -> None:
        """Write postponed entries within the time limit, and mark all entries as complete.

        Entries without the mark are checked by the next process.
        """
        if self._entries is not None:
            self._entries.write(_WRITING)
        if self._mark is not None and self._is_whole:
            self._mark.unlink(missing_ok=True)

    def _is_usable(self) -> bool:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._folder.stat()
        except OSError as error:
            self._warn_once(f"cannot be created ({error.strerror})")
            return False
        if status.st_uid not in (os.geteuid(), 0):
            self._warn_once(f"belongs to another user ({status.st_uid}) and is not used")
            return False
        if status.st_mode & stat.S_IWOTH:
            self._warn_once("is writable for everybody and is not used")
            return False
        try:
            self._remove_doubtful()
            self._begin()
        except OSError as error:
            self._warn_unwritten(str(error.strerror))
        return True

    def _begin(self) -> None:
        mark = self._folder / f"{_MARK}{os.getpid()}-{os.urandom(4).hex()}"
        self._lock = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # released by the kernel when the process ends
        self._mark = mark

    def _remove_doubtful(self) -> None:
        """Remove incomplete entries written since the start of a process that was not closed."""
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
        """Replace `warnings.showwarning`: JAX warns for each entry."""
        text = str(message)
        if _OURS not in text:
            self._show_others(message, *rest, **options)
            return
        self._is_whole, is_reading = False, "reading" in text
        if is_reading and self._mark is not None:
            os.utime(self._mark, (0, 0))  # the damaged entry may be of any age
        reason = text.partition("': ")[2] or text
        self._warn_once(f"cannot be {'read' if is_reading else 'written'} ({reason[:200]})")

    def _warn_unwritten(self, reason: str) -> None:
        self._warn_once(f"cannot be written ({reason})")

    def _warn_once(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"the compilation cache {self._folder} {problem}: missing code is compiled at each "
                "start. Set XDG_CACHE_HOME to use another folder"
            )


def _is_whole(entry: Path) -> bool:
    """Check that an entry can be decompressed; JAX uses Zstandard or zlib."""
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


def open_cache(warn: Callable[[str], object]) -> CodeCache:
    """Enable JAX's compilation cache.

    Args:
        warn: Receives a warning if the cache cannot be used.
    """
    code_cache = CodeCache(cache_folder(), warn)
    code_cache.keep_traces()
    return code_cache
