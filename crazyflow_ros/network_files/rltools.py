"""Checkpoints of RLtools in HDF5: sequences of layers.

HDF5 can take data from other files, by links and by external or virtual storage, and can decode
chunks of any size by filters. Only plain numbers in the file itself are read.
"""

from __future__ import annotations

import io
import math
from typing import Any

import h5py
import numpy as np

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.network_files import DENSE, GRU, MOST_LAYERS

_MOST_NUMBERS = 1_000_000  # of an array, and of a chunk
_ERRORS = (AttributeError, KeyError, OSError, OverflowError, RuntimeError, TypeError)  # of h5py
_MOST_TEXT = 100  # bytes of an attribute
_DENSE = ("weights", "biases")
_GRU = (*(f"{kind}_{of}" for kind in _DENSE for of in ("input", "hidden")), "initial_hidden_state")
_STORED = {"dense": dict(zip(DENSE, _DENSE)), "gru": dict(zip(GRU, _GRU))}
"""Name in the file of each array of each kind of layer."""


def read(content: bytes) -> tuple[list[dict[str, str]], dict[str, np.ndarray]]:
    """Return the kind and activation of each layer, and all arrays.

    Raises:
        ValueError: The content is no checkpoint, or not of plain numbers.
    """
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            group = _member(_member(file, "actor"), "layers")
            if not 1 <= len(group) <= MOST_LAYERS:
                raise ValueError(f"expected 1 to {MOST_LAYERS} layers, got {len(group)}")
            layers: list[dict[str, str]] = []
            arrays: dict[str, np.ndarray] = {}
            for i in range(len(group)):
                layer, own = _layer(i, _member(group, str(i)))
                layers.append(layer)
                arrays |= {f"{i}.{name}": array for name, array in own.items()}
    except _ERRORS as error:
        raise ValueError(f"it is not an RLtools checkpoint ({shown(str(error))})") from None
    return layers, arrays


def _layer(i: int, group: Any) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    kind = _text(group, "type")
    if kind not in _STORED:
        raise ValueError(f"layer {i}: {unknown('kind', kind, _STORED)}")
    arrays = {own: _array(group, stored) for own, stored in _STORED[kind].items()}
    if kind == "gru":
        return {"kind": kind, "activation": ""}, arrays
    activation = _text(group, "activation_function").lower()
    return {"kind": kind, "activation": activation}, arrays | {"bias": arrays["bias"].ravel()}


def _member(group: Any, name: str) -> Any:
    """Return a member of a group that is in this file itself."""
    link = group.get(name, getlink=True)
    if link is None:
        raise ValueError(f"there is no {shown(name)!r} in {shown(group.name)}")
    if not isinstance(link, h5py.HardLink):
        kind = type(link).__name__
        raise ValueError(f"{shown(name)!r} in {shown(group.name)} is a link ({kind})")
    return group[name]


def _text(group: Any, name: str) -> str:
    attribute = group.attrs.get_id(name)
    if attribute.shape or attribute.get_storage_size() > _MOST_TEXT:
        raise ValueError(f"{name} must be one text of at most {_MOST_TEXT} bytes")
    return str(group.attrs[name])


def _array(group: Any, name: str) -> np.ndarray:
    stored = _member(_member(group, name), "parameters")
    if stored.dtype.kind != "f":
        raise ValueError(f"{name} must be real numbers, got {stored.dtype}")
    if stored.size > _MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {_MOST_NUMBERS} numbers, got {stored.size}")
    properties = stored.id.get_create_plist()
    layout, n_filters = properties.get_layout(), properties.get_nfilters()
    if properties.get_external_count():
        raise ValueError(f"{name} is stored in another file")
    if n_filters:
        filters = [properties.get_filter(i)[3].decode() for i in range(n_filters)]
        raise ValueError(f"{name} is encoded ({shown(', '.join(filters))}), expected plain numbers")
    chunk = properties.get_chunk() if layout == h5py.h5d.CHUNKED else ()
    if math.prod(chunk) > _MOST_NUMBERS:
        raise ValueError(f"{name} has chunks of {chunk}, expected at most {_MOST_NUMBERS} numbers")
    if layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        raise ValueError(f"{name} is put together from other arrays, expected plain numbers")
    return np.asarray(stored[()], np.float64)
