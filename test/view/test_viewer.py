"""Frame after frame, whatever one of them raises."""

import threading
from collections import deque
from collections.abc import Iterator

import pytest

from crazyflow_ros.view.viewer import Viewer


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    viewer = Viewer(port=0)
    yield viewer
    viewer.close()


def lost_race() -> None:
    """Raise what `asyncio.Event.set` raises when its loop begins to wait meanwhile."""
    waiters = deque([1, 2])
    for _ in waiters:
        waiters.append(3)


def broken() -> None:
    raise RuntimeError("broken")


def test_frames_follow_one_that_failed_and_the_same_error_is_printed_once(
    viewer: Viewer, capsys: pytest.CaptureFixture[str]
) -> None:
    frames, ended, reported = [broken, broken, lost_race, broken], threading.Event(), list[str]()

    def show() -> None:
        if not frames:
            ended.set()
            return
        frames.pop()()

    viewer.run(show, ended, reported.append)
    assert not frames and reported == ["RuntimeError('broken')"] * 3
    assert capsys.readouterr().err.count("Traceback") == 1
