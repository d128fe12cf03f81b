"""What programs print that should not be there when all is well."""

from __future__ import annotations

import re

_ABOVE_INFO = re.compile(
    r"\[(?:WARN|ERROR|FATAL)\]|^(?:WARNING|ERROR|CRITICAL): |^[WEF]\d{4} |\bWarning: |Traceback"
    r"|FAILED|^simulator: |slow compile"
)


def complaints(text: str) -> list[str]:
    """The lines above INFO."""
    return [line for line in text.splitlines() if _ABOVE_INFO.search(line)]
