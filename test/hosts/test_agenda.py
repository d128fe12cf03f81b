"""Requests on their way: what is said in a message, and what is refused."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from crazyflow_ros.hosts.agenda import Agenda
from crazyflow_ros.hosts.words import Word
from crazyflow_ros.runtime import InvalidState


def word(*requests: dict[str, Any]) -> Word:
    return Word("view", 0, 1, 0, "digest", False, True, 6, requests)


def test_requests_are_carried_out_in_the_order_of_names_and_answered_when_all_have() -> None:
    done: list[str] = []
    slow: Future[str] = Future()

    def carry_out(origin: str, request: dict[str, Any]) -> Future[str] | None:
        done.append(f"{origin}: {request['call']}")
        return slow if request["call"] == "slow" else None

    agenda, first, second = Agenda("b", carry_out), Future[Any](), Future[Any]()
    agenda.ask({"call": "slow"}, first, once_here=False)
    agenda.ask({"call": "here"}, second, once_here=True)
    said = agenda.say()
    assert said == agenda.say() and not agenda.has_to_say  # until somebody has heard it
    agenda.agree({"c": word({"call": "last"}), "b": word(*said), "a": word({"call": "first"})})
    assert not agenda.carry_out() and done == ["a: first", "b: slow"]
    slow.set_result("result")
    assert agenda.carry_out() and done[2:] == ["b: here", "c: last"]
    assert second.done() and not first.done()
    agenda.agree({})
    assert first.result() == "result"


def test_a_message_has_room_for_some_requests_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crazyflow_ros.hosts.agenda._ROOM", 100)
    agenda = Agenda("b", lambda *_: None)
    futures = [Future[Any]() for _ in range(3)]
    for future in futures[:2]:
        agenda.ask({"call": "x" * 60}, future, once_here=False)
    agenda.ask({"call": "x" * 100}, futures[2], once_here=False)
    with pytest.raises(ValueError, match="at most 100 bytes, got 112"):
        futures[2].result(0)
    assert len(agenda.say()) == 1 and agenda.has_to_say
    agenda.fail("the simulator a has gone")
    for future in futures[:2]:
        with pytest.raises(InvalidState, match="the simulator a has gone"):
            future.result(0)


def test_cancelled_requests_are_not_said() -> None:
    agenda, future = Agenda("b", lambda *_: None), Future[Any]()
    agenda.ask({"call": "x"}, future, once_here=False)
    future.cancel()
    assert agenda.say() == ()
