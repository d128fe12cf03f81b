"""Files of ONNX: dense layers one after the other, as trained with PyTorch and others.

ONNX says what the network computes; what it observes and commands is JSON, see
`checked.Specification`: in the model's metadata under the key `crazyflow_ros`, or in a file of the
same name that ends in `.json`. What was read is compared with ONNX's reference evaluator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.limits import read_text, shown
from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.extras import require
from crazyflow_ros.network_files import KEY, MOST_BYTES
from crazyflow_ros.policy.checked import Specification, numbers, parsed
from crazyflow_ros.policy.foreign import read_network
from crazyflow_ros.policy.policy import Policy

_OUTPUT = "output"
"""Key of the name of the output that is the action; the first output, if it is not given."""
_TOLERANCE = 1e-4


def read(content: bytes, sidecar: Path) -> Policy:
    """Return the policy in the content of a file.

    Args:
        content: The file.
        sidecar: File with the specification, if the model has no metadata.

    Raises:
        ValueError: It is another kind of file, or a network of another kind.
        ModuleNotFoundError: onnx is not installed.
    """
    require("onnx")
    beside = _values(read_text(sidecar, MOST_BYTES)) if sidecar.exists() else {}
    layers, arrays = read_network("onnx_model", content, str(beside.get(_OUTPUT, ""))[:1000])
    held = arrays.get("specification")
    values = beside if held is None else _values(str(held))
    if not values:
        where = f"add metadata {KEY!r}, or a file {sidecar.name}"
        raise ValueError(f"it does not say what the network observes and commands: {where}")
    values.pop(_OUTPUT, None)
    specification: Specification = convert(values, Specification, "specification")
    policy = specification.policy(layers)
    _compare(policy, arrays["samples"], arrays["expected"])
    return policy


def _values(text: str) -> dict[str, Any]:
    values = parsed(text)
    if not isinstance(values, dict):
        raise ValueError(f"its specification must be values by name, got {shown(values)}")
    return values


def _compare(policy: Policy, samples: np.ndarray, expected: np.ndarray) -> None:
    """Refuse a policy that does not compute what ONNX's reference evaluator does."""
    found = np.asarray(policy.network.apply(jnp.asarray(samples)))
    expected = numbers("its output", expected, found.shape)
    worst = float(np.abs(found - expected).max())
    if not worst <= _TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise ValueError(f"its output differs from that of ONNX by {worst:g}")
