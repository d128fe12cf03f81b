"""Filters: the same answers as those of the C library, in limited time and memory."""

import ctypes
import random
import sys

import pytest

pytest.importorskip("simulation_interfaces", reason="not installed")

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.simulation_interfaces.expression import Expression
from crazyflow_ros.ros.simulation_interfaces.server import Refusal

LIBC = ctypes.CDLL(None)
NAMES = (
    *("", "a", "b", "A", "aa", "ab", "ba", "aab", "bb", "cf0", "cf1", "gate0", "a/b", "x-y.z"),
    *("beach_ball_1", "a+b", "[x]", "a\\b", "{}", "a{2}", "$", "^", "hut|door", "(a)"),
)
PARTS = (
    *"abcf01_/-.*+?|()^$]",
    *("[ab]", "[^a]", "[[:digit:]]", "[[:alpha:]_]", "[]a]", "[^]a]", "[a-c]", "[\\]", "[a\\]"),
    *("[[]", "[.]", "{2}", "{1,2}", "{0,}", *(f"\\{sign}" for sign in ".+[\\{$-]")),
)


class InC:
    """The C library's idea of an expression."""

    def __init__(self, text: str) -> None:
        self._compiled = ctypes.create_string_buffer(256)
        self.is_one = not LIBC.regcomp(self._compiled, text.encode(), 1)

    def matches(self, name: str) -> bool:
        return not LIBC.regexec(self._compiled, name.encode(), ctypes.c_size_t(0), None, 0)

    def close(self) -> None:
        if self.is_one:
            LIBC.regfree(self._compiled)


def test_answers_are_those_of_the_c_library() -> None:
    rng, compared = random.Random(0), 0
    for _ in range(8000):
        text = "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 7)))
        reference = InC(text)
        try:
            ours = Expression(text)
        except ValueError:
            continue
        if reference.is_one:
            compared += 1
            for name in NAMES:
                assert ours.matches(name) == reference.matches(name), (text, name)
        reference.close()
    assert compared > 3000


@pytest.mark.parametrize(
    "text", ["^cf[0-9]+$", "gate|hut", "(cf|gate)[[:digit:]]", "^a/", "x-y\\.z", "b{2}", "[^/]$"]
)
def test_usual_expressions_are_accepted(text: str) -> None:
    reference, ours = InC(text), Expression(text)
    assert reference.is_one
    assert [ours.matches(name) for name in NAMES] == [reference.matches(name) for name in NAMES]
    reference.close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(" * 30_000 + ")" * 30_000, "at most 4096 characters"),
        ("((((a{1,255}){1,255}){1,255}){1,255})", "repetition size"),
        ("(" * 2000, r"missing \)"),
        ("(a)\\1", r"\\1 has no meaning in POSIX"),
        ("\\<cf", r"\\< has no meaning in POSIX"),
        ("\\w+", r"\\w has no meaning in POSIX"),
        ("[[.a.]]", "collating symbol"),
        ("[[=a=]]", "equivalence class"),
        ("[a", r"unmatched \["),
        ("a{", "a brace opens a count"),
        ("a{,3}", "a brace opens a count"),
        ("a+?", r"\? repeats \+"),
        ("^*", r"\* repeats \^"),
        ("*a", "no argument"),
        ("a\nb", "control characters"),
        ("\ud800", "surrogates"),
        ("a\\", "trailing backslash"),
    ],
)
def test_what_is_refused_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        Expression(text)
    assert len(str(refused.value)) < 500


def test_the_longest_expressions_on_the_longest_names_end() -> None:
    """They took minutes, or crashed."""
    name = "a" * limits.NAME_LENGTH
    for text in ("(a*)" * 200 + "b", "(a|aa)" * 300 + "$", "(" * 900 + "a" + ")" * 900):
        Expression(text).matches(name)


def test_without_the_package_filters_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert Expression("").matches("anything")
    with pytest.raises(Refusal, match=r"-m pip install 'google-re2>=1\.1,<2'"):
        Expression("cf")
