"""Checks the Markdown pages: `python -m tools.pages`.

It prints, as `file:line: what is wrong, what was expected`, links to files and headings that do not
exist, blocks of code without a language, and pictures without a text that describes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
"""To a file of the repository, and a heading."""
LANGUAGES = {
    *("c", "cpp", "json", "mermaid", "python", "sh", "text", "toml", "xml", "yaml"),
    "py",  # Python that is part of a program, and not run by the tests
}
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Link(NamedTuple):
    """A link to a file of this repository."""

    line: int
    file: Path
    anchor: str
    """Of a heading; empty: the file."""


def prose(page: Path) -> list[str]:
    """The lines of a page, those of code empty."""
    text = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
    return text.splitlines()


def links(page: Path) -> list[Link]:
    """Those of a page that lead to this repository."""
    return [
        Link(number, (page.parent / file).resolve() if file else page, anchor or "")
        for number, line in enumerate(prose(page), 1)
        for file, anchor in LINK.findall(line)
    ]


@cache
def anchors(page: Path) -> set[str]:
    """Of the headings of a page, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", "\n".join(prose(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


def faults(page: Path) -> Iterator[str]:
    """What is wrong with a page, one line each."""
    at = page.relative_to(ROOT)
    for line, file, anchor in links(page):
        if not file.exists():
            yield f"{at}:{line}: the link leads to {file}, which does not exist"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            known = ", ".join(sorted(anchors(file)))
            yield f"{at}:{line}: {file.name} has no heading #{anchor}, expected one of {known}"
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
            if inside and (language := line[3:]) not in LANGUAGES:
                known = ", ".join(sorted(LANGUAGES))
                yield f"{at}:{number}: code in the language '{language}', expected one of {known}"
    for number, line in enumerate(prose(page), 1):
        if "![](" in line:
            yield f"{at}:{number}: the picture has no text, expected ![what it shows](file)"


if __name__ == "__main__":
    found = [fault for page in PAGES for fault in faults(page)]
    sys.exit("\n".join(found) or None)
