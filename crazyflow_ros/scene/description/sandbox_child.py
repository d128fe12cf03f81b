"""The process of `Sandbox`: builds descriptions and measures what MuJoCo has built.

    python -m crazyflow_ros.scene.description.sandbox_child DESCRIPTOR

`DESCRIPTOR` is the file descriptor of a connection, on which descriptions come in and sizes go out.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

import mujoco

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.confinement import confine
from crazyflow_ros.scene.description import collada
from crazyflow_ros.scene.description.description import Description, Size

_BEHIND = 10  # niceness: the simulation has the right of way


def main() -> None:
    """Answer requests until the other side ends."""
    with Connection(int(sys.argv[1])) as connection:
        _confine()
        connection.send_bytes(b"ready")
        with suppress(EOFError, OSError):
            while True:
                description = pickle.loads(connection.recv_bytes())
                connection.send_bytes(json.dumps(_answer(description)).encode())


def _confine() -> None:
    """Take away what a description must not use."""
    os.nice(_BEHIND)
    mujoco.MjSpec.from_string("<mujoco/>").compile()  # loads what MuJoCo needs at first use
    with suppress(ValueError, ModuleNotFoundError):
        collada.as_obj(b"")
    confine(limits.SANDBOX_BYTES)


def _answer(description: Description) -> Size | str:
    """Build a description; return its size, or why MuJoCo refuses it."""
    try:
        return Size.of(description.compiled())
    except MemoryError:
        return f"MuJoCo must not need more than {limits.SANDBOX_BYTES} bytes to build it"
    except Exception as error:
        return str(error)


if __name__ == "__main__":
    main()
