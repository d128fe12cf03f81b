"""Lights of decks: one colour for all, as the parameters in which each deck has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crazyflie_helpers import connected, crazyflies, free_port, until

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.lights import colour, colours


@pytest.mark.parametrize(
    ("rgb", "wrgb"),
    [
        (0x102030, 0x10001020),  # the white light gives what is in all three
        (0xFFFFFF, 0xFF000000),
        (0xFF0000, 0x00FF0000),
        (0x000000, 0x00000000),
    ],
)
def test_decks_with_a_white_light_use_it(rgb: int, wrgb: int) -> None:
    assert colours(("bcColorLedTop",), rgb) == {"colorLedTop.wrgb8888": wrgb}


def test_each_deck_has_the_colour_in_its_own_way() -> None:
    assert colours(("bcFlow2",), 0xFF8000) == {}
    assert colours(("bcFlow2", "bcLedRing", "bcColorLedBot"), 0xFF8000) == {
        "ring.fadeColor": 0xFF8000,
        "ring.fadeTime": 0.0,
        "ring.effect": 14,
        "colorLedBot.wrgb8888": 0xFF8000,
    }


@pytest.mark.parametrize("text", ["ff8000", "#FF8000", "0xff8000", "0XfF8000"])
def test_colours_are_written_in_several_ways(text: str) -> None:
    assert colour(text) == 0xFF8000


@pytest.mark.parametrize("text", ["", "#", "red", "ff80", "ff80000", "+f8000", "ff 800", "##f800"])
def test_other_texts_are_no_colours(text: str) -> None:
    with pytest.raises(ValueError, match="six hexadecimal digits, as #ff8000, got"):
        colour(text)


def test_a_program_of_cflib_sees_the_colour_of_the_deck(tmp_path: Path) -> None:
    pytest.importorskip("cflib", reason="cflib is not installed")
    from cflib.crazyflie.log import LogConfig
    from cflib.crazyflie.syncLogger import SyncLogger

    link = LinkConfig(port=free_port(2), decks=("bcColorLedBot",))
    with crazyflies(2, link) as served, connected(served.uris[0], tmp_path) as cf:
        decks = [cf.param.get_value(f"deck.bcColorLed{side}") for side in ("Bot", "Top")]
        assert decks == ["1", "0"]
        seen: list[str] = []
        cf.param.add_update_callback("colorLedBot", "wrgb8888", lambda _, value: seen.append(value))
        cf.param.set_value("led_deck_ctrl.rgb888", 0x102030)
        log = LogConfig("deck", 20)
        log.add_variable("colorLedBot.throttlePct")
        log.add_variable("colorLedBot.deckTemp")
        with SyncLogger(cf, log) as logger:
            _, values, _ = next(iter(logger))
            assert values == {"colorLedBot.throttlePct": 0, "colorLedBot.deckTemp": 25}
        until(lambda: str(0x10001020) in seen, "the colour")
        assert not [line for line in served.log if "no effect" in line]
