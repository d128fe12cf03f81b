"""The supervisor's state machine does in each situation what that of the firmware does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from firmware_source import sources
from supervisor_situations import Firmwares, Ours, answers, situations

from crazyflow_ros.crazyflie.supervisor_transitions import State

TABLE = situations()
NAMES = [situation["name"] for situation in TABLE]


def test_the_table_has_all_states_and_each_situation_once() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 60
    met = {line.partition(" ")[2] for situation in TABLE for line in situation["states"]}
    # A drone has begun before anything happens.
    assert met == {state.value for state in State} - {State.not_initialized.value}


@pytest.mark.parametrize("situation", TABLE, ids=NAMES)
def test_our_machine_does_as_the_table_says(situation: Mapping[str, Any]) -> None:
    found = vars(answers(Ours(situation["platform"]), situation))
    assert found == {name: situation[name] for name in found}


@pytest.fixture(scope="module")
def firmwares(tmp_path_factory: pytest.TempPathFactory) -> Firmwares:
    sources()  # skips without a checkout
    return Firmwares(tmp_path_factory.mktemp("firmware"))


@pytest.mark.parametrize("situation", TABLE, ids=NAMES)
def test_the_firmware_does_as_the_table_says(
    firmwares: Firmwares, situation: Mapping[str, Any]
) -> None:
    found = vars(answers(firmwares.new(situation["platform"]), situation))
    assert found == {name: situation[name] for name in found}
