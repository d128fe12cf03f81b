"""Uses Bitcraze's cfclient as a person does: connects, flies, sets a parameter, opens all tabs.

Run by a Python that has cfclient: `python cfclient_driver.py URI FOLDER`. It writes to the folder
what the widgets show, as `shown.json`, and pictures of the window. An exception in a slot of
cfclient ends the process, as with PyQt always.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from cfclient.ui.main import MainUI
from PyQt6.QtCore import QAbstractItemModel, QModelIndex, Qt, QTimer
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QAbstractButton, QApplication, QMessageBox, QPushButton, QWidget

LIMIT = 120.0  # s
PARAMETER, VALUE = ("pid_attitude", "yaw_kp"), "7.5"
PLOTTED = "PID_tuning/Position"
POSE = ("X", "Y", "Z", "Roll", "Pitch", "Yaw")


class Person:
    """Looks at the window and clicks; closes what pops up, and remembers its text."""

    def __init__(self, window: MainUI, folder: Path) -> None:
        self.window, self._folder = window, folder
        self.complaints: list[str] = []
        self._glances = QTimer()
        self._glances.timeout.connect(self._close_messages)
        self._glances.start(200)

    def _close_messages(self) -> None:
        message = QApplication.activeModalWidget()
        if isinstance(message, QMessageBox):
            self.complaints.append(f"{message.text()} {message.informativeText()}".strip())
            message.accept()

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is to be seen."""
        deadline = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"{what}: not within {LIMIT:g} s; messages: {self.complaints}")
            QTest.qWait(20)

    def click(self, button: QAbstractButton) -> None:
        """Click a button as soon as it can be clicked."""
        self.wait(button.isEnabled, f"the button {button.text()!r}")
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def open_tab(self, name: str) -> QWidget:
        """Open a tab through the menu, unless it is open, and look at it."""
        tabs = self.window.tab_widget
        if name not in [tabs.tabText(i) for i in range(tabs.count())]:
            (action,) = (a for a in self.window.tabs_menu_item.actions() if a.text() == name)
            action.trigger()
        (i,) = (i for i in range(tabs.count()) if tabs.tabText(i) == name)
        tabs.setCurrentIndex(i)
        QTest.qWait(100)
        return tabs.widget(i)

    def picture(self, name: str) -> None:
        """Save what the window looks like."""
        self.window.grab().save(str(self._folder / f"{name}.png"))

    def connect(self, uri: str) -> None:
        """Scan for drones, choose one, and connect."""
        drones = self.window.interfaceCombo
        self.wait(self.window.scanButton.isEnabled, "the end of the scan at the start")
        if drones.findText(uri) < 0:
            self.click(self.window.scanButton)
            self.wait(lambda: drones.findText(uri) >= 0, f"{uri} among the drones that were found")
        drones.setCurrentIndex(drones.findText(uri))
        self.click(self.window.connectButton)
        self.wait(lambda: self.window.windowTitle() == f"Connected on {uri}", "a connection")


def flight(tab: QWidget, window: MainUI) -> dict[str, object]:
    """Return what the flight tab and the battery show, and when."""
    numbers = {name: getattr(tab, f"estimate{name}") for name in POSE}
    return {
        "time": time.monotonic(),
        **{name: float(label.text()) for name, label in numbers.items()},
        "thrust": float(tab.estimateThrust.text().removesuffix("%")),
        "motors": [getattr(tab, f"actualM{i}").value() for i in range(1, 5)],
        "supervisor": tab._supervisor_state.text(),
        "arm button": tab.armButton.text(),
        "voltage": float(window._aff_volts.text()),
    }


def tree(model: QAbstractItemModel) -> dict[str, dict[str, list[str]]]:
    """Return the texts of a tree of two levels by the names in its first column."""
    found: dict[str, dict[str, list[str]]] = {}
    for i in range(model.rowCount(QModelIndex())):
        group = model.index(i, 0, QModelIndex())
        rows = [
            [str(model.index(j, k, group).data()) for k in range(model.columnCount(group))]
            for j in range(model.rowCount(group))
        ]
        found[group.data()] = {row[0]: row[1:] for row in rows}
    return found


