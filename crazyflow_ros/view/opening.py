"""Opens the page in a browser, where there is one and somebody sits in front of it."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping

_PATIENCE = 2.0  # s of wall time in which an open tab of an earlier page connects again


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Return whether a browser can open a window: others would take over the terminal."""
    if platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in environment
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return True
    # Without WSLg, the browser is Windows', which users name in this variable.
    return bool(environment.get("WSL_DISTRO_NAME") and environment.get("BROWSER"))


def is_wanted(
    choice: bool | None, *, is_terminal: bool, environment: Mapping[str, str] = os.environ
) -> bool:
    """Return whether a browser is to be opened.

    Args:
        choice: What the user asked for; None if nothing.
        is_terminal: Whether a person reads what the program prints.
        environment: Environment variables.
    """
    by_hand = is_terminal and not environment.get("CI")
    return has_display(environment) and (by_hand if choice is None else choice)


def open_later(
    url: str, is_seen: Callable[[], bool], show: Callable[[str], object] = webbrowser.open
) -> threading.Thread:
    """Open an address in a browser, in a thread, unless a tab is open already.

    Args:
        url: The address.
        is_seen: Returns whether a tab shows the page.
        show: Opens an address.
    """

    def work() -> None:
        if not threading.Event().wait(_PATIENCE) and not is_seen():
            show(url)

    thread = threading.Thread(target=work, name="browser", daemon=True)
    thread.start()
    return thread
