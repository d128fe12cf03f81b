"""What is wrong with a simulation, from when on and until when."""

from crazyflow_ros.view.alarms import Alarms

S = 10**9  # ns
LYING = "crashed; it lies there until it is reset"


class Clock:
    """Wall time [s]."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def told(alarms: Alarms) -> list[tuple[float | None, str]]:
    return [(a.time_ns and a.time_ns / S, a.text) for a in alarms.now()]


def test_a_crash_is_told_with_its_time_until_the_drone_is_reset() -> None:
    alarms = Alarms()
    alarms.note_status(4 * S, {}, {})
    alarms.note_event(4 * S, "cf0", "hit", "hit the wall")
    alarms.note_event(5 * S, "cf0", "crashed", "crashed at (1, 2, 0), after it hit the wall")
    alarms.note_status(5 * S - 1, {}, {})  # from before, and late
    assert told(alarms) == [(5.0, "cf0: crashed at (1, 2, 0), after it hit the wall")]
    assert alarms.crashed
    (before,) = alarms.now()
    for time in (6, 60):
        alarms.note_status(time * S, {"cf0": LYING}, {})
        assert alarms.now() == [before]
    alarms.note_reset(("cf1",))
    assert alarms.now() == [before]
    alarms.note_reset(("cf0", "cf1"))
    assert not alarms.now() and not alarms.crashed


def test_a_crash_is_over_when_the_drone_has_recovered() -> None:
    alarms = Alarms()
    alarms.note_event(5 * S, "cf0", "crashed", "crashed")
    alarms.note_status(6 * S, {}, {})
    assert not alarms.now()


def test_what_is_older_than_the_page_has_no_time() -> None:
    alarms = Alarms()
    alarms.note_status(6 * S, {"cf0": LYING}, {})
    alarms.note_status(7 * S, {"cf0": LYING, "imu": "has failed"}, {})
    assert told(alarms) == [(None, f"cf0: {LYING}"), (7.0, "imu: has failed")]


def test_a_hit_is_told_for_some_seconds() -> None:
    clock = Clock()
    alarms = Alarms(clock)
    alarms.note_event(5 * S, "cf0", "hit", "hit the wall")
    clock.now += 5
    alarms.note_event(6 * S, "cf0", "hit", "hit the table")
    alarms.note_event(6 * S, "all", "refused", "takeoff: no")  # who asked was told
    alarms.note_status(60 * S, {}, {})
    assert told(alarms) == [(6.0, "cf0: hit the table")]
    clock.now += 60
    assert not alarms.now()


def test_a_low_battery_is_told_until_it_is_charged() -> None:
    alarms = Alarms()
    alarms.note_status(1 * S, {}, {"cf0": 0.2})
    assert not alarms.now()
    for time, charge in ((2, 0.19), (3, 0.12)):
        alarms.note_status(time * S, {}, {"cf0": charge})
        assert told(alarms) == [(2.0, "cf0: the battery is low")]
    alarms.note_status(4 * S, {}, {"cf0": 1.0})
    assert not alarms.now()


def test_many_are_counted() -> None:
    alarms = Alarms()
    alarms.note_status(0, {}, {})
    alarms.note_status(1 * S, {f"cf{number}": LYING for number in range(100)}, {})
    texts = [text for _, text in told(alarms)]
    assert len(texts) < 6
    assert texts[-1] == f"and {100 - (len(texts) - 1)} more, see the log"
