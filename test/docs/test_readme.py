"""What the README shows works."""

import re

import numpy as np
from paths import ROOT

README = ROOT / "README.md"


def test_the_python_example_flies(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    pos = np.asarray(names["sim"].data.states.pos)
    assert pos.shape == (1024, 2, 3)
    np.testing.assert_allclose(pos[..., 2], 1.0, atol=0.1)
    assert (pos[:, 1, 0] - pos[:, 0, 0] > 0.5).all()  # a place for each
    assert capsys.readouterr().out.startswith("world 0, drone 0: x ")


def rows(header: str) -> list[list[str]]:
    """Cells of the table in docs/benchmarks.md whose header begins so."""
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    (found,) = re.findall(rf"^\| {header}.*\n\|[-:|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()]


def test_speeds_are_those_of_the_page_on_benchmarks():
    readme = re.sub(r"\s+", " ", README.read_text())
    sim = [row for row in rows(r"worlds \| control \| us a call") if row[0] != "1"]
    ratios = [float(row[8]) for row in sim]
    least, most = int(min(ratios)), int(max(ratios))
    assert f"{least} to {most} times as many steps per second on one core" in readme
    (row,) = [row for row in sim if row[:2] == ["16384", "rotor_vel"]]
    ours, theirs = float(row[6]), float(row[7])
    assert f"16,384 drones | {ours:.1f} million | {theirs:.1f} million |" in readme
    (factor,) = [row[2] for row in rows(r"drones \| topics") if row[:2] == ["10", "each"]]
    assert f"10 drones, all topics: {factor} x real time" in readme
    (five,) = [row for row in rows(r"drones \| real-time factor \| messages/s") if row[0] == "5"]
    assert f"5 with crazyswarm2's: {five[1]} x |" in readme and f"5 drones: {five[3]} x |" in readme
    first = (ROOT / "docs" / "benchmarks.md").read_text().partition("\n## ")[0]
    assert f"{ours:.1f} million | {theirs:.1f} million" in first and f"| {factor} |" in first


def test_every_file_it_links_to_is_there():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text())
    missing = [link for link in links if not (README.parent / link).exists()]
    assert links and not missing
