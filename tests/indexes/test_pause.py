from __future__ import annotations

import pytest

from bunko.errors import IndexFailure
from bunko.indexes.pause import EnginePause


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def away() -> IndexFailure:
    return IndexFailure("The engine does not answer", is_away=True)


def is_paused(pause: EnginePause) -> bool:
    try:
        pause.raise_if_paused()
    except IndexFailure:
        return True
    return False


def test_an_engine_that_stays_away_is_left_alone_again_after_each_pause() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    for _ in range(3):
        assert not is_paused(pause)
        pause.begin(away())
        assert is_paused(pause)
        clock.seconds += 31


def test_a_failure_during_a_pause_does_not_make_it_longer() -> None:
    clock = Clock()
    pause = EnginePause(clock)
    pause.begin(away())
    clock.seconds = 20
    pause.begin(away())
    clock.seconds = 31
    assert not is_paused(pause)


def test_an_import_ends_a_pause() -> None:
    pause = EnginePause()
    pause.begin(away())
    pause.begin_sync(1)
    assert not is_paused(pause)


def test_an_import_of_many_tools_tries_an_engine_once() -> None:
    pause = EnginePause()
    pause.begin_sync(1)
    pause.end_sync(1, away())
    with pytest.raises(IndexFailure):
        pause.begin_sync(2)
    pause.begin_sync(1)  # the next import
    assert not is_paused(pause)


def test_an_engine_that_answers_with_an_error_is_asked_again() -> None:
    pause = EnginePause()
    pause.begin(IndexFailure("The token was rejected"))
    assert not is_paused(pause)


def test_searches_in_a_pause_get_the_failure_that_began_it() -> None:
    pause = EnginePause()
    pause.begin(away())
    with pytest.raises(IndexFailure, match="does not answer"):
        pause.raise_if_paused()
