"""Reads a network: `python -m crazyflow_ros.network_files KIND [OUTPUT] <FILE >ARCHIVE`."""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module

import numpy as np

from crazyflow_ros.archive import write_arrays
from crazyflow_ros.network_files import MEMORY, REFUSED, SECONDS

_KINDS = ("onnx_model", "rltools")


def _limit() -> None:
    """Allow little memory and time, no core dump, and no other file, whatever a library tries."""
    for which in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE):
        resource.setrlimit(which, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    end = int(time.process_time()) + 1 + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 1))  # SIGXCPU, and then SIGKILL


def main(kind: str, *options: str) -> None:
    """Read a network from the standard input, and write it to the standard output.

    Args:
        kind: Name of the module that reads it.
        options: Of that module.
    """
    if kind not in _KINDS:
        raise SystemExit(f"expected one of {', '.join(_KINDS)}, got {kind!r}")
    read = import_module(f"crazyflow_ros.network_files.{kind}").read  # with all that it needs
    content = sys.stdin.buffer.read()
    _limit()
    try:
        layers, arrays = read(content, *options)
    except MemoryError:
        reason = f"reading it takes more than {MEMORY >> 20} MiB of memory"
    except ValueError as error:
        reason = str(error)
    else:
        about = np.array(json.dumps(layers))
        sys.stdout.buffer.write(write_arrays({"layers": about, **arrays}))
        return
    sys.stderr.write(reason)
    raise SystemExit(REFUSED)


if __name__ == "__main__":
    main(*sys.argv[1:])