def fly(person: Person) -> dict[str, object]:
    """Take off, go up, and read the instruments on the way."""
    window, tab = person.window, person.open_tab("Flight Control")
    person.wait(lambda: tab.estimateZ.text() and tab.estimateThrust.text(), "the state")
    person.wait(lambda: window._aff_volts.text() == "4.200", "the voltage")
    shown = {"on the ground": flight(tab, window)}
    person.click(tab.commanderTakeOffButton)
    person.wait(lambda: float(tab.estimateZ.text()) > 0.49, "a takeoff")
    QTest.qWait(1000)
    person.click(tab.commanderUpButton)
    person.wait(lambda: float(tab.estimateZ.text()) > 0.95, "a flight upwards")
    QTest.qWait(3000)
    shown["in the air"] = flight(tab, window)
    person.picture("flight")
    return shown


def set_parameter(person: Person) -> dict[str, object]:
    """Set a parameter and store it; return all that the tab shows."""
    tab = person.open_tab("Parameters")
    model = tab.paramTree.model()
    person.wait(
        lambda: all(row[3] for group in tree(model).values() for row in group.values()),
        "the values of all parameters",
    )
    before = tree(model)
    for i in range(model.rowCount(QModelIndex())):
        group = model.index(i, 0, QModelIndex())
        for j in range(model.rowCount(group)):
            if (group.data(), model.index(j, 0, group).data()) == PARAMETER:
                tab.paramTree.setCurrentIndex(model.index(j, 0, group))
    person.wait(lambda: tab.defaultValue.text() != "-", "the default")
    tab.currentValue.clear()
    QTest.keyClicks(tab.currentValue, VALUE)
    person.click(tab.setParamButton)
    group, name = PARAMETER
    person.wait(lambda: tree(model)[group][name][3] == VALUE, "the new value")
    person.click(tab.persistentButton)
    person.wait(lambda: tab.storedValue.text() == VALUE, "the stored value")
    person.picture("parameters")
    return {"default": tab.defaultValue.text(), "before": before, "after": tree(model)}


def plot(person: Person) -> tuple[dict[str, list[float]], list[str]]:
    """Return the curves of a plot, and the names of all plots."""
    tab = person.open_tab("Plotter")
    selector = tab.dataSelector
    person.wait(lambda: selector.findText(PLOTTED) >= 0, f"{PLOTTED} among the plots")
    selector.setCurrentIndex(selector.findText(PLOTTED))
    drawn = tab._plot._plot_widget.getPlotItem()

    def curves() -> dict[str, list[float]]:
        data = {curve.name(): curve.getData()[1] for curve in drawn.curves}
        return {name: [] if y is None else [float(v) for v in y] for name, y in data.items()}

    person.wait(lambda: curves() and min(map(len, curves().values())) > 50, "50 points of curves")
    person.picture("plotter")
    return curves(), [selector.itemText(i) for i in range(selector.count())]


def console(person: Person) -> str:
    """Press all buttons of the console, and return its text."""
    tab = person.open_tab("Console")
    for button in tab.findChildren(QPushButton):
        if button is not tab._clearButton:
            person.click(button)
    person.wait(lambda: "storageStats" in tab.console.toPlainText(), "the answer to the last")
    person.picture("console")
    return tab.console.toPlainText()


def land(person: Person) -> None:
    """Land and disconnect."""
    tab = person.open_tab("Flight Control")
    person.click(tab.commanderLandButton)
    person.wait(lambda: tab._supervisor_state.text() != "Flying", "a landing")
    person.click(person.window.connectButton)
    person.wait(lambda: person.window.windowTitle() == "Not connected", "the end")


def main() -> None:
    """Do all that, as cfclient's own `main` starts."""
    uri, folder = sys.argv[1], Path(sys.argv[2])
    app = QApplication(sys.argv[:1])
    app.setStyle("Fusion")
    window = MainUI()
    window.resize(1350, 900)
    window.show()
    window.set_default_theme()
    person = Person(window, folder)
    person.connect(uri)
    shown: dict[str, object] = {"flight": fly(person), "parameters": set_parameter(person)}
    shown["curves"], shown["plots"] = plot(person)
    shown["console"] = console(person)
    shown["log"] = tree(person.open_tab("Log TOC").logTree.model())
    for action in window.tabs_menu_item.actions():
        person.open_tab(action.text())
        person.picture(action.text().lower().replace(" ", "_"))
    land(person)
    shown["complaints"] = person.complaints
    (folder / "shown.json").write_text(json.dumps(shown))
    window.close()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # cfclient's threads would emit signals of objects that are gone
