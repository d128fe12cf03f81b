"""What is wrong with a simulation, from when on and until when, and what helps."""

from collections.abc import Mapping

from crazyflow_ros.view.alarms import LAND, RESET, Alarms

S = 10**9  # ns
LYING = "crashed; it lies there until it is reset"


class Clock:
    """Wall time [s]."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def report(
    alarms: Alarms,
    time_ns: int,
    troubles: Mapping[str, str] = {},
    charges: Mapping[str, float] = {},
    states: Mapping[str, str] = {},
) -> None:
    """A message of ~/status; a drone that lies somewhere is in a state that says so."""
    down = {name: "crashed" for name, text in troubles.items() if text == LYING}
    alarms.note_status(time_ns, troubles, charges, {**down, **states})


def told(alarms: Alarms) -> list[tuple[float | None, str]]:
    return [(a.time_ns and a.time_ns / S, a.text) for a in alarms.now()]


def test_a_crash_is_told_with_its_time_until_the_drone_is_reset() -> None:
    alarms = Alarms()
    report(alarms, 4 * S)
    alarms.note_event(4 * S, "cf0", "hit", "hit the wall")
    alarms.note_event(5 * S, "cf0", "crashed", "crashed at (1, 2, 0), after it hit the wall")
    report(alarms, 5 * S - 1)  # from before, and late
    assert told(alarms) == [(5.0, "cf0: crashed at (1, 2, 0), after it hit the wall")]
    assert alarms.crashed
    (before,) = alarms.now()
    for time in (6, 60):
        report(alarms, time * S, {"cf0": LYING})
        assert alarms.now() == [before]
    alarms.note_reset(("cf1",))
    assert alarms.now() == [before]
    alarms.note_reset(("cf0", "cf1"))
    assert not alarms.now() and not alarms.crashed


def test_a_crash_is_over_when_the_drone_has_recovered() -> None:
    alarms = Alarms()
    alarms.note_event(5 * S, "cf0", "crashed", "crashed")
    report(alarms, 6 * S)
    assert not alarms.now()


def test_what_happened_after_the_time_to_which_a_simulation_returns_is_over() -> None:
    """As when a checkpoint is loaded in which only cf2 lies somewhere."""
    alarms = Alarms()
    report(alarms, 1 * S)
    for drone in ("cf0", "cf1"):
        alarms.note_event(50 * S, drone, "crashed", "crashed")
    alarms.note_event(50 * S, "cf3", "battery empty", "its battery is empty")
    report(alarms, 60 * S, {"cf0": LYING, "cf1": LYING, "cf2": LYING})
    report(alarms, 20 * S, {"cf2": LYING})
    assert told(alarms) == [(None, "cf2: crashed")] and not alarms.crashed
    alarms.note_event(21 * S, "cf0", "crashed", "crashed anew")
    report(alarms, 21 * S - 1, {"cf2": LYING})  # from before
    assert told(alarms) == [(21.0, "cf0 and cf2: crashed")]


def test_what_is_older_than_the_page_has_no_time() -> None:
    alarms = Alarms()
    report(alarms, 6 * S, {"cf0": LYING})
    report(alarms, 7 * S, {"cf0": LYING, "imu": "has failed"})
    assert told(alarms) == [(None, "cf0: crashed"), (7.0, "imu: has failed")]
    assert [alarm.remedy for alarm in alarms.now()] == [RESET, ""]


def test_a_hit_is_told_for_some_seconds() -> None:
    clock = Clock()
    alarms = Alarms(clock)
    alarms.note_event(5 * S, "cf0", "hit", "hit the wall")
    clock.now += 5
    alarms.note_event(6 * S, "cf0", "hit", "hit the table")
    alarms.note_event(6 * S, "all", "refused", "takeoff: no")  # who asked was told
    report(alarms, 60 * S)
    assert told(alarms) == [(6.0, "cf0: hit the table")]
    clock.now += 60
    assert not alarms.now()


def test_a_low_battery_is_told_until_it_is_charged() -> None:
    alarms = Alarms()
    report(alarms, 1 * S, {}, {"cf0": 0.2})
    assert not alarms.now()
    for time, charge in ((2, 0.19), (3, 0.12)):
        report(alarms, time * S, {}, {"cf0": charge})
        assert told(alarms) == [(2.0, "cf0: the battery is low")]
    report(alarms, 4 * S, {}, {"cf0": 1.0})
    assert not alarms.now()


def test_a_battery_that_is_low_is_landed_and_then_filled() -> None:
    alarms = Alarms()
    for state, remedy in (("flying", LAND), ("taking off", LAND), ("landed", RESET)):
        report(alarms, 2 * S, {}, {"cf0": 0.1}, {"cf0": state})
        assert [alarm.remedy for alarm in alarms.now()] == [remedy]


def test_drones_that_are_reset_alike_share_an_alarm() -> None:
    """Whether their events were heard, or only their states are known."""
    alarms = Alarms()
    states = {"cf0": "crashed", "cf1": "locked", "cf2": "crashed", "cf3": "lost", "cf4": "crashed"}
    locked, lost = "locked; it lies there until it is reset", "lost by 3 m: a bad state"
    report(alarms, 1 * S, {"cf2": LYING}, states=states)
    alarms.note_event(5 * S, "cf0", "crashed", "crashed at (1, 2, 0)")
    alarms.note_event(7 * S, "cf4", "crashed", "crashed at (2, 2, 0)")
    troubles = {"cf0": LYING, "cf1": locked, "cf2": LYING, "cf3": lost, "cf4": LYING}
    report(alarms, 8 * S, troubles, states=states)
    assert told(alarms) == [
        (7.0, "cf0, cf4 and cf2: crashed"),
        (8.0, "cf1: locked"),
        (8.0, f"cf3: {lost}"),
    ]
    crashed, *_ = before = alarms.now()
    assert crashed.parts == ("cf0", "cf4", "cf2")
    assert {alarm.remedy for alarm in before} == {RESET}
    alarms.note_reset(("cf4", "cf2"))
    assert told(alarms)[0] == (5.0, "cf0: crashed at (1, 2, 0)")
    assert set(alarms.now()[0].ids) < set(crashed.ids)  # who dismissed all has dismissed it


def test_many_are_one_alarm() -> None:
    alarms = Alarms()
    report(alarms, 0)
    report(alarms, 1 * S, {f"cf{number}": LYING for number in range(100)})
    assert told(alarms) == [(1.0, "cf0, cf1, cf2, cf3 and 96 more: crashed")]
    assert len(alarms.now()[0].parts) == 100


def test_many_kinds_are_counted() -> None:
    alarms = Alarms()
    report(alarms, 0)
    report(alarms, 1 * S, {f"part {number}": f"problem {number}" for number in range(100)})
    texts = [text for _, text in told(alarms)]
    assert len(texts) < 6
    assert texts[-1] == f"and {100 - (len(texts) - 1)} more, see the log"
