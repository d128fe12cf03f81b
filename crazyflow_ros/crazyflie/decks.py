"""Expansion decks of Crazyflies."""

DECKS = {
    "bcLedRing": 0x01,
    "bcMultiranger": 0x0C,
    "bcZRanger2": 0x0E,
    "bcFlow2": 0x0F,
    "bcLighthouse4": 0x10,
    "bcDWM1000": 0x06,
    "bcColorLedBot": 0x13,
    "bcColorLedTop": 0x14,
}
"""Product numbers of decks by their names in the parameters of the group `deck`."""
