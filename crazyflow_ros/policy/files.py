"""Policies as files: a NumPy archive of arrays, one of which holds JSON. Nothing is unpickled.

`load` also reads the files of other projects, see `foundation` and `onnx_file`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crazyflow_ros.archive import read_arrays, write_arrays
from crazyflow_ros.drones import AnyDrone
from crazyflow_ros.files import write_file
from crazyflow_ros.limits import open_file, shown, shown_path, unknown
from crazyflow_ros.plain_values import convert
from crazyflow_ros.policy import foundation, onnx_file
from crazyflow_ros.policy.checked import GRU, MOST_BYTES, Specification, dense, gru, parsed, plain
from crazyflow_ros.policy.network import Dense, Gru
from crazyflow_ros.policy.policy import Policy

FORMAT = "crazyflow_ros policy 1"

_REASON = 300  # characters of an error
_ARRAYS = {"dense": ("weights", "bias"), "gru": GRU}


@dataclass(frozen=True)
class _Layer:
    kind: str
    activation: str = ""


@dataclass(frozen=True)
class _About:
    """The JSON of a file."""

    format: str
    layers: tuple[_Layer, ...]
    policy: Specification


def save(policy: Policy, path: str | Path) -> None:
    """Write a policy to one file, completely or not at all.

    Raises:
        OSError: The file cannot be written.
        ValueError: `load` would refuse the policy.
    """
    layers, arrays = [], {"mean": np.asarray(policy.mean), "std": np.asarray(policy.std)}
    for i, layer in enumerate(policy.network.layers):
        match layer:
            case Dense():
                layers.append(_Layer("dense", layer.activation))
            case Gru():
                layers.append(_Layer("gru"))
        for name in _ARRAYS[layers[-1].kind]:
            arrays[f"{i}.{name}"] = np.asarray(getattr(layer, name))
    about = plain(_About(FORMAT, tuple(layers), Specification.of(policy)))
    _policy(about, dict(arrays))
    write_file(path, write_arrays({"about": np.array(json.dumps(about)), **arrays}))


def load(path: str | Path, drone: AnyDrone | None = None) -> Policy:
    """Read a policy. Its content is not trusted.

    Args:
        path: A file that `save` wrote; of the package foundation-policy, which ends in `.h5`; or of
            ONNX, which ends in `.onnx`.
        drone: The drone to fly. Files of foundation-policy need it, because they fly any drone.

    Raises:
        ValueError: The file is missing or is not a policy; the message says what is wrong.
        ModuleNotFoundError: Files of this kind need a package that is not installed.
    """
    try:
        with open_file(path, MOST_BYTES) as file:
            match Path(path).suffix.lower():
                case ".h5":
                    return foundation.read(file, drone)
                case ".onnx":
                    return onnx_file.read(file, Path(path).with_suffix(".json"))
            arrays = read_arrays(file, MOST_BYTES)
        return _policy(_read_about(arrays.pop("about", None)), arrays)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error)[:_REASON]
        raise ValueError(f"{shown_path(path)} is not a policy that can be read: {reason}") from None


def _read_about(array: np.ndarray | None) -> Any:
    if array is None or array.dtype.kind != "U" or array.ndim:
        raise ValueError("there is no text 'about' in it")
    return parsed(str(array))


def _policy(values: Any, arrays: dict[str, np.ndarray]) -> Policy:
    """Return the policy of the values of JSON and arrays, all of which are checked."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(f"it is not a {FORMAT}")
    about: _About = convert(values, _About, "about")
    layers = tuple(_layer(i, layer, arrays) for i, layer in enumerate(about.layers))
    normalisation = arrays.pop("mean", None), arrays.pop("std", None)
    if arrays:
        raise ValueError(f"unknown array {shown(min(arrays))!r}")
    return about.policy.policy(layers, normalisation)


def _layer(i: int, layer: _Layer, arrays: dict[str, np.ndarray]) -> Dense | Gru:
    """Return a layer, and take its arrays."""
    if layer.kind not in _ARRAYS:
        raise ValueError(f"layer {i}: {unknown('kind', layer.kind, _ARRAYS)}")
    own = {name: arrays.pop(f"{i}.{name}", None) for name in _ARRAYS[layer.kind]}
    if layer.kind == "gru":
        return gru(str(i), own)
    return dense(str(i), own["weights"], own["bias"], layer.activation)
