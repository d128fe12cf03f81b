"""Questions to one user, before something is done that the drones cannot take back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

_NO = "Cancel"


class Confirmation:
    """Asks the user of a tab in a small window over that tab, one question at a time."""

    def __init__(self) -> None:
        self._open: dict[int, Any] = {}  # windows by the number of the tab

    def ask(
        self,
        client: Any,
        title: str,
        question: str,
        yes: str,
        then: Callable[[], None],
    ) -> None:
        """Carry out something if the user says yes.

        Args:
            client: Tab of the user.
            title: Title of the window.
            question: What would happen.
            yes: Label of the button that says yes.
            then: Carries it out.
        """
        self._close(client)
        window = client.gui.add_modal(title)
        self._open[client.client_id] = window
        with window:
            client.gui.add_html(f'<div style="padding:0 0.7em 1em">{escape(question)}</div>')
            confirm = client.gui.add_button(yes, color="red")
            refuse = client.gui.add_button(_NO, color="gray")
        confirm.on_click(partial(self._answer, client, then))
        refuse.on_click(partial(self._answer, client, lambda: None))

    def forget(self, clients: set[int]) -> None:
        """Forget the questions of all tabs but these, which are still open."""
        for number in self._open.keys() - clients:
            self._open.pop(number, None)

    async def _answer(self, client: Any, then: Callable[[], None], _: Any) -> None:
        self._close(client)
        then()

    def _close(self, client: Any) -> None:
        window = self._open.pop(client.client_id, None)
        if window is not None:
            window.close()
