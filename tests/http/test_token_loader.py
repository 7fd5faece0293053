"""Tokens of a library that goes away: its place is a port on loopback that refuses every connection."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from bunko.errors import LibraryUnreachable
from bunko.interfaces.http.authorization import TokenLoader
from bunko.library.rights.tokens import find_token, token_digest
from bunko.types.access import Rights, Token

TOKEN = Token("alice", token_digest("bunko_alice"), Rights(), "2026-01-01")


class Tokens:
    """A list of tokens that is read over a connection, and a clock that only a test moves."""

    def __init__(self) -> None:
        self.reads, self.seconds = 0, 0.0
        self.released = threading.Event()
        self.released.set()
        self.listener: socket.socket | None = socket.create_server(("127.0.0.1", 0))
        self._address = self.listener.getsockname()
        self.loader = TokenLoader(self.read, lambda: self.seconds)

    def read(self) -> list[Token]:
        self.reads += 1
        assert self.released.wait(60)
        try:
            socket.create_connection(self._address).close()
        except ConnectionError as error:
            raise LibraryUnreachable("The server does not answer") from error
        return [TOKEN]

    def go_away(self) -> None:
        assert self.listener is not None
        self.listener.close()

    def come_back(self) -> None:
        self.listener = socket.create_server(self._address)

    async def find(self, text: str = "bunko_alice") -> Token | None:
        return await self.loader.find(lambda tokens: find_token(tokens, text))


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    tokens = Tokens()
    yield tokens
    tokens.go_away()


def test_forty_requests_wait_for_one_read_that_fails_for_all_of_them(tokens: Tokens) -> None:
    async def ask() -> list[Token | BaseException | None]:
        tokens.released.clear()
        requests = [asyncio.create_task(tokens.find()) for _ in range(40)]
        while not tokens.reads:
            await asyncio.sleep(0)
        tokens.released.set()
        return await asyncio.gather(*requests, return_exceptions=True)

    tokens.go_away()
    assert {type(result) for result in asyncio.run(ask())} == {LibraryUnreachable}
    assert tokens.reads == 1


def test_a_failure_is_remembered_for_a_second(tokens: Tokens) -> None:
    async def ask() -> None:
        for _ in range(3):
            with pytest.raises(LibraryUnreachable):
                await tokens.find()
        assert tokens.reads == 1
        tokens.come_back()
        tokens.seconds += 1.0
        assert await tokens.find() == TOKEN
        assert tokens.reads == 2

    tokens.go_away()
    asyncio.run(ask())


def test_a_known_token_counts_for_a_minute_while_tokens_cannot_be_read(tokens: Tokens) -> None:
    async def ask() -> None:
        assert await tokens.find() == TOKEN
        tokens.go_away()
        tokens.seconds = 59.0
        assert await tokens.find() == TOKEN
        with pytest.raises(LibraryUnreachable):  # it may have been added meanwhile
            await tokens.find("bunko_bob")
        tokens.seconds = 60.0
        with pytest.raises(LibraryUnreachable):
            await tokens.find()
        tokens.come_back()
        tokens.seconds = 61.0
        assert await tokens.find() == TOKEN
        assert await tokens.find("bunko_bob") is None

    asyncio.run(ask())


def test_a_client_that_goes_away_does_not_end_the_read_of_others(tokens: Tokens) -> None:
    async def ask() -> Token | None:
        tokens.released.clear()
        first, second = asyncio.create_task(tokens.find()), asyncio.create_task(tokens.find())
        while not tokens.reads:
            await asyncio.sleep(0)
        first.cancel()
        tokens.released.set()
        return await second

    assert asyncio.run(ask()) == TOKEN
    assert tokens.reads == 1
