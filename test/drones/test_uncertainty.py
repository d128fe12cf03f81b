"""Files that say how certain a drone's figures are: what is impossible in them is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.drones.folders import BUILT_IN
from crazyflow_ros.drones.uncertainty import (
    UNCERTAINTY,
    Uncertainty,
    load_uncertainty,
    with_deviations,
)

Written = Callable[[str | bytes], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the file into the folder of a drone, whose path it returns."""
    folder = tmp_path / "found"
    shutil.copytree(BUILT_IN / "cf2x_P250", folder)

    def write(text: str | bytes) -> Path:
        (folder / UNCERTAINTY).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return write


def of_two(matrix: str, figures: str = '["cmd_f_coef", "thrust_dyn_coef"]') -> str:
    return f"[so_rpy_rotor]\nfigures = {figures}\ncovariance = {matrix}\n"


GOOD = of_two("[[0.01, -0.005], [-0.005, 0.04]]")


def test_what_is_written_is_read(written: Written) -> None:
    (found,) = load_uncertainty(written(GOOD)).items()
    name, (figures, covariance) = found
    assert (name, figures) == ("so_rpy_rotor", ("cmd_f_coef", "thrust_dyn_coef"))
    np.testing.assert_array_equal(covariance, [[0.01, -0.005], [-0.005, 0.04]])
    rounded = load_uncertainty(written(of_two("[[0.01, 0.02], [0.02000000001, 0.04]]")))
    np.testing.assert_allclose(rounded["so_rpy_rotor"].covariance, [[0.01, 0.02], [0.02, 0.04]])
    none = load_uncertainty(written(of_two("[[0, 0], [0, 0.25]]")))["so_rpy_rotor"]
    np.testing.assert_allclose(none.root() @ none.root().T, [[0, 0], [0, 0.25]])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there must be a table of rigid_body, rotation, so_rpy, .*, got none"),
        ("[rigid]", "there is no fit 'rigid', only rigid_body, "),
        ("so_rpy = 3", "so_rpy must be a table of figures and covariance, got 3"),
        (GOOD + "mean = 1", "must be a table of figures and covariance, got {'figures'"),
        ("[so_rpy]\nfigures = []", "must be a table of figures and covariance, got"),
        (of_two("[[0.1]]", "3"), "so_rpy_rotor.figures must be a list of names, got 3"),
        (of_two("[[0.1]]", "[[]]"), "so_rpy_rotor.figures must be a list of names"),
        (of_two("[]", "[]"), "so_rpy_rotor.figures must have each name once, got"),
        (of_two("[[0.1]]", '["J"]'), "there is no figure of so_rpy_rotor 'J', only cmd_f_coef"),
        (of_two("[[0.1]]", '["cmd_f_coef", "cmd_f_coef"]'), "must have each name once"),
        (of_two("7"), "so_rpy_rotor.covariance must be 2 x 2 numbers, got 7"),
        (of_two('[["0.1", 0], [0, 0]]'), "must be 2 x 2 numbers, got"),
        (of_two("[[true, 0], [0, 0]]"), "must be 2 x 2 numbers, got"),
        (of_two("[[0.1, 0], [0]]"), "must be 2 x 2 finite numbers, got"),
        (of_two("[[0.1]]"), "must be 2 x 2 finite numbers, got"),
        (of_two("[[nan, 0], [0, 0.1]]"), "must be 2 x 2 finite numbers, got"),
        (of_two("[[0.1, inf], [inf, 0.1]]"), "must be 2 x 2 finite numbers, got"),
        (of_two(f"[[{10**400}, 0], [0, 0.1]]"), "must be 2 x 2 finite numbers, got"),
        (of_two("[[0.1, 0], [0, 2e3]]"), "must be within 1, got"),
        (of_two("[[0.1, 0], [0, 0.26]]"), r"covariance\[1\]\[1\] must be from 0 to 0.25, got 0.26"),
        (of_two("[[-0.1, 0], [0, 0.1]]"), r"covariance\[0\]\[0\] must be from 0 to 0.25, got -0.1"),
        (of_two("[[0.1, 0.05], [0.04, 0.1]]"), "covariance must be symmetric, got"),
        (of_two("[[0.1, 0.2], [0.2, 0.1]]"), "must have correlations from -1 to 1, got"),
        (of_two("[[0, 0.1], [0.1, 0.1]]"), "must have correlations from -1 to 1, got"),
        (of_two("[[1e-320, 1], [1, 1e-3]]"), "must have correlations from -1 to 1, got"),
        (
            "[rotation]\nfigures = ['rpy_coef', 'cmd_rpy_coef']\ncovariance = [[0.1, 0.09, 0, 0.09]"
            ", [0.09, 0.1, 0, -0.09], [0, 0, 0.1, 0], [0.09, -0.09, 0, 0.1]]",
            "must be positive semi-definite, but its correlations have the eigenvalue -0.8",
        ),
        (
            "[rigid_body]\nfigures = ['thrust_offset']\n"
            "covariance = [[0.003, 0, 0], [0, 0, 0], [0, 0, 0]]",
            r"covariance\[0\]\[0\] must be from 0 to 0.0025, got 0.003",
        ),
        ("[so_rpy", "Expected"),
        (b"\xff", "is not UTF-8"),
        (GOOD + "#" * (1 << 16), "is too large"),
        ("a = " + "[" * 5000, "is nested too deep"),
    ],
)
def test_what_is_impossible_is_refused(text: str | bytes, why: str, written: Written) -> None:
    folder = written(text)
    with pytest.raises(ValueError, match=why) as raised:
        load_uncertainty(folder)
    assert str(folder / UNCERTAINTY) in str(raised.value) and len(str(raised.value)) < 600


def test_a_root_has_the_covariance_also_where_numbers_depend_on_each_other() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 3)) * np.array([1e-6, 0.1, 1e-3, 0.0, 0.3])[:, None]
    covariance = half @ half.T
    root = Uncertainty(("J",), covariance).root()
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-9, atol=1e-24)
    wider = with_deviations(covariance, [1.0, 2, 3, 4, 5])
    np.testing.assert_allclose(np.sqrt(np.diag(wider)), [1, 2, 3, 4, 5])
    assert wider[0, 1] / 2 == pytest.approx(
        covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    )
