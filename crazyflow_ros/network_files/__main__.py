"""Reads a network: `python -m crazyflow_ros.network_files KIND [OUTPUT]`.

It reads the content of the file from the standard input, and writes an archive to the standard
output, which is a pipe.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

import numpy as np

from crazyflow_ros.checks.archive import write_arrays
from crazyflow_ros.checks.confinement import confine
from crazyflow_ros.network_files import MEMORY, REFUSED, SECONDS

_KINDS = ("onnx_model", "rltools")


def main(kind: str, *options: str) -> None:
    """Read a network from the standard input, and write it to the standard output.

    Args:
        kind: Name of the module that reads it.
        options: Options of that module.
    """
    if kind not in _KINDS:
        raise SystemExit(f"expected one of {', '.join(_KINDS)}, got {kind!r}")
    read = import_module(
        f"crazyflow_ros.network_files.{kind}"
    ).read  # before files are out of reach
    content = sys.stdin.buffer.read()
    confine(MEMORY, SECONDS)
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
