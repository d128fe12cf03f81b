"""The points of a plot, for the browser and as a file."""

import csv
import io
import math

from crazyflow_ros.view.panel.series import Series


def series() -> Series:
    return Series("position of cf0", ("x [m]", "z [m]"), ("#111", "#222"), (False, True))


def times(content: dict[str, list[list[float]]]) -> list[float]:
    return [row[0] for row in content["rows"]]


def test_only_what_is_new_is_a_change() -> None:
    points = series()
    assert points.change() is None
    points.add(10**9, (1.0, 2.0))
    points.add(10**9, (5.0, 5.0))  # the same time again
    points.add(2 * 10**9, (3.0, 4.0))
    assert points.change() == {"rows": [[1.0, 1.0, 2.0], [2.0, 3.0, 4.0]]}
    assert points.change() is None
    assert times(points.everything()) == [1.0, 2.0]


def test_what_is_not_finite_is_a_gap_and_so_is_a_pause_of_measuring() -> None:
    points = series()
    points.add(1, (math.inf, math.nan))
    points.interrupt()
    points.add(3, (1.0, 2.0))
    rows = points.everything()["rows"]
    assert [row[1:] for row in rows] == [[None, None], [None, None], [1.0, 2.0]]


def test_an_earlier_time_begins_anew() -> None:
    points = series()
    for time_ns in (10**9, 2 * 10**9, 5 * 10**8):
        points.add(time_ns, (0.0, 0.0))
    assert times(points.everything()) == [0.5]


def test_as_many_points_are_kept_as_a_plot_shows() -> None:
    points = series()
    for number in range(2000):
        points.add(number, (number, 0.0))
    content = points.everything()
    assert len(content["rows"]) == content["most"] and content["rows"][-1][1] == 1999


def test_a_file_has_units_exact_times_and_empty_cells_for_gaps() -> None:
    points = series()
    points.add(123_456_789_012_345_678, (0.1 + 0.2, math.nan))
    (head, row) = csv.reader(io.StringIO(points.as_csv()))
    assert head == ["time [s]", "x [m]", "z [m]"]
    assert row == ["123456789.012345678", repr(0.1 + 0.2), ""]
