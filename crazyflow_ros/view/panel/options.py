"""Dropdowns whose options come and go."""

from __future__ import annotations

from typing import Any

NOTHING = "nothing"
"""The option of a dropdown without options."""


def set_options(dropdown: Any, options: tuple[str, ...]) -> None:
    """Give a dropdown other options, if they are others; its value stays if it can."""
    options = options or (NOTHING,)
    if dropdown.options != options:
        dropdown.options = options
