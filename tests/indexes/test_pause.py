from __future__ import annotations

import pytest

from bunko.errors import IndexFailure
from bunko.indexes.replica import EnginePause


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def away() -> IndexFailure:
    return IndexFailure("The engine does not answer", is_away=True)


def ask(pause: EnginePause, failure: IndexFailure | None = None) -> None:
    with pause.asking():
        if failure is not None:
            raise failure


def is_paused(pause: EnginePause) -> bool:
    try:
        ask(pause)
    except IndexFailure:
        return True
    return False


def fail(pause: EnginePause, failure: IndexFailure) -> None:
    with pytest.raises(IndexFailure):
        ask(pause, failure)


def sync(pause: EnginePause, tool_id: int, failure: IndexFailure | None = None) -> None:
    with pause.syncing(tool_id):
        if failure is not None:
            raise failure


def test_an_engine_that_stays_away_is_left_alone_again_after_each_pause() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    for _ in range(3):
        assert not is_paused(pause)
        fail(pause, away())
        assert is_paused(pause)
        clock.seconds += 31


def test_a_failure_during_a_pause_does_not_make_it_longer() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    fail(pause, away())
    clock.seconds = 20
    fail(pause, away())
    clock.seconds = 31
    assert not is_paused(pause)


def test_an_import_ends_a_pause() -> None:
    pause = EnginePause()
    fail(pause, away())
    sync(pause, 1)
    assert not is_paused(pause)


def test_an_import_of_many_tools_tries_an_engine_once() -> None:
    pause = EnginePause()
    with pytest.raises(IndexFailure):
        sync(pause, 1, away())
    with pytest.raises(IndexFailure):
        sync(pause, 2)
    sync(pause, 1)  # the next import
    assert not is_paused(pause)


def test_an_engine_that_answers_with_an_error_is_asked_again() -> None:
    pause = EnginePause()
    fail(pause, IndexFailure("The token was rejected"))
    assert not is_paused(pause)


def test_searches_in_a_pause_get_the_failure_that_began_it() -> None:
    pause = EnginePause()
    fail(pause, away())
    with pytest.raises(IndexFailure, match="does not answer"):
        ask(pause)
