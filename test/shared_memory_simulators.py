"""Simulators without physics that end by being killed, one after the other: for test_lock_step.

Each is a process forked from this one, for which nothing has to be imported or compiled: it prints
its process id, "a command" when one has come, and serves until it is killed. A line on the standard
input starts the next one.
"""

import logging
import os
import sys

import numpy as np

from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import Mirror, build_spec


def serve(name: str, mirror: Mirror) -> None:
    logging.basicConfig(level=logging.CRITICAL)
    link = SharedMemoryLink(
        name,
        ["cf0"],
        drone_model="cf2x_L250",
        freq=500,
        rate=500,
        lock_step=True,
        logger=logging.getLogger(),
    )
    print(os.getpid(), flush=True)
    command, level, told, tick = np.zeros((1, 4)), np.zeros(1), False, 1
    three, four = np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]])
    rest = {
        "names": ("cf0",),
        "pos": three,
        "quat": four,
        "rotor_angle": four,
        "rotor_vel": four,
        "epoch": 0,
        "contact": np.zeros((1, 6)),
        "impact": np.zeros(1),
    }
    rest |= dict.fromkeys(("vel", "body_vel", "ang_vel", "acc", "ang_acc", "specific_force"), three)
    while True:
        snapshot = Snapshot(time_ns=tick * 2_000_000, tick=tick, **rest)
        link.show(snapshot, mirror)
        assert link.collect(snapshot, command, level, lambda: False)
        if level[0] and not told:
            told = True
            print("a command", flush=True)
        tick += 1


def main() -> None:
    mirror = Mirror(build_spec("cf2x_L250", ["cf0"]).compile(), ["cf0"])
    while True:
        child = os.fork()
        if child == 0:
            serve(sys.argv[1], mirror)
        line = sys.stdin.readline()
        os.waitpid(child, 0)
        if not line:
            return


if __name__ == "__main__":
    main()
