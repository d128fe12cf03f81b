"""The examples of cflib, unmodified, in simulated time: they fly as on a real Crazyflie."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from lock_step_flights import Flight, Flights, flights

from benchmark.scripts import CFLIB, examples

pytestmark = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")

FLYING = [name for name in CFLIB if "autonomy" in name or "motion_commander" in name]
SWARM = CFLIB[-1]
REPEATED = "autonomy/autonomous_sequence_high_level.py"
Fly = Callable[[str], Flight]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Flights]:
    with flights(4) as found:
        yield found


@pytest.fixture(scope="module")
def flown(fleet: Flights, tmp_path_factory: pytest.TempPathFactory) -> Fly:
    """Flies each example once."""
    done: dict[str, Flight] = {}

    def fly(name: str) -> Flight:
        if name not in done:
            script, folder = examples() / name, tmp_path_factory.mktemp("cflib")
            for data in script.parent.glob(f"{script.stem}.yaml"):
                shutil.copy(data, folder)
            done[name] = fleet.fly(script, folder)
        return done[name]

    return fly


@pytest.mark.parametrize("name", CFLIB)
def test_it_runs_to_its_end_and_lands(flown: Fly, name: str) -> None:
    flight = flown(name)
    assert flight.code == 0 and "Traceback" not in flight.out + flight.err, flight.err
    assert not [line for line in flight.log if "crashed" in line or "lost" in line], flight.log
    highest = flight.way[:, :, 2].max(axis=0)
    n_flying = 4 if name == SWARM else name in FLYING
    assert (highest > 0.3).sum() == n_flying
    assert flight.way[-1, :, 2].max() < 0.1


def test_it_flies_the_same_way_each_time(fleet: Flights, flown: Fly, tmp_path: Path) -> None:
    """With the tables of the first flight in its cache, and without."""
    script = examples() / REPEATED
    first, second, cached = flown(REPEATED), *(fleet.fly(script, tmp_path) for _ in "12")
    assert first == second
    assert cached.way.tobytes() == first.way.tobytes() and cached.out == first.out
    assert len(cached.sent) < len(first.sent) - 300


def test_a_sequence_of_positions_is_visited(flown: Fly) -> None:
    way = flown("autonomy/autonomous_sequence.py").way[:, 0, :3]
    points = [(0.0, 0.0, 0.4), (0.0, 0.0, 1.2)]
    points += [(x, y, 1.2) for x in (0.5, -0.5) for y in (0.5, -0.5)]
    for point in points:
        assert np.linalg.norm(way - point, axis=1).min() < 0.03, point


def test_an_uploaded_figure_of_eight_is_flown(flown: Fly) -> None:
    way = flown("autonomy/autonomous_sequence_high_level.py").way[:, 0, :3]
    eight = way[way[:, 2] > 0.95] - way[0]
    # The extremes of the polynomials in the program.
    assert eight[:, 0].max() == pytest.approx(1.0, abs=0.08)
    assert eight[:, 0].min() == pytest.approx(-1.0, abs=0.08)
    assert np.ptp(eight[:, 1]) == pytest.approx(1.0, abs=0.15)
    assert np.linalg.norm((way[-1] - way[0])[:2]) < 0.1


def test_a_motion_commander_moves_as_it_is_told(flown: Fly) -> None:
    way = flown("autonomy/motion_commander_demo.py").way[:, 0]
    moved = way[:, :3] - way[0, :3]
    assert moved[:, 0].max() == pytest.approx(0.8, abs=0.1)  # forward(0.8), back(0.8)
    assert moved[:, 2].max() == pytest.approx(0.8, abs=0.1)  # up(0.5) from a height of 0.3
    ahead = way[(way[:, 3] > 0.15) & (np.abs(way[:, 4]) < 0.05), 3]
    assert np.median(ahead) == pytest.approx(0.2, abs=0.03)  # the velocity by default
    assert way[:, 4].min() < -0.5  # right(0.5, velocity=0.8)
    hover = flown("step-by-step/sbs_motion_commander.py").way[:, 0]
    assert hover[:, 2].max() == pytest.approx(0.5, abs=0.05)


def test_logs_and_parameters_are_those_of_the_drone(flown: Fly) -> None:
    logged = flown("logging/basiclog.py").out
    assert "stateEstimate.z: 0.01" in logged
    assert "pm.vbat: 4.199" in logged  # 4.2 in half precision
    lines = flown("logging/basiclog_sync.py").out.splitlines()
    stamps = [int(line[1 : line.index("]")]) for line in lines if line.startswith("[")]
    assert len(stamps) > 100 and set(np.diff(stamps)[1:]) == {10}
    assert "pid_attitude.pitch_kd=0.1234" in flown("parameters/basicparam.py").out
    kept = flown("parameters/persistent_params.py").out
    state = "PersistentParamState(is_stored=True, default_value=6, stored_value=10)"
    assert f"ring.effect: {state}" in kept and kept.rstrip().endswith("stored_value=None)")


def test_refusals_are_in_the_log(flown: Fly) -> None:
    """One asks for the complementary estimator, others set parameters that nobody reads."""
    refused = flown("step-by-step/sbs_connect_log_param.py").log
    assert any("stabilizer.estimator" in line and "got 1" in line for line in refused)
    told = flown("parameters/persistent_params_from_file.py").log
    assert any("activeMarker.back" in line and "no effect" in line for line in told)
    # A gain acts.
    assert not any("pitch_kd" in line for line in flown("parameters/basicparam.py").log)
