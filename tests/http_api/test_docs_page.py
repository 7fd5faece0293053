"""The page about the API: everything in it comes from the description, and nothing from elsewhere."""

from __future__ import annotations

import re

from bunko.interfaces.api.openapi import describe_api
from tests.http_api.client import ApiClient


def test_the_page_shows_every_operation_and_needs_nothing_from_elsewhere(client: ApiClient) -> None:
    reply = client.get("/api/docs")
    page = reply.body.decode()
    assert reply.headers["content-type"].startswith("text/html")
    for path, methods in describe_api()["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in page
            assert f'id="{operation["operationId"]}"' in page
    assert "<script" not in page
    assert "style=" not in page
    addresses = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert all(address.startswith(("/api/", "#", "data:")) for address in addresses)
    for address in {address for address in addresses if address.startswith("/")}:
        assert client.get(address).status == 200
