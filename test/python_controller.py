"""A controller in Python, for tests: what the C++ header does, step by step."""

import fcntl
import mmap
import os
import struct
import time

import numpy as np

from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.lockstep import layout
from crazyflow_ros.lockstep.futex import Futex
from crazyflow_ros.lockstep.shared_memory import FOLDER
from crazyflow_ros.runtime import Level


def parts_of(memory):
    """Joints and sensors of robots in a memory, as its simulator described them."""
    header = np.frombuffer(memory, layout.HEADER, 1)[0]
    if header["version"] == layout.VERSION:
        return []
    robots = np.frombuffer(memory, layout.ROBOTS, 1, layout.HEADER.itemsize)[0]
    n = int(header["n_drones"]) + int(robots["n_joints"])
    start = layout.HEADER.itemsize + layout.ROBOTS.itemsize
    start += n * (layout.DRONE.itemsize + layout.COMMAND_SLOT.itemsize)
    entries = np.frombuffer(memory, layout.PART, int(robots["n_parts"]), start)
    return [
        layout.Entry(e["name"].decode(), int(e["kind"]), int(e["size"]), int(e["modes"]))
        for e in entries
    ]


class PythonController:
    """Takes drones and joints of a simulator, reads states and posts commands when told to."""

    def __init__(self, name, *drones):
        self._file = os.open(FOLDER / f"crazyflow_ros.{name}", os.O_RDWR)
        size = os.fstat(self._file).st_size
        memory = mmap.mmap(self._file, size)
        header, self.parts = np.frombuffer(memory, layout.HEADER, 1)[0], parts_of(memory)
        version = layout.VERSION_WITH_ROBOTS if self.parts else layout.VERSION
        expected = (version, layout.layout_hash(robots=bool(self.parts)))
        assert (header["version"], header["layout"]) == expected
        segment = layout.segment(int(header["n_drones"]), self.parts)
        self.view = np.frombuffer(memory, segment).reshape(())
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

    def value(self, name):
        """Latest numbers of a joint or sensor."""
        (entry,) = self.view["parts"][self.view["parts"]["name"] == name.encode()]
        first, size = int(entry["first"]), int(entry["size"])
        return self.view["states"]["values"][self._slot][first : first + size].copy()

    @property
    def _slot(self):
        return int(self.view["header"]["state_count"]) % 2

    def post(self, *commands, stamp=None):
        """Command each drone with a level, or what is none, and its numbers.

        It answers the latest state, if it is not told another `stamp`.
        """
        for i, (level, values) in zip(self._drones, commands):
            slot = self.view["slots"][i]
            count = (int(slot["count"]) + 1) % 2**64
            numbers = np.zeros(MOST)
            numbers[: len(values)] = values
            command = slot["buffers"][count % 2]
            command["tick"], command["epoch"] = stamp or self.stamp
            command["level"], command["session"] = int(level), slot["session"]
            command["values"] = numbers
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
