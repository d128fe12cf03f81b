"""Recorded flights flown again: synthetic ones by another loop, and real ones where there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from real_flights import MISSING, flights_folder

from crazyflow_ros.dynamics import floor_contact, ground_effect
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.reality import closed_loop
from crazyflow_ros.reality.__main__ import main
from crazyflow_ros.reality.closed_loop import Flown, KnownState, Replay, fly
from crazyflow_ros.reality.crtp_flights import fly_by_packets, without_voltage
from crazyflow_ros.reality.flight_comparison import between_repetitions, compare
from crazyflow_ros.reality.recorded import RATE, Recorded, recorded
from crazyflow_ros.sim import Sim

DRONE = "cf2x_L250"
SECONDS, STEP_AT = 8.0, 4.0
DELAY, OFFSET = 0.06, 0.1  # s and m
REST = 0.054  # m, where markers of a standing drone are seen


def setpoints(time: np.ndarray) -> np.ndarray:
    """Take-off to 1 m, then from `STEP_AT` on a circle."""
    found = np.zeros((len(time), 16))
    found[:, 9:13] = [0, 0, 0, 1]
    circle = np.where(time < STEP_AT, 0.0, time - STEP_AT)
    found[:, 0], found[:, 1] = 0.5 * np.sin(circle), 0.5 * (1 - np.cos(circle))
    found[:, 2] = np.clip(time / 2, 0, 1)
    return found


@pytest.fixture(scope="module")
def log() -> FlightLog:
    """A flight of `Sim`, stepped by a plain loop: not the one that flies recordings."""
    forces = (floor_contact(DRONE, 500), ground_effect(DRONE))
    how = {"control": "state", "controller": "pid", "power_distribution": "capped"}
    sim = Sim(1, 1, DRONE, forces=forces, **how)
    time = np.arange(int(SECONDS * RATE)) / RATE
    start = sim.data
    sim.step(500)  # it comes to rest, with its rotors on
    states = sim.data.states.replace(rotor_vel=start.states.rotor_vel)
    sim.data = start.replace(states=states)
    height = float(sim.data.states.pos[0, 0, 2])
    poses = []
    for setpoint in setpoints(time):
        setpoint[2] += height - REST
        states = sim.data.states
        poses.append([*np.asarray(states.pos[0, 0]), *np.asarray(states.quat[0, 0])])
        sim.state_control(setpoint[None, None])
        sim.step(5)
    table = np.array(poses)
    table[:, 2] += REST - height
    samples = TimedValues(time, table), TimedValues(time, setpoints(time))
    return FlightLog("synthetic_rep1", *samples, controller="pid")


@pytest.fixture(scope="module")
def flown(log: FlightLog) -> dict[str, Flown]:
    """The flight again; with late poses; from the air; where it errs; with an empty battery."""
    time, pose = log.pose.time, log.pose.values
    estimate = np.hstack([pose, np.gradient(pose[:, :3], time, axis=0)])
    estimate[:, 0] += OFFSET
    late = np.array([0, *(time + DELAY)])
    logs = {
        "same": log,
        "late": replace(log, name="late", pose=TimedValues(late, pose[[0, *range(len(pose))]])),
        "errs": replace(log, name="errs", estimate=TimedValues(time, estimate)),
        "air": replace(log.between(3, SECONDS), name="air"),
        "empty": replace(log, name="empty", voltage=TimedValues(time, 0 * pose[:, :1] + 1.5)),
    }
    told: list[str] = []
    found = fly([recorded(log) for log in logs.values()], Replay(DRONE), told.append)
    assert told and all(isinstance(line, str) for line in told)
    return dict(zip(logs, found))


def test_a_flight_of_the_simulator_itself_is_repeated(flown: dict[str, Flown]) -> None:
    same = flown["same"]
    assert same.real.stands and same.real.floor == pytest.approx(REST, abs=1e-6)
    poses = same.real.log.pose.at(same.real.time)[:, :3]
    assert np.abs(same.pos - poses).max() < 2e-4
    assert np.abs(same.pos - same.real.pos).max() < 2e-3  # which is smoothed
    found = compare(same)
    assert found.rmse < 1e-3 and found.attitude_rmse < 5e-3 and found.fall is None
    assert found.real_from_setpoint > 0.15  # PID ignores the velocity of setpoints


def test_the_same_flight_by_packets(log: FlightLog) -> None:
    """`Sim` flew it with states, at the same rates; the drone of packets has the same physics."""
    again = replace(log.between(2, SECONDS), name="air")
    here, air = fly_by_packets(
        [without_voltage(recorded(x)) for x in (log, again)], Replay(DRONE, known=KnownState.true)
    )
    assert compare(here).rmse < 5e-3
    assert compare(air).rmse < 0.06  # it hovered before, where the log still climbs
    with pytest.raises(ValueError, match="knows nothing of the recorded errors"):
        fly_by_packets([recorded(log)], Replay(DRONE))


def test_late_poses_are_found_as_a_shift(flown: dict[str, Flown]) -> None:
    found = compare(flown["late"])
    assert found.shift == pytest.approx(DELAY, abs=1e-9)
    assert found.shifted_rmse < 2e-3 < 0.01 < found.rmse
    known = recorded(flown["late"].real.log, lateness=-DELAY)
    assert np.abs(known.setpoint - flown["same"].real.setpoint[: len(known.time)]).max() < 1e-9


def test_the_drone_flies_to_where_its_estimate_is_right(flown: dict[str, Flown]) -> None:
    shifted = flown["errs"].pos[-1] - flown["same"].pos[-1]
    assert shifted == pytest.approx([-OFFSET, 0, 0], abs=0.01)


def test_a_flight_can_begin_in_the_air(flown: dict[str, Flown]) -> None:
    begun = flown["air"]
    assert not begun.real.stands and begun.pos[0] == pytest.approx(begun.real.pos[0], abs=1e-6)
    assert begun.real.floor < begun.real.pos[:, 2].min() - 0.5  # unknown, so out of reach
    found = compare(begun)
    assert found.begin == pytest.approx(2.0, abs=0.05)
    # The integrals of a drone that has hovered are not those of one that has just taken off.
    assert max(found.rmse_axes[:2]) < 0.01 < found.rmse_axes[2] < 0.1


def test_an_empty_battery_keeps_the_drone_on_the_floor(flown: dict[str, Flown]) -> None:
    assert compare(flown["empty"]).fall == "does not take off"


def test_another_drone_is_farther_away(log: FlightLog, flown: dict[str, Flown]) -> None:
    (heavy,) = fly([recorded(log)], Replay(DRONE, mass=0.042, known=KnownState.true))
    assert compare(heavy).rmse > 10 * compare(flown["same"]).rmse


def made(pos: np.ndarray, quat: np.ndarray, name: str = "a") -> tuple[Recorded, np.ndarray]:
    time = np.arange(len(pos)) / RATE
    setpoint = np.zeros((len(pos), 16))
    setpoint[:, :3] = pos
    empty = np.zeros((len(pos), 10))
    log = FlightLog(name, TimedValues(time, np.hstack([pos, quat])), controller="pid")
    return Recorded(log, time, 0.0, True, pos, quat, 0 * pos, setpoint, empty[:, :1], empty), time


def hovering(seconds: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """At 1 m from 1 s on."""
    n = int(seconds * RATE)
    pos = np.zeros((n, 3))
    pos[:, 2] = np.clip(np.arange(n) / RATE, 0, 1)
    return pos, np.tile([0, 0, 0, 1.0], (n, 1))


def test_falls_are_named_with_their_time() -> None:
    pos, quat = hovering()
    real, _ = made(pos, quat)
    below, turned = pos.copy(), quat.copy()
    below[500:, 2] = 0.0
    turned[600:] = [1, 0, 0, 0]
    falls = [
        compare(Flown(real, closed_loop.Controller.pid, p, q, quat, None)).fall
        for p, q in ((pos, quat), (below, quat), (pos, turned), (below, turned))
    ]
    floor = "is on the floor at 5.0 s"
    assert falls == [None, floor, "tilts by more than 90 degrees at 6.0 s", floor]


def test_a_flight_is_judged_until_the_setpoint_jumps_onto_the_drone() -> None:
    pos, quat = hovering()
    real, _ = made(pos, quat)
    real.setpoint[:700, 0] = 0.5  # ahead of the drone, then a planner takes over
    found = compare(Flown(real, closed_loop.Controller.pid, pos, quat, quat, None))
    assert found.end == pytest.approx(7.0, abs=0.1)
    assert found.begin == pytest.approx(0.2 + 2.0, abs=0.05)


def test_repetitions_of_a_kind_are_compared_with_the_best_shift() -> None:
    names = ("a_rep1", "a_rep2", "b_rep1")
    flights = []
    for name, offset in zip(names, (0.0, 0.03, 0.5)):
        pos, quat = hovering()
        pos[:, 0] += offset
        flights.append(made(pos, quat, name)[0])
    found = between_repetitions(flights)
    assert found == {"a_rep1": pytest.approx(0.03), "a_rep2": pytest.approx(0.03)}


def test_what_cannot_be_flown_again_is_refused(log: FlightLog) -> None:
    for refuse, named in (
        (lambda: recorded(replace(log, setpoint=None)), "setpoints"),
        (lambda: recorded(log.between(0, 0.5)), r"got 0\.(49|5) s"),
        (lambda: recorded(log, lateness=2.0), "lateness"),
        (lambda: recorded(log.between(0, 1.1)).flying, r"0\.2 m .*got 0"),
        (lambda: Replay().controller_of(replace(log, controller=None)), "controller None"),
    ):
        with pytest.raises(ValueError, match=named):
            refuse()
    assert Replay(controller="mellinger").controller_of(log) == "mellinger"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("drone", "cf9"), ("dynamics", "third_principles"), ("controller", "fuzzy"),
        ("known", "all"), ("mass", 0.0), ("mass", float("nan")),
    ],
)  # fmt: skip
def test_wrong_options_are_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Replay(**{name: value})  # type: ignore[arg-type]


def table_of(log: FlightLog, path: Path) -> Path:
    """Write the flight as NanoBench does."""
    names = ["t", "px", "py", "pz", "qx", "qy", "qz", "qw"]
    names += [f"motor_motor_m{i}" for i in (1, 2, 3, 4)]
    names += [f"sp_ctrltarget_{axis}" for axis in "xyz"] + ["pid_controller_cmd_thrust"]
    time = log.pose.time
    sp = setpoints(time)[:, :3]
    motors = np.full((len(time), 5), 3e4)
    rows = np.column_stack([time, log.pose.values, motors[:, :4], sp, motors[:, 4]])
    np.savetxt(path, rows, "%.9f", delimiter=",", header=",".join(names), comments="")
    return path


def test_the_program_prints_writes_and_draws(
    log: FlightLog, flown: dict[str, Flown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    flights = tmp_path / "flights"
    flights.mkdir()
    table_of(log, flights / "synthetic_rep1.csv")
    table_of(log, flights / "two.csv")

    def flown_before(given: Sequence[Recorded], *_: object) -> list[Flown]:
        assert [each.log.name for each in given] == ["synthetic_rep1"]
        return [flown["same"]]

    monkeypatch.setattr(closed_loop, "fly", flown_before)  # it is tested above
    words = [str(flights), "--json", str(tmp_path / "a.json"), "--pictures", str(tmp_path / "p")]
    assert main([*words, "--tables", "closed-loop"]) == 0
    shown = capsys.readouterr().out
    assert "| synthetic_rep1 | pid" in shown and "**median**" in shown
    assert "not judged: two is a copy of synthetic_rep1" in shown
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["summary"]["pid"]["flights"] == 1
    assert content["closed-loop"][0]["rmse"] < 2e-3
    assert content["settings"]["known"] == "recorded"
    assert (tmp_path / "p" / "synthetic_rep1.png").read_bytes().startswith(b"\x89PNG")


def test_the_program_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, named in (
        (["none.csv"], "none.csv"),
        (["."], "flight"),
        (["a.csv", "--pictures", "there/is/no"], "there/is"),
        (["a.csv", "--drone", "cf9"], "cf9"),
        (["a.csv", "--mass", "-1"], "mass"),
    ):
        assert main(words) == 1
        assert named in capsys.readouterr().err


SIX = (
    "B2_circle_slow_rep1",
    "B3_figure8_medium_rep1",
    "B5_helix_medium_rep1",
    "B7_oval_medium_rep1",
    "B8_star_medium_rep1",
    "B5_helix_fast_mell_rep1",
)


def test_real_flights_are_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = flights_folder()
    files = [folder / "nanobench" / f"{name}.csv.xz" for name in SIX] if folder else []
    if not all(file.is_file() for file in files) or not files:
        pytest.skip(MISSING)
    tables = ("--tables", "closed-loop", "open-loop", "parts")
    assert main([*map(str, files), "--json", str(tmp_path / "six.json"), *tables]) == 0
    assert not capsys.readouterr().out.count("not judged")
    found = json.loads((tmp_path / "six.json").read_text())
    assert [each["fall"] for each in found["closed-loop"]] == [None] * 6
    assert found["summary"]["pid"]["median_rmse"] < 0.06
    assert found["summary"]["pid"]["worst_shifted_rmse"] < 0.08


def test_a_real_flight_is_repeated_by_packets_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = flights_folder()
    file = folder / "nanobench" / "B8_star_medium_rep1.csv.xz" if folder else Path("nowhere")
    if not file.is_file():
        pytest.skip(MISSING)
    drone = Path(__file__).parents[2] / "examples" / "14_real_drone"
    words = [str(file), "--drone", str(drone), "--json", str(tmp_path / "one.json")]
    assert main([*words, "--tables", "unaided"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"drone: {drone}, 30 g, first_principles; controllers: those that")
    (found,) = json.loads((tmp_path / "one.json").read_text())["unaided"]
    assert found["true"]["rmse"] < 0.05 and found["filtered"]["rmse"] < 0.1
    for way in ("true", "filtered"):
        assert found[f"{way}_by_packets"]["rmse"] == pytest.approx(found[way]["rmse"], abs=0.01)
