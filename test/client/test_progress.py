"""The line that shows the progress of a flight."""

from __future__ import annotations

import io

import pytest

from crazyflow_ros.client.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_stays_on_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgressLine, "REFRESH", 0.0)
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    progress = ProgressLine(stream)
    progress.show(1.0, 30.0, "a long story")
    progress.show(2.0, 30.0, "landing")
    progress.close()
    first, second = stream.getvalue().strip("\r\n").split("\r")
    assert "1.0 of 30.0 s" in first and "2.0 of 30.0 s" in second
    assert len(second) >= len(first)
    assert "\n" not in stream.getvalue()[:-1]


def test_progress_stays_on_a_narrow_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    progress = ProgressLine(stream)
    progress.show(1.0, 30.0, "a long story")
    progress.close()
    assert stream.getvalue() == "\r  1.0 of 30.0 s   r\n"


def test_progress_is_sparse_elsewhere() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)
    for second in range(20):
        progress.show(second, 30.0, "landing")
    progress.close()
    assert stream.getvalue().count("\n") == 1
