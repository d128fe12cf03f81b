"""What must be the same in all simulators that share a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import mujoco

from crazyflow_ros.checks.limits import read_bytes
from crazyflow_ros.checks.plain_values import plain
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.initial_poses import initial_poses
from crazyflow_ros.network_files import MOST_BYTES

_FREE = ("real_time_factor", "start_paused", "watchdog_timeout")
_FILES = ("drone_model", "scene", "policy")  # in other folders on other hosts


def configuration(config: SimulationConfig, drones: Sequence[str]) -> dict[str, Any]:
    """Return all that the flights depend on, by name, as JSON values."""
    values = {name: value for name, value in asdict(config).items() if name not in _FREE}
    values |= {name: Path(values[name]).name for name in _FILES}
    values |= {
        "drones": list(drones),
        "initial_poses": initial_poses(config, len(drones)),
        "figures": _digest((folder_of(config.drone_model) / FIGURES).read_bytes()),
        "weights": _digest(read_bytes(config.policy, MOST_BYTES)) if config.policy else "",
        "versions": f"jax {jax.__version__}, mujoco {mujoco.__version__}",
    }
    plain_values: dict[str, Any] = json.loads(json.dumps(plain(values), default=str))
    return plain_values


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
