"""The pages of docs/ are found, their links lead somewhere, and the messages they quote exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT

from tools.pages import DOCS, PAGES, faults, links

TROUBLE = (DOCS / "guides" / "troubleshooting.md").read_text()
QUOTES = re.findall(r"^> `(.+)`$", TROUBLE, re.MULTILINE)


def test_every_file_is_reachable_from_the_index() -> None:
    reached, ahead = set[Path](), [DOCS / "index.md"]
    while ahead:
        file = ahead.pop()
        if file in reached or not file.is_relative_to(ROOT):
            continue
        reached.add(file)
        if file.suffix == ".md":
            ahead += [link.file for link in links(file)]
    files = {file for file in DOCS.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert sorted(str(file.relative_to(ROOT)) for file in files - reached) == []


def test_the_readme_leads_to_the_index_at_its_top() -> None:
    assert "(docs/index.md)" in (ROOT / "README.md").read_text().partition("\n## ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_no_faults(page: Path) -> None:
    assert list(faults(page)) == []


def test_faults_are_named_with_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#b)\n![](x.png)\n\n```\n[c](no.md)\n```\n")
    assert [fault.partition(", expected")[0] for fault in faults(page)] == [
        "page.md:2: page.md has no heading #b",
        f"page.md:3: the link leads to {tmp_path}/x.png, which does not exist",
        "page.md:5: code in the language ''",
        "page.md:3: the picture has no text",
    ]


def test_the_way_through_the_code_can_be_read_in_a_weekend() -> None:
    files = [link.file for link in links(DOCS / "concepts" / "read_the_code.md")]
    files = [file for file in files if file.suffix == ".py"]
    lines = [len(file.read_text().splitlines()) for file in files]
    assert max(lines) <= 350
    told = re.search(
        r"names (\d+) files with some ([\d,]+) lines",
        (DOCS / "concepts" / "read_the_code.md").read_text(),
    )
    assert told and len(set(files)) == int(told[1])
    assert round(sum(lines), -3) == int(told[2].replace(",", ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_import_mujoco_last(page: Path) -> None:
    """It reads what it draws with when it is imported, which `crazyflow_ros` chooses."""
    for example in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S):
        names = re.findall(r"^(?:import|from) (\w+)", example, re.MULTILINE)
        if "mujoco" in names:
            assert "crazyflow_ros" in names[: names.index("mujoco")]


def test_troubleshooting_has_much_to_say() -> None:
    assert len(re.findall(r"^### ", TROUBLE, re.MULTILINE)) >= 15
    assert len(QUOTES) >= 30 and len(set(QUOTES)) == len(QUOTES)


@cache
def texts() -> list[list[str]]:
    """The texts in each of our modules. Those beside one another, and in f-strings, are joined."""
    modules = sorted((ROOT / "crazyflow_ros").rglob("*.py"))
    nodes = (ast.walk(ast.parse(module.read_text())) for module in modules)
    return [
        [n.value for n in of if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        for of in nodes
    ]


@pytest.mark.parametrize("quote", QUOTES)
def test_messages_that_are_quoted_exist(quote: str) -> None:
    fixed = [part for part in quote.split("...") if re.search(r"\w", part)]
    assert fixed
    assert any(all(any(part in text for text in module) for part in fixed) for module in texts())
