"""Angles at which planes of light meet points, beside planes that are built of points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.estimation.base_stations import USUAL_STATIONS, BaseStation, read_stations
from crazyflow_ros.estimation.light_planes import TILT, angle, beam, without_errors

PERFECT = (0.0,) * 7
FILE = """
type: lighthouse_system_configuration
version: '1'
systemType: 2
geos:
  3:
    origin: [1.0, 2.0, 3.0]
    rotation: [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
calibs:
  3:
    uid: 1234
    sweeps:
    - {phase: 0.01, tilt: -0.05, curve: 0.1, gibmag: 0.002, gibphase: 1.5,
       ogeemag: 0.3, ogeephase: 2.1}
    - {phase: 0.02, tilt: 0.04, curve: 0.2, gibmag: -0.003, gibphase: 0.5,
       ogeemag: -0.2, ogeephase: 1.1}
"""


@pytest.mark.parametrize("tilt", [-TILT, TILT])
def test_points_of_a_plane_are_met_at_its_angle(tilt: float) -> None:
    rng = np.random.default_rng(1)
    turned = rng.uniform(-1, 1, 100)
    ahead = np.array([np.cos(turned), np.sin(turned), 0 * turned])
    left = np.array([-np.sin(turned), np.cos(turned), 0 * turned])
    leaning = np.cos(tilt) * np.array([[0.0], [0], [1]]) - np.sin(tilt) * left
    x, y, z = rng.uniform(1, 5, 100) * ahead + rng.uniform(-1, 1, 100) * leaning
    np.testing.assert_allclose(angle((x, y, z), tilt, PERFECT), turned, atol=1e-12)


def test_two_planes_meet_in_the_beam_through_a_point_whatever_the_calibration() -> None:
    rng = np.random.default_rng(2)
    x, y, z = rng.uniform([1, -1, -1], [5, 1, 1], (100, 3)).T
    sweeps = rng.normal(0, 0.01, (2, 7))
    sweeps[:, 1] = -0.048, 0.047
    raw = tuple(angle((x, y, z), tilt, own) for tilt, own in zip((-TILT, TILT), sweeps))
    found = beam(*without_errors(raw, sweeps))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, (y / x, z / x), atol=1e-5)


def test_a_file_of_cfclient_is_read(tmp_path: Path) -> None:
    (path := tmp_path / "room.yaml").write_text(FILE)
    (station,) = read_stations(str(path))
    assert station.channel == 3 and station.uid == 1234 and station.origin == (1.0, 2.0, 3.0)
    assert station.sweeps[1].gibmag == -0.003 and station.rotation[0] == (0.0, -1.0, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("system_configuration", "parameters", "cfclient"),
        ("systemType: 2", "systemType: 1", "version 2"),
        ("0.0, -1.0, 0.0", "0.0, 1.0, 0.0", "rotation"),
        ("[1.0, 2.0, 3.0]", "[1.0, 2.0]", "not enough"),
        ("  3:\n    origin", "  30:\n    origin", "no calibration"),
        ("tilt: 0.04", "tilted: 0.04", "tilt"),
    ],
)
def test_other_files_are_refused_with_the_reason(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    (path := tmp_path / "room.yaml").write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=why) as refusal:
        read_stations(str(path))
    assert str(path) in str(refusal.value)


def test_a_station_looks_where_it_is_told_to() -> None:
    station = BaseStation.looking(0, (1.0, 2.0, 3.0), (0.0, 0.0, 0.0))
    axes = np.array(station.rotation)
    np.testing.assert_allclose(axes[:, 0], -np.array([1, 2, 3]) / np.sqrt(14), atol=1e-12)
    assert axes[2, 2] > 0 and np.linalg.det(axes) == pytest.approx(1)
    assert len({each.channel for each in USUAL_STATIONS}) == 2
