"""The gallery in docs/guides/examples.md shows each example, in order, with a small picture."""

from __future__ import annotations

import re

from paths import ROOT

EXAMPLES = ROOT / "examples"
PICTURES = ROOT / "docs" / "examples"
LARGEST, ALL = 60_000, 600_000  # bytes


def test_each_example_has_a_number_a_row_and_a_picture() -> None:
    names = sorted(path.stem for path in EXAMPLES.glob("[0-9]*"))
    assert [int(name[:2]) for name in names] == list(range(1, len(names) + 1))
    page = (ROOT / "docs" / "guides" / "examples.md").read_text()
    assert re.findall(r"^\| \[!\[.+?\]\(../examples/(\w+)\.webp\)\]", page, re.MULTILINE) == names
    assert sorted(file.stem for file in PICTURES.iterdir()) == names


def test_pictures_are_small() -> None:
    sizes = [file.stat().st_size for file in PICTURES.iterdir()]
    assert max(sizes) < LARGEST and sum(sizes) < ALL
