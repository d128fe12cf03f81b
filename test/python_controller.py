"""A controller in Python, for tests: what the C++ header does, step by step."""

import fcntl
import mmap
import os
import struct
import time

import numpy as np

from crazyflow_ros.lockstep import layout
from crazyflow_ros.lockstep.futex import Futex
from crazyflow_ros.lockstep.shared_memory import FOLDER
from crazyflow_ros.runtime import Level


class PythonController:
    """Takes drones of a simulator, reads states and posts commands when told to."""

    def __init__(self, name, *drones):
        self._file = os.open(FOLDER / f"crazyflow_ros.{name}", os.O_RDWR)
        size = os.fstat(self._file).st_size
        memory = mmap.mmap(self._file, size)
        header = np.frombuffer(memory, layout.HEADER, 1)[0]
        assert (header["version"], header["layout"]) == (layout.VERSION, layout.layout_hash())
        self.view = np.frombuffer(memory, layout.segment(header["n_drones"])).reshape(())
        address = self.view.__array_interface__["data"][0]
        self._posts = Futex(address + layout.HEADER.fields["command_count"][1])
        names = [name.decode() for name in self.view["drones"]["name"]]
        self._drones = [names.index(drone) for drone in drones]
        deadline = time.monotonic() + 20.0
        while not self.view["header"]["state_count"]:
            assert time.monotonic() < deadline, "the simulator shows no state"
            time.sleep(0.002)
        for i in self._drones:
            request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 + i, 1, 0)
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
        self.claim()
        # From its first command on it is waited for; this one answers no tick.
        self.post(*[(Level.held, (0.0,) * 4)] * len(drones), stamp=(0, 0))

    def claim(self):
        """Begin a session with each drone, of which it has the lock."""
        for i in self._drones:
            slot = self.view["slots"][i]
            slot["active"], slot["pid"] = 0, os.getpid()
            slot["session"] = time.monotonic_ns()
        self.set_active(True)

    def set_active(self, active):
        self.view["slots"]["active"][self._drones] = active
        self._posts.add()

    @property
    def stamp(self):
        """Tick and epoch of the latest state."""
        stamp = self.view["states"]["stamp"][self._slot]
        return int(stamp["tick"]), int(stamp["epoch"])

    @property
    def drones(self):
        """Latest states of all drones."""
        return self.view["states"]["drones"][self._slot].copy()

    @property
    def _slot(self):
        return int(self.view["header"]["state_count"]) % 2

    def post(self, *commands, stamp=None):
        """Command each drone with a level, or what is none, and four numbers.

        It answers the latest state, if it is not told another `stamp`.
        """
        for i, (level, values) in zip(self._drones, commands):
            slot = self.view["slots"][i]
            count = (int(slot["count"]) + 1) % 2**64
            slot["buffers"][count % 2] = (
                *(stamp or self.stamp),
                int(level),
                values,
                slot["session"],
            )
            slot["count"] = count
        self._posts.add()

    def wake(self):
        """Make the simulator look at what has changed."""
        self._posts.add()

    def close(self, *, properly=True):
        """Leave; or drop out, as a process does that is killed."""
        if properly:
            self.set_active(False)
        request = struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
        os.close(self._file)
