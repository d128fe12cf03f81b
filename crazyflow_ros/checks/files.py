"""Names of files, and atomic writes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crazyflow_ros.checks.limits import shown

PARTS = ".*.part"
"""Pattern of the names of files that are being written; a writer that is killed leaves one."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # of file systems without hard links


def check_file_name(what: str, name: str) -> None:
    """Check that the name of a file cannot lead out of its folder. An empty name means no file.

    Raises:
        ValueError: It leads elsewhere, or begins with a dot, like files that are being written.
    """
    if "/" in name or name.startswith("."):
        raise ValueError(
            f"{what} must be the name of a file, without '/' and not beginning with '.', got "
            f"{shown(name)!r}"
        )


def write_file(
    path: str | Path,
    content: bytes,
    mode: int = 0o666,
    may_replace: Callable[[Path], object] | None = None,
) -> None:
    """Write or replace a file atomically, so that it is complete even after a loss of power.

    The content is first written to a file with a unique name in the same folder. A symbolic link is
    kept, and its target is replaced.

    Args:
        path: Path of the file.
        content: The whole content.
        mode: Permissions of the file, without those that the process's umask removes.
        may_replace: Raises an exception if the existing file must stay. A file that appears in the
            meantime stays, too. By default any regular file is replaced.

    Raises:
        OSError: The file cannot be written, for example because the disk is full, or the path is
            not that of a regular file; nothing has changed.
    """
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError(errno.EEXIST, "not a regular file", str(path))
    part = target.with_name(f".{secrets.token_hex(16)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            _write_all(file.fileno(), content)
            os.fsync(file.fileno())
        if may_replace is None:
            os.replace(part, target)
        elif os.path.lexists(target):
            may_replace(target)
            os.replace(part, target)
        else:
            _name(part, target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part), str(target)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    _sync_folder(target.parent)


def _name(part: Path, target: Path) -> None:
    """Give a file its name, unless another file has taken the name in the meantime.

    Raises:
        FileExistsError: Another file has taken it.
    """
    try:
        os.link(part, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        os.replace(part, target)
    else:
        part.unlink()


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _sync_folder(folder: Path) -> None:
    """Synchronise the folder, so that the new name is on the disk, where that is possible."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
