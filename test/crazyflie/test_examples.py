"""The examples of cflib, unmodified, from its wheel: they fly as on a real Crazyflie.

They run at the same time, each with a drone of its own, because they sleep most of the time.
"""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from crazyflie_helpers import Crazyflies, crazyflies

from benchmark.scripts import CFLIB, examples
from crazyflow_ros.runtime import Snapshot

pytestmark = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")
_TIMEOUT = 240.0  # s

FLYING = [name for name in CFLIB if "autonomy" in name or "motion_commander" in name]
SWARM = CFLIB[-1]


class Run:
    """What the programs wrote, and where the drones were."""

    def __init__(self) -> None:
        self.output: dict[str, str] = {}
        self.codes: dict[str, int] = {}
        self.log: list[str] = []
        self.states: dict[str, str] = {}
        self.seen: list[np.ndarray] = []
        self.vel: list[np.ndarray] = []

    def watch(self, snapshot: Snapshot) -> None:
        self.seen.append(snapshot.pos.copy())
        self.vel.append(snapshot.vel.copy())

    def way(self, name: str) -> np.ndarray:
        """Positions of the drone of a program (n, 3)."""
        return np.array(self.seen)[:, CFLIB.index(name)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    done = Run()
    with crazyflies(len(CFLIB) + 3, watch=done.watch) as served:
        programs = {}
        for i, name in enumerate(CFLIB):
            own = tmp_path_factory.mktemp("cflib")
            programs[name] = served.run(_program(name, served, own), served.uris[i], own)
        for name, program in programs.items():
            try:
                done.output[name] = program.communicate(timeout=_TIMEOUT)[0]
            except subprocess.TimeoutExpired:
                program.kill()
                done.output[name] = f"killed after {_TIMEOUT} s\n" + program.communicate()[0]
            done.codes[name] = program.returncode
        done.log = list(served.log)
        done.states = {name: str(state) for name, state in served.physics.commands.states.items()}
    return done


def _program(name: str, served: Crazyflies, folder: Path) -> Path:
    """Return the program; the one of a swarm has addresses of its own, which are replaced."""
    path = examples() / name
    if name != SWARM:
        return path
    text = path.read_text()
    for i in range(4):
        text = text.replace(f"radio://0/20/2M/E7E7E7E70{i + 1}", served.uris[len(CFLIB) - 1 + i])
    copy = folder / path.name
    copy.write_text(text)
    return copy


@pytest.mark.parametrize("name", CFLIB)
def test_it_runs_to_its_end(run: Run, name: str) -> None:
    assert run.codes[name] == 0, run.output[name]
    assert "Traceback" not in run.output[name], run.output[name]


def test_nothing_fell_and_all_have_landed(run: Run) -> None:
    assert not [line for line in run.log if "crashed" in line or "lost" in line], run.log
    flew = [*(CFLIB.index(name) for name in FLYING), *range(len(CFLIB) - 1, len(CFLIB) + 3)]
    assert {run.states[f"cf{i}"] for i in flew} == {"landed"}, run.states


def test_a_sequence_of_positions_is_visited(run: Run) -> None:
    way = run.way("autonomy/autonomous_sequence.py")
    for point in (
        *((0.0, 0.0, 0.4), (0.0, 0.0, 1.2), (0.5, -0.5, 1.2)),
        *((0.5, 0.5, 1.2), (-0.5, 0.5, 1.2), (-0.5, -0.5, 1.2)),
    ):
        assert np.linalg.norm(way - point, axis=1).min() < 0.03, point


def test_an_uploaded_figure_of_eight_is_flown(run: Run) -> None:
    way = run.way("autonomy/autonomous_sequence_high_level.py")
    flown = way[way[:, 2] > 0.95] - way[0]
    # The extremes of the polynomials in the program.
    assert flown[:, 0].max() == pytest.approx(1.0, abs=0.08)
    assert flown[:, 0].min() == pytest.approx(-1.0, abs=0.08)
    assert np.ptp(flown[:, 1]) == pytest.approx(1.0, abs=0.15)
    assert np.linalg.norm((way[-1] - way[0])[:2]) < 0.1


def test_a_motion_commander_moves_as_it_is_told(run: Run) -> None:
    """It sleeps in wall time, of which a busy computer has more than the simulation."""
    i = CFLIB.index("autonomy/motion_commander_demo.py")
    vel, way = np.array(run.vel)[:, i], run.way(CFLIB[i])
    ahead = vel[(vel[:, 0] > 0.15) & (np.abs(vel[:, 1]) < 0.05), 0]
    assert np.median(ahead) == pytest.approx(0.2, abs=0.03)  # forward(0.8), at 0.2 m/s by default
    assert vel[:, 1].min() < -0.5  # right(0.5, velocity=0.8)
    away = way - way[0]
    assert 0.1 < away[:, 0].max() < 0.95
    assert away[:, 2].max() > 0.3  # the height of its take-off, before up(0.5)
    hover = run.way("step-by-step/sbs_motion_commander.py")
    assert hover[:, 2].max() == pytest.approx(0.5, abs=0.05)


def test_logs_and_parameters_are_those_of_the_drone(run: Run) -> None:
    logged = run.output["logging/basiclog.py"]
    assert "stateEstimate.z: 0.01" in logged
    assert "pm.vbat: 4.199" in logged  # 4.2 in half precision
    stamps = [
        int(line[1 : line.index("]")])
        for line in run.output["logging/basiclog_sync.py"].splitlines()
        if line.startswith("[")
    ]
    assert len(stamps) > 100 and not (np.diff(stamps)[1:] % 10).any()
    assert "pid_attitude.pitch_kd=0.1234" in run.output["parameters/basicparam.py"]
    kept = run.output["parameters/persistent_params.py"]
    assert (
        "ring.effect: PersistentParamState(is_stored=True, default_value=6, stored_value=10)"
        in kept
    )
    assert kept.rstrip().endswith("stored_value=None)")


def test_refusals_are_in_the_log(run: Run) -> None:
    """One asks for the complementary estimator, others set parameters that nobody reads."""
    i = CFLIB.index("step-by-step/sbs_connect_log_param.py")
    refused = f"cf{i}: stabilizer.estimator must be 2 (Kalman), got 1"
    assert refused in run.log
    i = CFLIB.index("parameters/persistent_params_from_file.py")
    told = f"cf{i}: parameter activeMarker.back is kept, and has no effect in the simulator"
    assert told in run.log
    assert not any("pid_attitude.pitch_kd" in line for line in run.log)  # a gain, which acts
