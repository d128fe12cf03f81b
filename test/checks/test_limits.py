"""The door: what numbers, texts and files from outside may be, and what the docs say of it."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import Limit

METRE = Limit(10.0, "m")


@pytest.mark.parametrize("value", [0, -10, 10.0, np.float32(3)])
def test_numbers_within_the_limit_pass(value: float) -> None:
    number = limits.number("x", value, METRE)
    assert number == value and type(number) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10.001, -1e308])
def test_numbers_beyond_are_refused_with_the_limit(value: float) -> None:
    with pytest.raises(ValueError, match=r"x must be (finite|within 10 m), got"):
        limits.number("x", value, METRE)
    with pytest.raises(ValueError, match="x must be"):
        limits.vector("x", [0.0, value], (2,), METRE)


@pytest.mark.parametrize("value", ["abc", [[1, 2], [3]], [1, 2], [10**400, 0, 0], None, [1j, 0, 0]])
def test_what_is_no_vector_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="x must be 3 finite numbers, got"):
        limits.vector("x", value, (3,), METRE)  # type: ignore[arg-type]


def test_a_vector_is_a_copy() -> None:
    given = np.ones(3)
    limits.vector("x", given, (3,), METRE)[0] = 5
    assert given[0] == 1


@pytest.mark.parametrize("quat", [(0, 0, 0, 2.0), (1e-300, 0, 0, 0), (1e5, -1e5, 3, 1)])
def test_quaternions_become_unit_ones(quat: tuple[float, ...]) -> None:
    unit = limits.unit_quaternion("q", quat)
    assert np.linalg.norm(unit) == pytest.approx(1)
    np.testing.assert_allclose(unit * math.hypot(*quat), quat, rtol=1e-9)


@pytest.mark.parametrize(
    ("quat", "message"),
    [
        ((0, 0, 0, 0), "q is the zero quaternion"),
        ((0, 0, 0, math.nan), "q must be 4 finite numbers"),
        ((0, 0, 0, 1e300), "q must be within"),
        ((0, 0, 1), "q must be 4 finite numbers"),
    ],
)
def test_what_is_no_attitude_is_refused(quat: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        limits.unit_quaternion("q", quat)


def test_texts_are_short_and_in_one_line() -> None:
    assert limits.text("t", "a é 😀", 5) == "a é 😀"
    for bad in ("abcdef", "a\nb", "a\0b", "\x1b[31m", "\x7f"):
        with pytest.raises(ValueError, match="t must"):
            limits.text("t", bad, 5)


def test_a_refused_value_is_shortened() -> None:
    assert len(limits.shown("x" * 10**6)) < 120
    assert len(limits.shown(np.zeros(10**6))) < 120
    assert limits.shown([1, 2]) == "[1, 2]"


def test_files_are_regular_and_of_limited_size(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("é")
    assert limits.read_text(tmp_path / "good", 2) == "é"
    (tmp_path / "large").write_bytes(b"x" * 11)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    os.mkfifo(tmp_path / "fifo")  # to open it would block
    for name, message in (
        ("large", "is too large: 11 bytes, expected at most 10"),
        ("fifo", "is not a regular file"),
        (".", "is not a regular file"),
        ("bytes", "is not UTF-8"),
        ("a\0b", "is not a path"),
    ):
        with pytest.raises(ValueError, match=message):
            limits.read_text(f"{tmp_path}/{name}", 10)
    with pytest.raises(ValueError, match="is not a regular file"):
        limits.read_text("/dev/zero", 10)
    with pytest.raises(FileNotFoundError):
        limits.read_text(tmp_path / "nowhere", 10)
