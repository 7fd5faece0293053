"""Fixtures for remote embedders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedders.providers import Provider
from tests.loopback import Loopback


@pytest.fixture
def service() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


@pytest.fixture(params=["openai", "gemini"])
def provider(request: pytest.FixtureRequest, service: Loopback) -> Provider:
    return Provider(request.param, service)
