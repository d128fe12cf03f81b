"""Worlds and robots that are wrong, or more than they look: part of `make hostile`.

Each is one of `description_corpus` with random changes of its elements and attributes, some of
which ask MuJoCo for gigabytes or hours; or a bomb of its own. Its files may be missing, damaged,
huge, each other, or no files at all.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import description_corpus as corpus
from hostile_bombs import ODD_NUMBERS, bomb, snippet

from crazyflow_ros.checks import limits

_KEPT = 64  # descriptions whose files exist at the same time
_ODD = (
    *ODD_NUMBERS,
    *("", " ", "true", "auto", "local", "world", "none", "\u202e"),
    *("../../x", "/dev/zero", "package://nobody/x.stl", "model://nobody/x", "file:///dev/zero"),
    *("0 0 0", "1 2 3 4", "nan nan nan", "1e30 1e30 1e30", "a" * 5000, "1 " * 3000),
)
_OF_BODIES = ("replicate", "flexcomp", "composite", "body")


class Written(NamedTuple):
    """A description, and where it is."""

    path: Path
    text: str
    """Its main file; empty if it needs others."""


class Descriptions:
    """Makes descriptions.

    Args:
        folder: For their files.
        rng: Random numbers.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder / "descriptions", rng
        self._numbers = itertools.count()
        self._folder.mkdir()
        os.mkfifo(self._folder / "fifo")
        with (self._folder / "huge").open("wb") as file:
            file.truncate(4 << 30)
        self._sound = [
            (corpus_files, root)
            for corpus_files in (*corpus.WORLDS.values(), *corpus.ROBOTS.values())
            if (root := _root(corpus_files)) is not None
        ]
        elements = [element for _, root in self._sound for element in root.iter()]
        self._tags = sorted({element.tag for element in elements})
        self._attributes = {
            tag: sorted(
                {item for element in elements if element.tag == tag for item in element.items()}
            )
            for tag in self._tags
        }

    @property
    def folder(self) -> Path:
        """The folder above all of them."""
        return self._folder

    def another(self) -> Written:
        """Write another one."""
        rng, number = self._rng, next(self._numbers)
        folder = self._folder / f"{number % _KEPT}"
        shutil.rmtree(folder, ignore_errors=True)
        files: corpus.Files
        if rng.random() < 0.25:
            files = bomb(rng)
        else:
            sound, root = rng.choice(self._sound)
            main = _main(sound)
            files = dict(sound)
            files[main] = self._text(self._changed(root))
            for name in [name for name in files if name != main and rng.random() < 0.2]:
                files[name] = self._damaged(files[name])
        path = corpus.written(files, folder)
        if rng.random() < 0.1:  # something else in place of a file that it names
            self._replace(rng.choice([path for path in folder.rglob("*") if path.is_file()]))
        content = files[_main(files)]
        return Written(path, content if isinstance(content, str) and len(files) == 1 else "")

    def _replace(self, path: Path) -> None:
        other = self._rng.choice(("fifo", "huge", "nowhere", str(self._folder), "/dev/zero"))
        path.unlink()
        path.symlink_to(self._folder / other)

    def _damaged(self, content: str | bytes) -> bytes:
        data = bytearray(content.encode() if isinstance(content, str) else content)
        for _ in range(self._rng.choice((0, 1, 3, 30))):
            if data:
                data[self._rng.randrange(len(data))] = self._rng.randrange(256)
        return bytes(data[: self._rng.choice((len(data), len(data), self._rng.randrange(99)))])

    def _text(self, root: ET.Element) -> str:
        """A text of an element; rarely one that is not XML."""
        text, rng = ET.tostring(root, "unicode"), self._rng
        match rng.randrange(25):
            case 0:
                text = text[: rng.randrange(1, len(text))]
            case 1:
                text = f'<!DOCTYPE m [<!ENTITY a "{"b" * 99}">]>{text}'.replace("name=", "n='&a;'")
            case 2:
                text = text.replace("<geom", "<geom xmlns='urn:x'").replace("<link", "<x:link")
            case 3:
                text = f"\ufeff  <?xml version='1.1' encoding='utf-16'?>{text}"
        return text

    def _changed(self, root: ET.Element) -> ET.Element:
        """A copy with random changes."""
        rng, root = self._rng, _copy(root)
        for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 2, 5, 20))):
            parents = list(root.iter())
            element, parent = rng.choice(parents), rng.choice(parents)
            match rng.randrange(9):
                case 0 if element.attrib:
                    element.set(rng.choice(list(element.attrib)), rng.choice(_ODD))
                case 1 if element.attrib:
                    element.attrib.pop(rng.choice(list(element.attrib)))
                case 2 | 3 if known := self._attributes.get(element.tag):
                    name, value = rng.choice(known)
                    element.set(name, rng.choice((value, value, rng.choice(_ODD))))
                case 4 if len(parent):
                    parent.remove(rng.choice(list(parent)))
                case 5:
                    parent.extend(_copy(element) for _ in range(rng.choice((1, 1, 2, 30))))
                case 6 if rng.random() < 0.3:
                    element.tag = rng.choice(self._tags)
                case 7:
                    inner = parent
                    for _ in range(rng.choice((1, 1, 3, 20, 70))):
                        inner = ET.SubElement(inner, rng.choice(("body", "frame", "body")))
                    inner.append(_copy(element))
                case 8:
                    part, bodies = ET.fromstring(snippet(rng)), root.find("worldbody")
                    inside = bodies if part.tag in _OF_BODIES else None
                    (root if inside is None else inside).append(part)
            if sum(1 for _ in root.iter()) > 5000:  # doubled again and again
                break
        return root


def _main(files: corpus.Files) -> str:
    return next(name for name in files if Path(name).stem == "main")


def _root(files: corpus.Files) -> ET.Element | None:
    """The root of the main file; None if Python's parser does not take what MuJoCo takes."""
    try:
        return ET.fromstring(files[_main(files)])
    except ET.ParseError:
        return None


def _copy(element: ET.Element) -> ET.Element:
    return ET.fromstring(ET.tostring(element))


class Sandboxes:
    """The memory of the processes in which a simulator tries out descriptions.

    Args:
        pid: Process of the simulator.
    """

    MOST = (limits.SANDBOX_BYTES >> 20) + 512.0
    """MB: that of a description, and that of Python and MuJoCo."""

    def __init__(self, pid: int) -> None:
        self._tasks, self._peaks = Path(f"/proc/{pid}/task"), dict[int, float]()

    @property
    def started(self) -> int:
        """How many there were so far."""
        return len(self._peaks)

    @property
    def peak(self) -> float:
        """The most memory of one of them [MB]."""
        return max(self._peaks.values(), default=0.0)

    def look(self) -> None:
        """Note how much memory they have used."""
        for task in os.listdir(self._tasks):
            try:
                children = (self._tasks / task / "children").read_text().split()
            except OSError:  # the thread has ended
                continue
            for child in map(int, children):
                self._note(child)

    def _note(self, pid: int) -> None:
        try:
            if b"sandbox_child" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM"):
                peak = int(line.split()[1]) / 1024
                self._peaks[pid] = max(peak, self._peaks.get(pid, 0.0))
