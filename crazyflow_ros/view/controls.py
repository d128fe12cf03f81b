"""The panel: tabs, sections and inputs of the page, which `panel.js` draws in each browser tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, NamedTuple

from crazyflow_ros.view.access import is_number
from crazyflow_ros.view.shell import Shell

_Box = Literal["section", "tabs", "tab", "text", "place"]
_Input = Literal["button", "buttons", "choice", "switch", "slider", "number", "vector", "field"]
Kind = _Box | _Input
"""`text` is HTML, `place` is filled by a script, `field` is a line of text."""

_LONGEST = 200  # characters of a text that a user writes


class User(NamedTuple):
    """Who uses a tab."""

    shell: Shell
    tab: int

    def tell(self, title: str, text: str, *, waits: bool = False) -> Callable[[], None]:
        """Show a note, and return what takes it away; one that does not wait goes by itself."""
        note = {"id": next(_NOTES), "title": title, "text": text, "waits": waits}
        self.shell.send("note", note, [self.tab])
        return lambda: self.shell.send("note", {"id": note["id"]}, [self.tab])


_NOTES = count(1)

Listener = Callable[[User, Any], object]
"""Receives who has used an input, and its value."""


class _Property:
    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, control: PageControl, _: type) -> Any:
        return control.properties[self._name]

    def __set__(self, control: PageControl, value: Any) -> None:
        control.set(**{self._name: value})


class PageControl:
    """An element of the panel: what is set appears in all tabs.

    Attributes:
        properties: What `panel.js` draws.
        listeners: Called after a user has used it, in the server's thread.
        value: Its value.
        label: Its label.
        options: Its options, of which the value is one, unless it is a group of buttons.
        visible: Whether it is shown.
        content: HTML of a text.
    """

    value, label, options = _Property(), _Property(), _Property()
    visible, content = _Property(), _Property()

    def __init__(self, show: Callable[[PageControl], None], properties: dict[str, Any]) -> None:
        self._show, self.properties = show, properties
        self.listeners: list[Listener] = []
        show(self)

    def set(self, **properties: Any) -> None:
        """Set some of the properties."""
        now = self.properties | properties
        if now["kind"] == "choice" and now["value"] not in now["options"]:
            now["value"] = now["options"][0]
        if now != self.properties:
            self.properties = now
            self._show(self)

    def on_change(self, listener: Listener) -> None:
        """Call a function after a user has used it, in the server's thread."""
        self.listeners.append(listener)


class PageControls:
    """The elements of the panel, the same in all tabs. All methods are thread-safe.

    Args:
        shell: The page's shell.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell, self._controls = shell, dict[int, PageControl]()
        self._inside = [0]
        self._answers: dict[int, Callable[[], object]] = {}  # by tab
        shell.on("control", self._take)
        shell.on("answer", self._answer)

    def add(
        self, kind: Kind, label: str = "", value: Any = None, *, order: int = 50, **more: Any
    ) -> PageControl:
        """Add an element, within those of `inside`.

        Args:
            kind: What it is.
            label: Its label.
            value: Its value at first.
            order: Its place among its neighbours; those of the same order follow each other.
            **more: Further properties: `hint`, `options`, `min`, `max`, `step`, `visible`,
                `content`, `is_open` of a section, `tone` of buttons, `danger`: those of a group
                that do harm, `is_bare`: its label is not seen, and `own`: the kind of message by
                which each tab tells its own value to `Tabs`.
        """
        number = len(self._controls) + 1
        if kind == "choice":
            value = more["options"][0] if value is None else value
        properties: dict[str, Any] = {"id": number, "in": self._inside[-1], "kind": kind}
        properties |= {"label": label, "value": value, "order": order, "visible": True}
        properties |= {"options": (), **more}
        control = PageControl(self._show, properties)
        self._controls[number] = control
        return control

    @contextmanager
    def inside(self, control: PageControl) -> Iterator[PageControl]:
        """Add elements to a section, a group of tabs, or a tab."""
        self._inside.append(control.properties["id"])
        yield control
        self._inside.pop()

    def section(self, label: str, **more: Any) -> Any:
        """Add a section, inside which elements are added."""
        return self.inside(self.add("section", label, **more))

    def tab(self, label: str) -> Any:
        """Add a tab to a group of tabs, inside which elements are added."""
        return self.inside(self.add("tab", label))

    def ask(self, user: User, question: str, text: str, yes: str, then: Callable[[], Any]) -> None:
        """Ask a user in a window over that tab.

        Args:
            user: Who is asked; a new question replaces the one before.
            question: What is asked.
            text: What happens then.
            yes: Label of the button that agrees.
            then: Called after that, in the server's thread.
        """
        self._answers[user.tab] = then
        content = {"question": question, "text": text, "yes": yes}
        self._shell.send("question", content, [user.tab])

    def _show(self, control: PageControl) -> None:
        self._shell.show("control", control.properties, part=control.properties["id"])

    # In the server's thread.

    def _answer(self, tab: int, is_yes: Any) -> None:
        then = self._answers.pop(tab, None)
        if then is not None and is_yes is True:
            then()

    def _take(self, tab: int, content: Any) -> None:
        """Set the value of an input, `[number, value]`, unless it cannot have it."""
        if not (isinstance(content, list) and len(content) == 2 and type(content[0]) is int):
            return
        control, value = self._controls.get(content[0]), content[1]
        if control is None or not fits(control.properties, value):
            return
        if control.properties["kind"] == "vector":
            value = [*map(float, value)]
        if control.properties["kind"] not in ("button", "buttons"):
            control.set(value=value)
        for listener in control.listeners:
            listener(User(self._shell, tab), value)


def fits(properties: Mapping[str, Any], value: Any) -> bool:
    """Return whether an input can have a value, by its kind, its range and its options."""
    low, high = properties.get("min", -1e6), properties.get("max", 1e6)
    match properties["kind"]:
        case "button":
            return value is True
        case "buttons" | "choice":
            return isinstance(value, str) and value in properties["options"]
        case "switch":
            return isinstance(value, bool)
        case "field":
            return isinstance(value, str) and len(value) <= _LONGEST
        case "slider" | "number":
            return is_number(value, low, high)
        case "vector":
            is_list = isinstance(value, list) and len(value) == len(properties["value"])
            return is_list and all(is_number(one, low, high) for one in value)
    return False
