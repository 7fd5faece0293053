"""Limits on what one caller can ask for: the size of a request, and how many there are."""

from __future__ import annotations

import http.client
import json
import time

import pytest

from bunko.interfaces.http import guards
from bunko.interfaces.http.guards import MAX_BODY_BYTES
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.types.access import Rights
from tests.http.server import BEARER, PATIENCE, Site, serve_app


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/", "/login"])
def test_a_large_body_is_refused_before_it_is_read(site: Site, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
    try:
        length = str(MAX_BODY_BYTES + 1)
        connection.request("POST", path, b"{", {"Content-Length": length, "Origin": site.address, **BEARER})
        response = connection.getresponse()
        assert response.status == 413
        if path.startswith("/api"):
            assert json.loads(response.read())["type"] == "/problems/too_large"
    finally:
        connection.close()
    assert site.call("/").status == 200


def test_a_body_that_grows_beyond_the_limit_is_refused(site: Site) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE)
    try:
        connection.putrequest("POST", "/api/v1/nothing")
        for name, value in {**BEARER, "Transfer-Encoding": "chunked"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        # Not a byte more: the server closes the connection, and what it has not read would break the answer.
        connection.send(b"%x\r\n" % (MAX_BODY_BYTES + 1) + b"x" * (MAX_BODY_BYTES + 1))
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_a_body_within_the_limit_arrives_whole(site: Site) -> None:
    body = "token=" + "x" * (MAX_BODY_BYTES - 6)
    assert site.ask("/login", method="POST", body=body, Origin=site.address).status == 401


def test_a_caller_that_asks_too_fast_is_told_when_to_come_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    other = site.library.tokens.add("other", Rights())
    moment = time.monotonic()
    with serve_app(ToolRegistry(lambda: site.library), requests_per_second=0.2) as port:
        limited = Site(port, site.library, site.links)
        assert [limited.call("/api/v1/nothing").status for _ in range(3)] == [404, 404, 429]
        refused = limited.call("/api/v1/nothing")
        assert refused.headers["Retry-After"] == "5"
        assert json.loads(refused.text)["type"] == "/problems/too_many"
        assert limited.call("/").status == 429
        assert limited.call("/mcp").status != 429
        assert limited.ask("/healthz").status == 200
        assert limited.ask("/api/v1/nothing", Authorization=f"Bearer {other}").status == 404
        monkeypatch.setattr(guards, "monotonic", lambda: moment + 60)
        assert limited.call("/api/v1/nothing").status == 404
