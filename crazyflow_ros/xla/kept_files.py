"""Files of one user that are found by name, such as compiled code, which is executed.

They are unpickled and executed, so the folder is only used, and a file only read, if it belongs to
this user or the administrator and nobody else can write to it. A file whose content was written
under another name is not used either. Files are written whole or not at all, so that several
processes can share the folder.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from crazyflow_ros.checks.files import PARTS, write_file
from crazyflow_ros.checks.limits import open_file

T = TypeVar("T")
Warn = Callable[[str], object]

_PREFIX = "compiled-"
_LARGEST, _MOST_BYTES = 100_000_000, 500_000_000  # of one file, of all
_UNUSED = 90 * 24 * 3600.0  # s after which a file is removed
_DEAD = 3600.0  # s after which the writer of an unfinished file has surely ended
_OTHERS = 0o022  # permission of others to write


class KeptFiles:
    """A folder of files. Files that nobody has used for long are removed.

    Args:
        folder: The folder; created if missing.
        warn: Receives one message about the folder at most, and one about each file that cannot be
            used.

    Attributes:
        folder: The folder; None if it is missing or others can write to it, and nothing is kept.
    """

    def __init__(self, folder: Path, warn: Warn) -> None:
        self._warn = warn
        self._has_warned = False
        problem = make_private(folder)
        self.folder = None if problem else folder
        if problem:
            self._warn_once(folder, problem)
        else:
            _tidy(folder)

    def read(self, name: str, load: Callable[[bytes], T]) -> T | None:
        """Return what `load` makes of the content of a file; None if it cannot be used."""
        if self.folder is None:
            return None
        path = self.folder / f"{_PREFIX}{name}"
        try:
            with open_file(path, _LARGEST) as file:
                status = os.fstat(file.fileno())
                if status.st_uid not in (os.geteuid(), 0):
                    raise ValueError(f"it belongs to another user ({status.st_uid})")
                if status.st_mode & _OTHERS:
                    raise ValueError("other users can write to it")
                content = file.read()
            digest, result = content[:32], content[32:]
            if _digest(name, result) != digest:
                raise ValueError("it is damaged, or a copy of another file")
            found = load(result)
        except FileNotFoundError:
            return None
        except Exception as error:
            self._warn(f"{path} is not used and is replaced: {str(error)[:200]}")
            return None
        with suppress(OSError):
            os.utime(path)  # the least used are removed first
        return found

    def write(self, name: str, result: bytes) -> None:
        """Write a file."""
        if self.folder is None:
            return
        content = _digest(name, result) + result
        try:
            write_file(self.folder / f"{_PREFIX}{name}", content, mode=0o600)
        except OSError as error:
            self._warn_once(self.folder, f"cannot be written ({error.strerror})")
        else:
            _tidy(self.folder)

    def _warn_once(self, folder: Path, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"the compilation cache {folder} {problem}: missing code is compiled at each "
                "start. Set XDG_CACHE_HOME to use another folder"
            )


def make_private(folder: Path) -> str:
    """Let only this user read and write a folder, which is created if it is missing.

    Returns:
        Why the files in it must not be executed; empty if they may be.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return f"cannot be created ({error.strerror})"
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({status.st_uid}) and is not used"
    if status.st_mode & _OTHERS:
        return "is writable for others and is not used"
    with suppress(OSError):  # the folder of the administrator
        folder.chmod(0o700)
    return ""


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + content).digest()


def _tidy(folder: Path) -> None:
    """Remove files that killed writers have left, and files that were not used for long."""
    files = []
    for path in (*folder.glob(f"{_PREFIX}*"), *folder.glob(PARTS)):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    now, size = time.time(), 0
    for used, bytes_of_file, path in sorted(files, reverse=True):
        size += bytes_of_file
        longest = _UNUSED if path.name.startswith(_PREFIX) else _DEAD
        if size > _MOST_BYTES or now - used > longest:
            with suppress(OSError):
                path.unlink()
