"""Dropdowns whose options change."""

from __future__ import annotations

from typing import Any

NOTHING = "nothing"
"""The option of a dropdown without options."""


def set_options(dropdown: Any, options: tuple[str, ...]) -> None:
    """Set the options of a dropdown if they differ; its value stays if it is still an option."""
    options = options or (NOTHING,)
    if dropdown.options != options:
        dropdown.options = options
