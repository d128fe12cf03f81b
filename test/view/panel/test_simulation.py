"""What the panel says of a simulator."""

import pytest

pytest.importorskip("viser", reason="the page needs viser")

from crazyflow_ros.view.panel.simulation import troubles_in_lines


def test_few_troubles_are_told_in_full() -> None:
    assert troubles_in_lines({}) == []
    assert troubles_in_lines({"cf0": "crashed", "cf1": "locked"}) == ["cf0: crashed", "cf1: locked"]


def test_many_troubles_are_counted() -> None:
    lines = troubles_in_lines({f"cf{number}": "crashed" for number in range(100)})
    assert len(lines) < 10
    assert lines[0] == "cf0: crashed"
    assert lines[-1].startswith(f"and {100 - (len(lines) - 1)} more")
