"""The environments of Crazyflow 0.4.0 and those of ours with their names, from the same states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("crazyflow_environments.py")


def test_environments_return_what_those_of_crazyflow_return(tmp_path: Path) -> None:
    crazyflow = os.environ.get("CRAZYFLOW_PYTHON")
    if crazyflow is None:
        pytest.skip("CRAZYFLOW_PYTHON must name the Python that has crazyflow; use `make parity`")
    found = []
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ours = "crazyflow_ros.compat.crazyflow"
    runs = {ours: (sys.executable, os.environ), "crazyflow": (crazyflow, plain)}
    for library, (python, environment) in runs.items():
        file = tmp_path / f"{library}.json"
        command = [python, str(SCRIPT), library, str(file)]
        subprocess.run(command, env=environment, check=True, timeout=600, capture_output=True)
        found.append(json.loads(file.read_text()))
    ours, theirs = found
    for name, steps in theirs.items():
        flying, compared = np.ones(3, bool), 0
        for (obs, reward, ends), (their_obs, their_reward, their_ends) in zip(ours[name], steps):
            assert obs.keys() == their_obs.keys()
            for key in obs:
                a, b = np.array(obs[key]), np.array(their_obs[key])
                np.testing.assert_allclose(a[flying], b[flying], atol=2e-5, err_msg=f"{name} {key}")
            np.testing.assert_allclose(
                np.array(reward)[flying], np.array(their_reward)[flying], atol=1e-5, err_msg=name
            )
            assert np.array(ends)[flying].tolist() == np.array(their_ends)[flying].tolist()
            compared += flying.sum()
            flying &= ~np.array(ends)
        assert compared > 150
