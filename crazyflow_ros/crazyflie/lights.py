"""Colours of the decks with lights, which the firmware keeps as parameters."""

from __future__ import annotations

from collections.abc import Collection

RGB = "led_deck_ctrl.rgb888"
"""Full name of the parameter with a colour for all decks, 0xRRGGBB."""

_COLOR_DECKS = {"bcColorLedBot": "colorLedBot", "bcColorLedTop": "colorLedTop"}
_FADE = 14  # effect of the LED ring: the colour of ring.fadeColor


def colours(decks: Collection[str], rgb: int) -> dict[str, int | float]:
    """Return the decks' parameters, by full name, for one colour on all decks.

    Args:
        decks: Names of the decks.
        rgb: The colour, 0xRRGGBB.
    """
    found: dict[str, int | float] = {}
    if "bcLedRing" in decks:
        found |= {"ring.fadeColor": rgb, "ring.fadeTime": 0.0, "ring.effect": _FADE}
    white = min(rgb >> shift & 0xFF for shift in (16, 8, 0))  # of a light of its own
    rest = rgb - white * 0x010101
    found |= {
        f"{group}.wrgb8888": white << 24 | rest
        for deck, group in _COLOR_DECKS.items()
        if deck in decks
    }
    return found


def colour(text: str) -> int:
    """Parse a colour, as on crazyswarm2's topic cmd_led, to 0xRRGGBB.

    Raises:
        ValueError: It is not six hexadecimal digits, perhaps after # or 0x.
    """
    digits = text.removeprefix("#").removeprefix("0x").removeprefix("0X")
    if len(digits) != 6 or not set(digits) <= set("0123456789abcdefABCDEF"):
        raise ValueError(f"a colour has six hexadecimal digits, as #ff8000, got {text[:40]!r}")
    return int(digits, 16)
