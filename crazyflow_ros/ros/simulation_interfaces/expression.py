"""POSIX extended regular expressions, matched by RE2, which always takes linear time.

Syntax that RE2 interprets differently from POSIX is translated, or refused by name.
"""

from __future__ import annotations

import re
from typing import Any

from simulation_interfaces.msg import Result

from crazyflow_ros.checks import limits
from crazyflow_ros.extras import extra
from crazyflow_ros.ros.callback_guard import Refusal

_MEMORY = 1 << 20  # bytes for a compiled expression
_COUNT = re.compile(r"\{\d+(,\d*)?\}", re.ASCII)
_BRACKET = re.compile(r"\[\^?\]?(?:\[:[a-z]*:\]|\[(?![.=:])|[^\[\]])*\]")
_REPETITIONS = "*+?{"
_NOT_REPEATED = "^$" + _REPETITIONS
_UNKNOWN_TO_POSIX = "<>`'"  # after a backslash: extensions of some libraries


class Expression:
    """A compiled expression.

    Args:
        text: The expression; an empty one matches everything.

    Raises:
        ValueError: The expression is invalid, too long or too large.
        Refusal: The package `re2` is missing.
    """

    def __init__(self, text: str) -> None:
        self._compiled: Any = None
        if not text:
            return
        try:
            with extra("filters"):
                import re2
        except ModuleNotFoundError as error:
            code = Result.RESULT_FEATURE_UNSUPPORTED
            raise Refusal(code, f"filters need more: {error}") from None
        options = re2.Options()
        options.posix_syntax = options.longest_match = True
        options.one_line = options.dot_nl = True
        options.log_errors = False
        options.max_mem = _MEMORY
        shown = limits.shown(text)
        try:
            limits.text("filter", text)
            self._compiled = re2.compile(_as_re2_reads(text), options)
        except (re2.error, ValueError) as error:
            cause = error.args[0] if error.args else b""  # bytes in the case of RE2
            reason = cause.decode(errors="replace") if isinstance(cause, bytes) else str(error)
            what = f"filter {shown!r} is not a POSIX extended regular expression: "
            raise ValueError(what + limits.shown(reason)) from None

    def matches(self, name: str) -> bool:
        """Return whether a part of the name matches."""
        return self._compiled is None or self._compiled.search(name) is not None


def _as_re2_reads(text: str) -> str:
    """Translate an expression to the syntax of RE2.

    Raises:
        ValueError: RE2 does not support a part of it.
    """
    parts, at = [], 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            follows = text[at + 1 : at + 2]
            if not follows:
                raise ValueError("trailing backslash")
            if follows.isalnum() or follows in _UNKNOWN_TO_POSIX:
                raise ValueError(f"\\{follows} has no meaning in POSIX")
            parts.append(re.escape(follows))
            at += 2
        elif char == "[":
            parts.append(part := _bracket(text, at))
            at += len(part)
            parts[-1] = part.replace("\\", "\\\\")  # a backslash is literal in a bracket expression
        elif char == "{":
            count = _COUNT.match(text, at)
            if count is None:
                raise ValueError("a brace opens a count, {m}, {m,} or {m,n}")
            parts.append(count[0])
            at = count.end()
        else:
            parts.append(char)
            at += 1
        if char in _NOT_REPEATED and text[at : at + 1] in (*_REPETITIONS,):
            raise ValueError(f"{text[at]} repeats {char}")
    return "".join(parts)


def _bracket(text: str, at: int) -> str:
    """Return the bracket expression that begins at an index.

    Raises:
        ValueError: It is not closed, or RE2 does not support it.
    """
    found = _BRACKET.match(text, at)
    if found is None:
        for opening, what in (("[.", "a collating symbol"), ("[=", "an equivalence class")):
            if opening in text[at:]:
                raise ValueError(f"{what}, {opening}, is not supported")
        raise ValueError("unmatched [")
    return found[0]
