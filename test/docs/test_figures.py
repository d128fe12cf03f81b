"""The script that draws the figures of the documents runs, and they show what the pages say."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import ModuleType

import matplotlib
import mujoco
import numpy as np
import pytest
from matplotlib.axes import Axes
from paths import ROOT
from PIL import Image

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    matplotlib.use("Agg")
    return import_module("docs.figures")


def lines(axes: Axes) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.asarray(x), np.asarray(y)) for x, y in (line.get_data() for line in axes.lines)]


def check_integrators(axes: Axes) -> None:
    drawn = lines(axes)
    for (_, errors), (_, nominal) in zip(drawn[0:4:2], drawn[1:4:2]):
        np.testing.assert_allclose(errors[2:], nominal[2:], rtol=0.3)


def check_figure_eight(axes: Axes) -> None:
    (_, target_y), *flown = lines(axes)
    assert len(flown) == 2
    for _, y in flown:
        np.testing.assert_allclose(np.ptp(y), np.ptp(target_y), rtol=0.3)


def check_dryden(axes: Axes) -> None:
    drawn = lines(axes)
    for (_, power), (_, closed) in zip(drawn[0:6:2], drawn[1:6:2]):
        assert np.median(power / closed) == pytest.approx(1, abs=0.1)


def check_gusts_apart(axes: Axes) -> None:
    drawn = lines(axes)
    for (at, found), (fine, closed) in zip(drawn[0:8:2], drawn[1:8:2]):
        np.testing.assert_allclose(found, np.interp(at, fine, closed), atol=0.06)


def check_ground_effect(axes: Axes) -> None:
    (heights, paper), (at, ratio), (_, single) = lines(axes)
    np.testing.assert_allclose(ratio, np.interp(at, heights, paper), rtol=0.02)
    assert (paper > single).all()


def check_rotors(axes: Axes) -> None:
    written = [(*text.get_position(), text.get_text()) for text in axes.texts]
    corners = [
        [text for x, y, text in written if text.isdigit() and abs(x - at[0]) < 2 > abs(y - at[1])]
        for at in [(4.2 * column, -4.6 * row) for row in range(2) for column in range(3)]
    ]  # of our rotors: front right, rear right, rear left, front left
    assert corners == [
        ["0", "1", "2", "3"],
        ["1", "4", "2", "3"],
        ["1", "4", "2", "3"],
        ["2", "1", "3", "4"],
        ["1", "4", "2", "3"],
        ["1", "2", "3", "4"],
    ]


def test_each_figure_is_drawn_and_shows_what_it_says(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, Axes] = {}

    def kept(name: str, draw: object) -> object:
        def run(axes: Axes) -> None:
            drawn[name] = axes
            draw(axes)  # type: ignore[operator]

        return run

    monkeypatch.setattr(
        figures, "FIGURES", {name: kept(name, draw) for name, draw in figures.FIGURES.items()}
    )
    monkeypatch.setattr("sys.argv", ["figures.py", str(tmp_path)])
    with matplotlib.rc_context():
        figures.main()
    in_docs = {file.name for file in (DOCS / "figures").glob("*.svg")}
    assert {file.name for file in tmp_path.iterdir()} == in_docs
    check_rotors(drawn["rotors"])
    check_integrators(drawn["integrators"])
    check_figure_eight(drawn["figure_eight"])
    check_dryden(drawn["dryden"])
    check_gusts_apart(drawn["gusts_apart"])
    check_ground_effect(drawn["ground_effect"])


def test_the_moving_picture_moves_and_is_small() -> None:
    file = DOCS / "figure_eights.webp"
    with Image.open(file) as picture:
        assert picture.n_frames > 40
    assert file.stat().st_size < 600_000


def test_drones_of_the_moving_picture_hit_nothing() -> None:
    pytest.importorskip("playwright", reason="the pictures of the page need playwright")
    script = import_module("docs.page_pictures")
    model = mujoco.MjModel.from_xml_path(str(ROOT / "urdf_mjcf" / "room.xml"))
    pillars = [model.geom(f"pillar_{number}") for number in range(2)]
    times = np.arange(0.0, 20.0, 0.02)
    places = np.stack([script.place(times, drone) for drone in range(len(script.DRONES))])
    for pillar in pillars:
        away = np.linalg.norm(places[..., :2] - pillar.pos[:2], axis=-1) - pillar.size[0]
        assert away.min() > 0.1
    for one, other in combinations(places, 2):
        assert np.linalg.norm(one - other, axis=-1).min() > 0.3
