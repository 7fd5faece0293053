"""Reads that wait together for a server that went away."""

from __future__ import annotations

import pytest

from bunko.errors import LibraryUnreachable
from bunko.stores.postgres.database import Outage

AWAY = LibraryUnreachable("The server does not answer", hint="Start it.")


def test_reads_that_come_later_do_not_wait_longer_than_the_first() -> None:
    seconds = 0.0
    outage = Outage(lambda: seconds)
    assert outage.note_failure(AWAY) == 0.0
    seconds = 3.0
    assert outage.note_failure(AWAY) == 3.0
    outage.check(4.5)
    seconds = 3.5
    with pytest.raises(LibraryUnreachable, match="does not answer"):
        outage.check(3.5)


def test_one_read_a_second_tries_a_server_that_stays_away() -> None:
    seconds = 0.0
    outage = Outage(lambda: seconds)
    outage.note_failure(AWAY)
    seconds = 4.4
    outage.note_failure(AWAY)
    seconds = 5.0
    with pytest.raises(LibraryUnreachable):
        outage.check(4.5)
    seconds = 5.4
    outage.check(4.5)  # it tries for all
    with pytest.raises(LibraryUnreachable):
        outage.check(4.5)
    outage.end()
    outage.check(4.5)


def test_a_failure_long_after_the_last_one_is_another_outage() -> None:
    seconds = 0.0
    outage = Outage(lambda: seconds)
    outage.note_failure(AWAY)
    seconds = 3600.0
    outage.check(4.5)
    assert outage.note_failure(AWAY) == 0.0
