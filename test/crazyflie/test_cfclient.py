"""Bitcraze's cfclient, unmodified: it finds, shows and flies our Crazyflie.

A driver uses its window as a person does, without a screen. CFCLIENT_PYTHON names the Python that
has cfclient, which is too large for the environment of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crazyflie_helpers import MODEL, crazyflies

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.parameters import table
from crazyflow_ros.crazyflie.variables import VARIABLES
from crazyflow_ros.drones import load_drone
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import rpy

_DRIVER = Path(__file__).with_name("cfclient_driver.py")
_TIMEOUT = 400.0  # s
_LATENESS = 2.0  # s that widgets may lag behind; they are updated ten times a second


class Session:
    """What cfclient showed, and what was simulated meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._seen: list[tuple[float, Snapshot]] = []
        # It looks at the ports from 19850 on, which belong to this test on an address of its own.
        process = os.getpid()
        address = f"127.{64 + (process >> 16) % 64}.{process >> 8 & 255}.{process & 255}"
        keep = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and k[:4] != "XDG_"}
        own = {"HOME": str(folder), "QT_QPA_PLATFORM": "offscreen", "SCAN_ADDRESS": address}
        with crazyflies(
            link=LinkConfig(address=address), watch=self._watch, wind=(1.0, 0.6, 0.0)
        ) as served:
            done = subprocess.run(
                [os.environ["CFCLIENT_PYTHON"], str(_DRIVER), served.uris[0], str(folder)],
                env={**keep, **own},
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
            )
            self.log, self.malformed = list(served.log), served.server.malformed
            self.states = [str(state) for state in served.physics.commands.states.values()]
        self.errors = done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        self.shown: dict[str, Any] = json.loads((folder / "shown.json").read_text())

    def _watch(self, snapshot: Snapshot) -> None:
        self._seen.append((time.monotonic(), snapshot))

    def before(self, instant: float) -> np.ndarray:
        """Poses until an instant (n, 6): position [m], roll, pitch, yaw [degrees]."""
        return np.array(
            [
                [*s.pos[0], *np.degrees(rpy(s.quat[0])) * (1, -1, 1)]
                for seen, s in self._seen
                if instant - _LATENESS < seen < instant
            ]
        )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    python = os.environ.get("CFCLIENT_PYTHON", "")
    if not python:
        pytest.skip("CFCLIENT_PYTHON names no Python that has cfclient==2026.8.1")
    if not Path(python).exists():
        pytest.skip(f"there is no {python}: CFCLIENT_PYTHON has to have cfclient==2026.8.1")
    return Session(tmp_path_factory.mktemp("cfclient"))


def test_the_flight_tab_shows_the_state(session: Session) -> None:
    """In wind, in which a drone that hovers is not level."""
    shown = session.shown["flight"]["in the air"]
    values = np.array([shown[name] for name in ("X", "Y", "Z", "Roll", "Pitch", "Yaw")])
    was = session.before(shown["time"])
    assert (values > was.min(axis=0) - 0.011).all() and (values < was.max(axis=0) + 0.011).all()
    assert values[2] > 0.95 and abs(shown["Roll"]) > 1.0 and abs(shown["Pitch"]) > 1.0
    figures = load_drone(MODEL)
    share = figures["mass"] * 9.81 / (4 * figures["thrust_max"])
    assert shown["thrust"] == pytest.approx(100 * share, rel=0.03)
    np.testing.assert_allclose(np.array(shown["motors"]) / 65536, share, rtol=0.05)
    assert shown["voltage"] == 4.2


def test_the_supervisor_is_shown(session: Session) -> None:
    shown = session.shown["flight"]
    assert shown["on the ground"]["supervisor"] == ""
    assert shown["on the ground"]["arm button"] == "Auto armed"
    assert shown["in the air"]["supervisor"] == "Flying"
    assert shown["in the air"]["arm button"] == "Emergency stop"
    assert session.states == ["landed"]


def test_all_parameters_are_shown_and_one_is_set(session: Session) -> None:
    shown = session.shown["parameters"]
    expected = {
        entry.full_name: [
            entry.ctype if entry.ctype == "float" else f"{entry.ctype}_t",
            "RO" if entry.read_only else "RW",
            "Yes" if entry.persistent else "No",
        ]
        for entry in table()
    }
    flat = {
        f"{group}.{name}": row
        for group, rows in shown["before"].items()
        for name, row in rows.items()
    }
    assert {name: row[:3] for name, row in flat.items()} == expected
    assert flat["pid_rate.yaw_ki"][3] == "16.7"
    assert flat["pid_attitude.yaw_kp"][3:] == [shown["default"][0], ""] == ["6", ""]
    assert shown["after"]["pid_attitude"]["yaw_kp"][3:] == ["7.5", "7.5"]
    assert not any("pid_attitude.yaw_kp" in line for line in session.log)  # it has an effect


def test_the_console_says_what_has_no_effect(session: Session) -> None:
    lines = session.shown["console"].splitlines()
    tried = ("system.taskDump", "system.assertInfo", "health.startPropTest", "health.startBatTest")
    for name in (*tried, "system.storageStats"):
        assert f"parameter {name} is kept, and has no effect in the simulator" in lines


def test_log_variables_are_listed_and_plotted(session: Session) -> None:
    shown = session.shown
    listed = {f"{group}.{name}" for group, rows in shown["log"].items() for name in rows}
    assert listed == set(VARIABLES)
    assert {"stabilizer", "PID_tuning/Position", "PID_tuning/Velocity"} <= set(shown["plots"])
    for axis, goal in zip("XYZ", (0.0, 0.0, 1.01)):  # it took off and went up by 0.5 m each
        curves = shown["curves"]
        np.testing.assert_allclose(curves[f"posCtl.target{axis}"], goal, atol=0.02)
        now = shown["flight"]["in the air"][axis]
        np.testing.assert_allclose(curves[f"stateEstimate.{axis.lower()}"], now, atol=0.02)


def test_neither_side_complains(session: Session) -> None:
    assert session.shown["complaints"] == []
    assert session.malformed == 0
    assert all(line.endswith("has no effect in the simulator") for line in session.log), session.log
    assert "Traceback" not in session.errors, session.errors
