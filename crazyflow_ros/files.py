"""Files that are written whole: complete and on the disk, or as they were before."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file, or replace one, in one step that also a loss of power leaves whole.

    Until then the content is in a file of its own in the same folder, with a name that nobody else
    has. A link stays one, and what it leads to is replaced.

    Args:
        path: Of the file.
        content: All of it.

    Raises:
        OSError: It cannot be written, as on a full disk, or the path is of something other than a
            file; then nothing has changed.
    """
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError(errno.EEXIST, "there is something that is not a regular file", str(path))
    part = target.with_name(f".{secrets.token_hex(16)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            _write_all(file.fileno(), content)
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    _sync_folder(target.parent)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk, too, where folders can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
