"""Policies in files of other projects: foundation-policy, and networks in ONNX.

Their networks are read by another process, see `network_files`.
"""

from __future__ import annotations

import io
import signal
import subprocess
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.archive import read_arrays
from crazyflow_ros.checks.confinement import last_words, program
from crazyflow_ros.checks.limits import read_text, shown
from crazyflow_ros.checks.plain_values import convert
from crazyflow_ros.control import Control
from crazyflow_ros.drones import AnyDrone, model_name, resolve
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.extras import require
from crazyflow_ros.network_files import KEY, MEMORY, MOST_BYTES, REFUSED, SECONDS
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.checked import LayerNames, Specification, numbers, parsed
from crazyflow_ros.policy.network import Dense, Layer
from crazyflow_ros.policy.observation import Observation
from crazyflow_ros.policy.policy import Policy

_PATIENCE = 120.0  # s of wall time, where all processors are busy
_MOST_ANSWER = 2 * MOST_BYTES  # with samples
_OUTPUT = "output"
"""Key of the name of the output that is the action; the first output, if it is not given."""
_TOLERANCE = 1e-4
_OBSERVATION = Observation(
    ("position_error", "rotation", "velocity_error", "body_rates", "previous_action"),
    largest_errors=(0.5, 1.0),
)
_NEGATED = [*range(3), *range(12, 15)]  # of the drone relative to the goal, not of the goal


def read_foundation(content: bytes, drone: AnyDrone | None) -> Policy:
    """Return the policy of foundation-policy, RAPTOR, for a drone; it flies any quadrotor.

    Eschmann et al., "RAPTOR: A Foundation Policy for Quadrotor Control",
    https://arxiv.org/abs/2509.11481. Its file is a checkpoint of RLtools in HDF5. It observes the
    position relative to the goal, the rotation matrix, the velocity, the body rates and its
    previous action at 100 Hz, and commands rotors, numbered as here, between standstill and full
    speed. In PX4, its authors clip the errors of position and velocity to 0.5 m and 1 m/s
    (src/modules/mc_raptor); without that, it does not stop a fall that has become fast.

    Raises:
        ValueError: The content is another kind of file, or no drone is given.
        ModuleNotFoundError: h5py is not installed.
    """
    require("foundation")
    if drone is None:
        raise ValueError("it can fly any drone: name the drone that it flies")
    model = resolve(drone)
    layers, _ = read_network("rltools", content)
    first, *others = layers
    if not isinstance(first, Dense) or first.n_in != _OBSERVATION.size:
        raise ValueError(f"the first layer must be dense, with {_OBSERVATION.size} inputs")
    first = first.replace(weights=first.weights.at[:, np.array(_NEGATED)].multiply(-1))
    half = float(Params.create(model).rotor_vel_limits[1]) / 2
    action = Action(Control.rotor_vel, (half,) * 4, (half,) * 4)
    about = "foundation-policy"
    specification = Specification(_OBSERVATION, action, 100, model_name(model), about=about)
    return specification.policy((first, *others))


def read_onnx(content: bytes, sidecar: Path) -> Policy:
    """Return the policy of an ONNX file, a sequence of dense layers.

    ONNX says what the network computes; what it observes and commands is JSON, see `Specification`:
    in the model's metadata under the key `crazyflow_ros`, or in a file of the same name that ends
    in `.json`. What was read is compared with ONNX's reference evaluator.

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


def read_network(
    kind: str, content: bytes, *options: str
) -> tuple[tuple[Layer, ...], dict[str, np.ndarray]]:
    """Return the checked layers of a network, and the other arrays of the answer.

    Args:
        kind: Name of the module of `network_files` that reads it.
        content: The file.
        options: Options of that module.

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
