"""POSIX extended regular expressions, which Python's `re` does not know: the C library's."""

from __future__ import annotations

import ctypes

from simulation_interfaces.msg import Result

from crazyflow_ros.ros.simulation_interfaces.server import Refusal

_LIBC = ctypes.CDLL(None)
_REG_EXTENDED = 1
_SIZE_OF_REGEX_T = 256  # bytes; it has 64 in glibc and musl


class Expression:
    """A compiled expression.

    Args:
        text: The expression; an empty one matches everything.

    Raises:
        Refusal: It is not an expression.
    """

    def __init__(self, text: str) -> None:
        self._compiled = ctypes.create_string_buffer(_SIZE_OF_REGEX_T)
        self._text = text
        if not text:
            return
        error = _LIBC.regcomp(self._compiled, text.encode(), _REG_EXTENDED)
        if error:
            reason = ctypes.create_string_buffer(200)
            _LIBC.regerror(error, self._compiled, reason, ctypes.c_size_t(200))
            self._text = ""  # nothing to free
            text = f"filter {text!r} is no POSIX extended regular expression: "
            raise Refusal(Result.RESULT_OPERATION_FAILED, text + reason.value.decode())

    def matches(self, name: str) -> bool:
        """Whether it is found somewhere in a name."""
        if not self._text:
            return True
        return not _LIBC.regexec(self._compiled, name.encode(), ctypes.c_size_t(0), None, 0)

    def __del__(self) -> None:
        if self._text:
            _LIBC.regfree(self._compiled)
