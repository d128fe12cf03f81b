"""The rooms of the package, see `tools.rooms`."""

from __future__ import annotations

from dataclasses import replace

from tools.rooms import contracts, documented, faults, rooms


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
    assert found == [f"{first.name} imports {last}, expected rooms before it"]
    assert faults([first, *others[:-1]]) == [f"{last} has no row"]
    assert faults([first, *others, replace(first, name="nowhere")]) == ["nowhere has no folder"]


def test_each_room_is_forbidden_what_its_row_does_not_name() -> None:
    table = rooms()
    parser = contracts(table)
    for room in table:
        forbidden = parser[f"importlinter:contract:{room.name}"]["forbidden_modules"].split()
        names = {name.removeprefix("crazyflow_ros.") for name in forbidden}
        assert names == {other.name for other in table} - {room.name, *room.imports}
        assert f"| `{room.name}` | {room.what} |" in documented(table)
