"""One server with MCP, the API and the page; each can be off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bunko.interfaces.http.parts import Part
from tests.http.server import BEARER, Site, serve_site

INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
)
MCP_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def statuses(site: Site) -> dict[Part, int]:
    """Return how each part answers somebody with a token."""
    return {
        "mcp": site.call("/mcp", method="POST", body=INITIALIZE, **MCP_HEADERS).status,
        "api": site.call("/api/v1/nothing").status,
        "page": site.call("/").status,
    }


def test_one_server_carries_mcp_the_api_and_the_page(site: Site) -> None:
    assert statuses(site) == {"mcp": 200, "api": 404, "page": 200}
    assert site.call("/api/v1/nothing").headers["Content-Type"] == "application/problem+json"
    assert "<h" in site.visit("/").text or "<form" in site.visit("/").text


@pytest.mark.parametrize("off", ["mcp", "api", "page"])
def test_each_part_can_be_off(off: Part, tmp_path: Path) -> None:
    parts: set[Part] = {"mcp", "api", "page"}
    with serve_site(tmp_path, parts=parts - {off}) as site:
        if off == "page":
            assert site.call("/assets/x/y").text == "There is nothing at this address.\n"
        found = statuses(site)
    assert found[off] == 404
    assert {part for part, status in found.items() if status == 404} - {"api"} == {off} - {"api"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imported", "missing"),
    [
        (
            "bunko.interfaces.cli.main, bunko.interfaces.cli.commands.search, bunko.interfaces.cli.commands.serve",
            "starlette jinja2 mcp",
        ),
        ("bunko.interfaces.mcp.streamable_http", "mcp jinja2 bunko.interfaces.api bunko.interfaces.page"),
        ("bunko.interfaces.mcp.stdio", "mcp anyio numpy pydantic starlette"),
        ("bunko.interfaces.http.app", "mcp jinja2 bunko.interfaces.mcp bunko.interfaces.api bunko.interfaces.page"),
    ],
)
def test_a_part_that_is_not_needed_is_not_even_imported(imported: str, missing: str) -> None:
    code = f"import sys, {imported}; print([name for name in {missing.split()} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_assets_need_no_session_and_the_page_does(site: Site) -> None:
    [address] = [part for part in site.visit("/").text.split('"') if part.endswith("css/base.css")]
    reply = site.ask(address)
    assert reply.status == 200
    assert "immutable" in reply.headers["Cache-Control"]
    assert site.ask("/", Accept="text/html").status == 401
    assert site.visit("/").status == 200
    assert site.ask("/", **BEARER).status == 200
