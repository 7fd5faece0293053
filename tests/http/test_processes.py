"""`bunko serve --http` in processes of its own: several workers know the same sessions, and parts can be off."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from tests.mcp.test_http import SECRET, Process, bearer

pytestmark = pytest.mark.slow

PATIENCE = 60.0


def send(process: Process, method: str, path: str, body: str = "", **headers: str) -> http.client.HTTPResponse:
    """Send a request on a connection of its own, which any worker may take."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def test_every_worker_knows_a_session_that_one_of_them_made(tmp_path: Path) -> None:
    process = Process(tmp_path, "--workers", 2, BUNKO_TOKEN=SECRET)
    try:
        reply = send(process, "POST", "/login", f"token={SECRET}", Origin=process.origin)
        assert reply.status == 303
        session = reply.headers["Set-Cookie"].partition(";")[0]
        assert [send(process, "GET", "/", Cookie=session).status for _ in range(20)] == [200] * 20
        assert send(process, "GET", "/login?token=x").status == 401
    finally:
        process.end()
    output = "".join(process.output)
    assert f"The page is at {process.origin}/" in output
    assert SECRET not in output
    assert session.partition("=")[2] not in output


def test_parts_are_left_out_by_options_and_settings(tmp_path: Path) -> None:
    process = Process(tmp_path, "--no-api", BUNKO_TOKEN=SECRET, BUNKO_SERVE_PAGE="false")
    try:
        assert process.post(**bearer(SECRET)).status == 200
        assert send(process, "GET", "/api/v1/status", **bearer(SECRET)).status == 404
        assert send(process, "GET", "/", **bearer(SECRET)).status == 404
        assert send(process, "GET", "/login").status == 401
    finally:
        process.end()
    assert "The page is at" not in "".join(process.output)
