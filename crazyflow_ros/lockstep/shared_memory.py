"""One segment of POSIX shared memory per simulator: creation, locks and cleanup.

The simulator locks byte 0 of the file, the controller of row i (a drone, or after the drones a
joint of a robot) byte 1 + i, with open file description locks, which the kernel releases when a
process ends for any reason.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pwd
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import numpy as np

from crazyflow_ros.checks.limits import shown
from crazyflow_ros.lockstep import layout

FOLDER = Path("/dev/shm")
_PREFIX = "crazyflow_ros."
_ATTEMPTS = 100
_CONSTANT = layout.offset(layout.HEADER, "state_count")  # bytes of the header that never change
_FLOCK = "hhqqi4x"  # struct flock of 64 bit Linux: type, whence, start, length, pid


_ADVICE = "choose another one with the parameter ros2_control.shared_memory"


class NameInUse(ValueError):
    """The name of the segment is in use by a running simulator or something else."""


def _lock(file: int, byte: int, kind: int = fcntl.F_WRLCK) -> bool:
    request = struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_locked(file: int, byte: int) -> bool:
    request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, request)
    return struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user number {number}"


class SharedMemory:
    """The segment of one simulator.

    The file gets its name when it is complete and locked, so that no process sees an incomplete
    segment, and a simulator that is killed earlier leaves nothing behind.

    Args:
        name: Name of the segment: letters, digits, `_`, `.` and `-`.
        drones: Names of the drones.
        parts: Joints of robots in the world, then their sensors.

    Attributes:
        bytes: The memory.
        view: The memory as an array of no dimension with the fields of `layout.segment`.
        address: Address of the mapping.

    Raises:
        ValueError: A name is invalid, or there is not enough memory.
    """

    def __init__(
        self, name: str, drones: Sequence[str], parts: Sequence[layout.Entry] = ()
    ) -> None:
        if not layout.is_name(name):
            expected = f"expected {layout.NAME_RULE}, got {shown(name)!r}"
            raise ValueError(f"ros2_control.shared_memory: {expected}")
        joints = [part.name for part in parts if part.kind == layout.JOINT]
        for kind, names in (("drone", drones), ("joint or sensor", [part.name for part in parts])):
            for given in names:
                if len(given.encode()) > layout.MAX_NAME:
                    most = f"has at most {layout.MAX_NAME} bytes"
                    raise ValueError(f"the name of a {kind} {most}: {given!r}")
        self.name, self._path = name, FOLDER / f"{_PREFIX}{name}"
        dtype, version = layout.segment(len(drones), parts), layout.VERSION
        try:
            self._file = os.open(FOLDER, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ValueError(f"cannot create shared memory in {FOLDER}: {error.strerror}") from None
        try:
            try:  # now, because a later write without room would kill the process
                os.posix_fallocate(self._file, 0, dtype.itemsize)
            except OSError as error:
                size = f"{dtype.itemsize} bytes of shared memory in {FOLDER}"
                raise ValueError(f"no room for {size}: {error.strerror}") from None
            self.bytes = mmap.mmap(self._file, dtype.itemsize)
            self.view = np.frombuffer(self.bytes, dtype).reshape(())
            self.address = int(self.view.__array_interface__["data"][0])
            self.view["drones"]["name"] = [name.encode() for name in (*drones, *joints)]
            if parts:
                version = layout.VERSION_WITH_ROBOTS
                self._describe(parts)
            header = self.view["header"]
            header["magic"], header["version"] = layout.MAGIC, version
            header["layout"] = layout.layout_hash(robots=bool(parts))
            header["size"] = dtype.itemsize
            header["n_drones"], header["simulator_pid"] = len(drones), os.getpid()
            _lock(self._file, 0)
        except BaseException:
            os.close(self._file)
            raise

    def _describe(self, parts: Sequence[layout.Entry]) -> None:
        """Write which parts there are, and where their numbers are."""
        first = 0
        for entry, part in zip(self.view["parts"], parts):
            entry["name"], entry["kind"] = part.name.encode(), part.kind
            entry["first"], entry["size"], entry["modes"] = first, part.size, part.modes
            first += part.size
        robots = self.view["robots"]
        robots["n_joints"] = sum(part.kind == layout.JOINT for part in parts)
        robots["n_parts"], robots["n_values"] = len(parts), first

    def publish(self) -> None:
        """Give the complete segment its name, replacing one that a dead simulator left.

        Raises:
            NameInUse: A running simulator or something else has the name.
        """
        self._constant = self._constants()
        for _ in range(_ATTEMPTS):  # because several simulators may try at the same time
            with suppress(FileExistsError):
                source = f"/proc/self/fd/{self._file}"
                # Python follows the link only with a folder, which an absolute
                # path ignores.
                os.link(source, self._path, src_dir_fd=self._file, follow_symlinks=True)
                return
            with suppress(FileNotFoundError):
                self._remove_leftover()
        raise NameInUse(f"other processes keep taking the name {self.name!r}; {_ADVICE}")

    def repair(self) -> str:
        """Restore what never changes; return that something had overwritten it, or nothing."""
        if self._constants() == self._constant:
            return ""
        header, names, *robots = self._constant
        self.bytes[: len(header)] = header
        self.view["drones"]["name"] = np.frombuffer(names, self.view["drones"]["name"].dtype)
        for field, content in zip(("robots", "parts"), robots):
            self.view[field] = np.frombuffer(content, self.view[field].dtype).reshape(
                self.view[field].shape
            )
        return (
            f"something has written over the shared memory {self.name!r}, where its controllers "
            "only read: the data of the simulator and its drones is restored"
        )

    def _constants(self) -> tuple[bytes, ...]:
        """Return the constant part of the header, the names of the rows, and what of robots is."""
        names = self.view.dtype.names or ()
        robots = [self.view[field].tobytes() for field in ("robots", "parts") if field in names]
        return self.bytes[:_CONSTANT], self.view["drones"]["name"].tobytes(), *robots

    def has_controller(self, row: int) -> bool:
        """Return whether a process controls the drone or joint of this row."""
        return _is_locked(self._file, 1 + row)

    def close(self) -> None:
        """Remove the name if it still refers to this file, and release the locks."""
        if self._is_at_path(self._file):
            self._path.unlink(missing_ok=True)
        _lock(self._file, 0, fcntl.F_UNLCK)  # the mapping may outlive this and keeps the file open
        os.close(self._file)

    def _remove_leftover(self) -> None:
        """Remove a dead simulator's file while holding its lock, so that only one does so."""
        found = self._path.lstat()
        if not stat.S_ISREG(found.st_mode):
            self._refuse(f"{self._path} is not a shared memory segment")
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except PermissionError:
            self._refuse(f"{self._path} belongs to {_user(found.st_uid)}")
        try:
            if not _lock(file, 0):
                raise NameInUse(
                    f"a running simulator{self._owner(file)} uses the name {self.name!r} for its "
                    f"shared memory; {_ADVICE}"
                )
            if self._is_at_path(file):
                try:
                    self._path.unlink()
                except PermissionError:  # readable, in a folder where only its owner may remove it
                    self._refuse(f"{self._path} belongs to {_user(found.st_uid)}")
        finally:
            os.close(file)

    def _refuse(self, why: str) -> NoReturn:
        advice = f"remove it, or {_ADVICE}"
        raise NameInUse(f"the name {self.name!r} of the shared memory is taken: {why}; {advice}")

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.lstat())
        except FileNotFoundError:
            return False

    @staticmethod
    def _owner(file: int) -> str:
        header = np.frombuffer(os.pread(file, layout.HEADER.itemsize, 0), layout.HEADER)
        if header.size == 0 or header["magic"][0] != layout.MAGIC:
            return ""
        return f", process {header['simulator_pid'][0]},"
