"""The rooms of the package, see `tools.rooms`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.rooms import contracts, documented, faults, rooms, undeclared


def test_the_table_is_true() -> None:
    assert faults(rooms()) == []


def test_what_is_wrong_with_a_table_is_named() -> None:
    first, *others = rooms()
    lines = first.lines
    assert faults([replace(first, budget=lines), *others]) == []
    found = faults([replace(first, budget=lines - 1), *others])
    assert found == [f"{first.name} has {lines} lines, expected at most {lines - 1}"]
    last = others[-1].name
    found = faults([replace(first, imports=(last,)), *others])
    assert found[0] == f"{first.name} imports {last}, expected rooms before it"
    assert faults([replace(first, imports=(last,)), *others])[1:] == [
        f"{first.name}, of the core, imports extensions: {last}"
    ]
    assert faults([first, *others[:-1]]) == [f"{last} is in no row"]
    lost = replace(first, name="lost", folders=("nowhere",))
    assert faults([first, *others, lost]) == ["nowhere has no folder"]
    twice = replace(lost, folders=others[0].folders)
    assert faults([first, *others, twice]) == [f"{others[0].name} is in two rows"]


def test_extensions_import_what_the_core_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    assert undeclared(rooms()) == []
    monkeypatch.setattr("tools.rooms._declared", lambda _: frozenset())
    assert any("does not declare crazyflow_ros.sim.Sim" in line for line in undeclared(rooms()))


def test_each_room_is_forbidden_what_its_row_does_not_name() -> None:
    table = rooms()
    parser = contracts(table)
    for room in table:
        forbidden = parser[f"importlinter:contract:{room.name}"]["forbidden_modules"].split()
        names = {name.removeprefix("crazyflow_ros.") for name in forbidden}
        allowed = {room.name, *room.imports}
        others = [other.folders for other in table if other.name not in allowed]
        assert names == set().union(*others)
        assert f"| `{room.name}` | {room.what} |" in documented(table)
