"""When the page is opened in a browser, and when not at all."""

from pathlib import Path

import pytest

from crazyflow_ros.view.__main__ import has_display, is_wanted, main, open_later

DISPLAY = {"DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        (DISPLAY, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"SSH_CONNECTION": "1 2 3 4"}, "linux", False),
        ({"SSH_CONNECTION": "1 2 3 4"} | DISPLAY, "linux", True),  # ssh -X
        ({"BROWSER": "lynx"}, "linux", False),  # it would take over the terminal
        ({"WSL_DISTRO_NAME": "Debian", "BROWSER": "wslview"}, "linux", True),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1 2 3 4"}, "darwin", False),
    ],
)
def test_a_browser_needs_a_display(
    environment: dict[str, str], platform: str, expected: bool
) -> None:
    assert has_display(environment, platform) == expected


@pytest.mark.parametrize(
    ("choice", "is_terminal", "environment", "expected"),
    [
        (None, True, DISPLAY, True),
        (None, False, DISPLAY, False),
        (None, True, DISPLAY | {"CI": "true"}, False),
        (False, True, DISPLAY, False),
        (True, False, DISPLAY, True),
        (True, True, {}, False),
    ],
)
def test_it_is_opened_for_who_asks_or_sits_there(
    choice: bool | None, is_terminal: bool, environment: dict[str, str], expected: bool
) -> None:
    assert is_wanted(choice, is_terminal=is_terminal, environment=environment) == expected


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_tab_that_is_open_is_not_opened_again(is_seen: bool) -> None:
    opened: list[str] = []
    open_later("http://127.0.0.1:1/", lambda: is_seen, opened.append).join(60)
    assert opened == ([] if is_seen else ["http://127.0.0.1:1/"])


def test_files_that_are_no_recordings_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("viser", reason="the page needs viser")
    (tmp_path / "text.mcap").write_text("not a recording")
    for name in ("none.mcap", "text.mcap"):
        assert main([str(tmp_path / name)]) == 1
        assert name in capsys.readouterr().err
