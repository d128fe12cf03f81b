"""Tutorials are tests: each page of docs/tutorials is typed from its top, as it is printed.

- Lines of indented blocks are typed, one after the other, in a folder of their own. A simulator or
  page that one starts is left running; Ctrl-C ends it where the next one starts, and at the end.
- Code below a line "Save this as `name.py`" is saved there.
- A block of text after commands is what they, or the simulator, have printed since the text before:
  "..." stands for anything, and numbers may be off by a fifth.
- What other tests type, or needs a machine with ROS, is left out, and the text after it.

A page fails on a command that fails, on text that nobody prints, and on any line above INFO, unless
the page shows it.
"""

from __future__ import annotations

import re
import shlex
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from above_info import complaints
from paths import ROOT
from ros_client import RosProcess, own_domain

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
DOMAIN = own_domain(__name__)
T = 300.0  # s, a machine may be slow and busy
PIECE = re.compile(
    r"Save this as\s+`(?P<name>[\w.]+)`(?:(?!\n\n).)*\n\n```(?:py|yaml)\n(?P<code>.*?)^```$"
    r"|^```text\n(?P<text>.*?)^```$"
    r"|(?P<commands>(?:^ {4}\S[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
STARTS = re.compile(
    r"^\.venv/bin/python -m crazyflow_ros(?:\.crazyflie)?(?: --(?!.* -- ).*)?$"
    r"|^\.venv/bin/python -m crazyflow_ros view (?!.*--(?:export|video))"
)
"""What runs until Ctrl-C: a simulator, or a page."""
READY = re.compile(r"ready: |ready at |The page is at ")
ELSEWHERE = re.compile(
    r"make |ros2 |cp |git |\(cd |.* --build |\.venv/bin/python -m (?:pip|MAVProxy\.mavproxy) "
)
"""Typed by test_first_commands.py and test_ros_machine.py, or not everywhere."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TOKEN = re.compile(rf"{NUMBER.pattern}|\.\.\.|\s+|.")

pytestmark = pytest.mark.skipif(
    not (ROOT / ".venv" / ".ready").exists(), reason="make has no environment here, make setup"
)


def _pattern(token: str) -> str:
    if token == "...":
        return ".*?"
    if token.isspace():
        return r"\s+"
    return f"({NUMBER.pattern})" if NUMBER.fullmatch(token) else re.escape(token)


def is_shown(expected: str, printed: str) -> bool:
    """Whether a line that was printed is one of the page, but for numbers."""
    pattern = "".join(map(_pattern, _TOKEN.findall(expected.strip())))
    found = re.search(pattern, printed)
    told = [float(number) for number in NUMBER.findall(expected)]
    return found is not None and [*map(float, found.groups())] == pytest.approx(told, 0.2, 0.05)


class Reader:
    """Somebody who types a page.

    Args:
        folder: Where files are saved and commands run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._simulator: RosProcess | None = None
        self._read = 0  # characters of the simulator's log
        self._printed = ""
        self.above_info: list[str] = []
        for name in (".venv", "examples", "config"):
            (folder / name).symlink_to(ROOT / name)

    def type(self, line: str) -> None:
        """Type a command, and wait until it is done, or the simulator ready."""
        if STARTS.match(line):
            self.end()
            started = RosProcess(shlex.split(line), DOMAIN, folder=self._folder)
            self._simulator = self._stack.enter_context(started)
            deadline = time.monotonic() + T
            while not READY.search(started.log):
                assert started.process.poll() is None and time.monotonic() < deadline, started.log
                time.sleep(0.05)
            return
        with RosProcess(shlex.split(line), DOMAIN, folder=self._folder) as done:
            assert done.wait(T) == 0, f"{line}: {done.log}"
            self._printed += done.log
            self.above_info += complaints(done.log)

    def expect(self, text: str) -> None:
        """Compare what was printed, or what the simulator soon logs, with the page."""
        for line in filter(str.strip, text.splitlines()):
            if any(is_shown(line, printed) for printed in self._printed.splitlines()):
                continue
            assert self._simulator is not None, f"expected {line!r} in {self._printed!r}"
            fixed = max(re.split(r"\.\.\.|\d+(?:\.\d+)?", line), key=len).strip()
            self._simulator.wait_for(fixed, T)
        self._printed = ""

    def end(self) -> None:
        """Press Ctrl-C in the terminal of the simulator."""
        if self._simulator is not None:
            assert self._simulator.end(signal.SIGINT)[0] == 0, self._simulator.log
            self.above_info += complaints(self._simulator.log)
            self._simulator = None

    def close(self) -> None:
        """Kill what still runs."""
        self._stack.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    typed: list[str] = []
    shown = re.findall(r"`([^`\n]*\.\.\.[^`\n]*)`", text)
    reader = Reader(tmp_path)
    try:
        for piece in PIECE.finditer(text):
            if piece["name"]:
                (tmp_path / piece["name"]).write_text(piece["code"])
            elif piece["text"]:
                shown += piece["text"].splitlines()
                if typed:
                    reader.expect(piece["text"])
            else:
                lines = re.sub(r"\\\n\s*", "", piece["commands"]).splitlines()
                typed = [line for line in map(str.strip, lines) if not ELSEWHERE.match(line)]
                for line in typed:
                    reader.type(line)
        reader.end()
    finally:
        reader.close()
    if not typed:
        pytest.skip("its commands need a machine with ROS, or an autopilot")
    assert [line for line in reader.above_info if not any(is_shown(s, line) for s in shown)] == []
