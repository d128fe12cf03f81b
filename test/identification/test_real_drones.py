"""A real drone, identified from two flights, flies another one better than the known drone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from real_flights import MISSING, flights_folder

from crazyflow_ros.flight_logs import FlightLog, read_flight_log
from crazyflow_ros.flight_logs.motion import in_the_air
from crazyflow_ros.identification import identify_rigid_body, judged

DRONE, MASS = "cf2x_P250", 0.030
FITTED = ("B10_lissajous_fast_rep1", "B8_star_fast_rep1")
JUDGED = "B3_figure8_fast_rep1"


@pytest.fixture
def folder() -> Path:
    folder = flights_folder()
    if folder is None or not (folder / "nanobench").is_dir():
        pytest.skip(MISSING)
    return folder / "nanobench"


def test_nanobench(folder: Path) -> None:
    def read(name: str) -> FlightLog:
        return in_the_air(read_flight_log(folder / f"{name}.csv.xz"))

    fit = identify_rigid_body([read(name) for name in FITTED], DRONE, MASS)
    values = fit.values
    assert values["thrust"][0] == pytest.approx(0.68, abs=0.03)  # its motors are weak
    np.testing.assert_allclose(values["rotor_moment"], [4.9e-4, 5.4e-4], rtol=0.15)
    assert 0.02 < values["motor_lag"][0] < 0.08
    found = judged(read(JUDGED), DRONE, fit, MASS)
    assert found.after.source == "duty cycles"
    assert 100 * found.after.distance[0] < 0.3 < 2 < 100 * found.before.distance[0]
    assert found.after.angle[0] < 0.08 < 0.2 < found.before.angle[0]
    assert 100 * found.after.distance[-1] < 25 < 60 < 100 * found.before.distance[-1]
