"""Which of viser's clients is which tab of the shell, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("viser", reason="the page needs viser")

from page_tab import ShellTab, Tab, free_port, until

from crazyflow_ros.view.shell import Shell
from crazyflow_ros.view.viewer import Viewer

Told = list[tuple[int, bool]]
"""Numbers of viser's clients, and whether they are dark."""


@pytest.fixture
def viewer() -> Iterator[tuple[Viewer, Told]]:
    viewer, told = Viewer(port=free_port()), Told()
    viewer.theme.on_change(lambda client, dark: told.append((client.client_id, dark)))
    yield viewer, told
    viewer.close()


@contextmanager
def tab(viewer: Viewer) -> Iterator[tuple[int, str, Any]]:
    """A tab: the number of its client, its mark, and what it sends through the shell."""
    port, before = viewer.server.get_port(), set(viewer.server.get_clients())
    with Tab(port) as viser_tab, ShellTab(port) as shell:
        mark = viser_tab.mark()
        (number,) = set(viewer.server.get_clients()) - before
        yield number, mark, shell.send


def test_each_tab_is_known_by_its_mark(viewer: tuple[Viewer, Told]) -> None:
    """However its messages come, and none that has a mark of nobody."""
    page, told = viewer
    with tab(page) as (one, mark, send), tab(page) as (other, other_mark, send_other):
        send("dark", True)
        for wrong in ("", "x", 1, [mark], {"mark": mark}):
            send("mark", wrong)
        send("dark", False)
        send_other("mark", other_mark)
        send_other("dark", "yes")
        send_other("dark", True)
        until(lambda: told == [(other, True)], "the other tab")
        send("mark", mark)
        until(lambda: told == [(other, True), (one, False)], "the first tab")


def test_a_tab_that_has_closed_is_forgotten(viewer: tuple[Viewer, Told]) -> None:
    page, told = viewer
    with tab(page) as (first, mark, send):
        send("mark", mark)
        send("dark", True)
        until(lambda: told == [(first, True)], "the first tab")
    until(lambda: not page.server.get_clients(), "the end of the tab")
    with tab(page) as (second, new_mark, send):
        send("mark", mark)  # of the tab before
        send("dark", True)
        send("mark", new_mark)
        until(lambda: told[1:] == [(second, True)], "the second tab")


def test_the_switch_makes_all_tabs_dark(viewer: tuple[Viewer, Told]) -> None:
    port = viewer[0].server.get_port()
    with Tab(port) as viser_tab, ShellTab(port) as shell:
        assert shell.next("dark page") is False
        viser_tab.set("Dark page", True)
        assert shell.next("dark page") is True


def test_a_page_that_is_not_as_expected_is_refused() -> None:
    with pytest.raises(ValueError, match="icon"):
        Shell().complete(b"<html><head><title>Viser</title></head></html>")
