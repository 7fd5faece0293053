"""A library of each test on one PostgreSQL server."""

from __future__ import annotations

import pytest

from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import PostgresServer


@pytest.fixture
def server(postgres: PostgresServer) -> DatabaseServer:
    """The place of an empty library."""
    return postgres.new_library()
