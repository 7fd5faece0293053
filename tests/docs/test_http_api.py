"""The examples of the page about the HTTP API run as they are, against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.api.endpoint import PREFIX
from bunko.interfaces.api.problems import STATUSES
from bunko.interfaces.api.routes import all_endpoints
from tests.http.server import TOKEN, Site, serve_site

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text("utf-8")
_EXAMPLE = re.compile(r"^```sh\n(.*?)^```\n\n```(json|text)\n(.*?)^```", re.M | re.S)
EXAMPLES = _EXAMPLE.findall(PAGE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serve_site(tmp_path_factory.mktemp("api")) as served:
        yield served


def test_every_example_has_an_answer() -> None:
    assert len(EXAMPLES) == PAGE.count("```sh\n") >= 9


@pytest.mark.slow
def test_the_examples_answer_what_the_page_shows(site: Site) -> None:
    environ = os.environ | {"BUNKO_URL": site.address, "BUNKO_TOKEN": TOKEN}
    for command, kind, expected in EXAMPLES:
        done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        if kind == "json":
            assert_contains(json.loads(done.stdout), json.loads(expected))
        else:
            pattern = ".*".join(map(re.escape, expected.strip().split("…")))
            assert re.search(pattern, done.stdout, re.S), done.stdout


def assert_contains(value: Any, expected: Any) -> None:
    """Check that a value has what a page shows of it; … stands for anything."""
    if expected == "…":
        return
    if isinstance(expected, dict):
        for name, part in expected.items():
            assert name in value
            assert_contains(value[name], part)
    elif isinstance(expected, list):
        assert len(value) >= len(expected)
        for item, part in zip(value, expected, strict=False):
            assert_contains(item, part)
    else:
        assert value == expected


def test_the_page_lists_all_endpoints() -> None:
    listed = set(re.findall(r"^\| `([A-Z]+) (/api/v1\S*)` \|", PAGE, re.M))
    assert listed == {(endpoint.method, PREFIX + endpoint.path) for endpoint in all_endpoints()}


def test_the_page_lists_every_status_of_an_error() -> None:
    listed = {int(status) for row in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.M) for status in row.split(",")}
    assert set(STATUSES.values()) - listed == {500}
