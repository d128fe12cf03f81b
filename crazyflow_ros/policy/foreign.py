"""Networks in files of other projects, which another process reads; see `network_files`."""

from __future__ import annotations

import io
import signal
import subprocess

import numpy as np

from crazyflow_ros.checks.archive import read_arrays
from crazyflow_ros.checks.confinement import last_words, program
from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.network_files import MEMORY, MOST_BYTES, REFUSED, SECONDS
from crazyflow_ros.policy.checked import LayerNames, parsed
from crazyflow_ros.policy.network import Dense, Gru

_PATIENCE = 120.0  # s of wall time, where all processors are busy
_MOST_ANSWER = 2 * MOST_BYTES  # with samples


def read_network(
    kind: str, content: bytes, *options: str
) -> tuple[tuple[Dense | Gru, ...], dict[str, np.ndarray]]:
    """Return the layers of a network, which are checked, and what else its file tells.

    Args:
        kind: Name of the module of `network_files` that reads it.
        content: The file.
        options: Of that module.

    Raises:
        ValueError: It is another kind of file, is damaged, or takes too much to read.
    """
    try:
        done = subprocess.run(
            **program("crazyflow_ros.network_files", kind, *options),
            input=content,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"reading it takes more than {_PATIENCE:g} s") from None
    if done.returncode:
        raise ValueError(_reason(done.returncode, done.stderr))
    arrays = read_arrays(io.BytesIO(done.stdout), _MOST_ANSWER)
    about = convert(parsed(str(arrays.pop("layers"))), tuple[LayerNames, ...], "layers")
    return tuple(layer.layer(i, arrays) for i, layer in enumerate(about)), arrays


def _reason(code: int, said: bytes) -> str:
    if code == REFUSED:
        return said.decode(errors="replace")
    if code == -signal.SIGXCPU:
        return f"reading it takes more than {SECONDS} s of processor time"
    if code < 0:
        most = f"{MEMORY >> 20} MiB of memory"
        name = signal.Signals(-code).name
        return f"reading it ends with {name}: it is damaged, or takes more than {most}"
    return f"reading it fails: {last_words(io.BytesIO(said))}"
