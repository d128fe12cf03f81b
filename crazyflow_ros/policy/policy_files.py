"""Policies as files: a NumPy archive of arrays, one of which holds JSON. Nothing is unpickled.

`load` also reads the files of other projects, see `foreign`.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crazyflow_ros.checks.archive import read_arrays, write_arrays
from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import read_bytes, shown, shown_path
from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.checks.program_end import in_words
from crazyflow_ros.drones import AnyDrone
from crazyflow_ros.network_files import MOST_BYTES
from crazyflow_ros.policy.checked import LayerNames, Specification, layer_arrays, parsed, plain
from crazyflow_ros.policy.foreign import read_foundation, read_onnx
from crazyflow_ros.policy.policy import Policy

FORMAT = "crazyflow_ros policy 1"

_REASON = 600  # characters of an error


@dataclass(frozen=True)
class _About:
    """The JSON of a file."""

    format: str
    layers: tuple[LayerNames, ...]
    policy: Specification


def save(policy: Policy, path: str | Path) -> None:
    """Write a policy to one file, completely or not at all.

    Raises:
        OSError: The file cannot be written.
        ValueError: `load` would refuse the policy.
    """
    layers = policy.network.layers
    arrays = {"mean": np.asarray(policy.mean), "std": np.asarray(policy.std)}
    arrays |= layer_arrays(layers)
    about = plain(_About(FORMAT, tuple(map(LayerNames.of, layers)), Specification.of(policy)))
    _policy(about, dict(arrays))
    write_file(path, write_arrays({"about": np.array(json.dumps(about)), **arrays}))


def load(path: str | Path, drone: AnyDrone | None = None) -> Policy:
    """Read a policy from a file, whose content is not trusted.

    Args:
        path: A file written by `save`, a checkpoint of the package foundation-policy (`.h5`), or an
            ONNX model (`.onnx`).
        drone: The drone to fly; required for foundation-policy, which flies any drone.

    Raises:
        ValueError: The file is missing or is not a policy; the message says what is wrong.
        ModuleNotFoundError: Files of this kind need a package that is not installed.
    """
    try:
        content = read_bytes(path, MOST_BYTES)
        match Path(path).suffix.lower():
            case ".h5":
                return read_foundation(content, drone)
            case ".onnx":
                return read_onnx(content, Path(path).with_suffix(".json"))
        arrays = read_arrays(io.BytesIO(content), MOST_BYTES)
        return _policy(_read_about(arrays.pop("about", None)), arrays)
    except (OSError, ValueError, TypeError) as error:
        reason = in_words(error).removeprefix(f"{path}: ")[:_REASON]
        raise ValueError(f"{shown_path(path)} is not a policy that can be read: {reason}") from None


def _read_about(array: np.ndarray | None) -> Any:
    if array is None or array.dtype.kind != "U" or array.ndim:
        raise ValueError("there is no text 'about' in it")
    return parsed(str(array))


def _policy(values: Any, arrays: dict[str, np.ndarray]) -> Policy:
    """Return the policy of JSON values and arrays, all of which are checked."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(f"it is not a {FORMAT}")
    about: _About = convert(values, _About, "about")
    layers = tuple(layer.layer(i, arrays) for i, layer in enumerate(about.layers))
    normalisation = arrays.pop("mean", None), arrays.pop("std", None)
    if arrays:
        raise ValueError(f"unknown array {shown(min(arrays))!r}")
    return about.policy.policy(layers, normalisation)
