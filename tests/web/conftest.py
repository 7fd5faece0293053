"""Fixtures for web sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Site, html
from tests.web.articles import Sites, WebLibrary


@pytest.fixture
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebLibrary]:
    """Open a library that may read a site on loopback, without a delay; settings are given as environment variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with ExitStack() as stack:

        def open_site_library(*sites: Site, **environ: str) -> Library:
            hosts = ",".join(site.host for site in sites)
            environ = {"BUNKO_CRAWL_ALLOWED_HOSTS": hosts, "RAG_CRAWL_DELAY_SEC": "0"} | environ
            environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
            home = locate_library(library=tmp_path / "library", environ=environ)
            return stack.enter_context(open_library(home, environ=environ))

        yield open_site_library


@pytest.fixture
def sites() -> Iterator[Sites]:
    with ExitStack() as stack:
        yield lambda pages: stack.enter_context(Site(pages))


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": html("<p>文庫</p>")}) as site:
        yield site


@pytest.fixture
def fetcher(site: Site) -> Iterator[Fetcher]:
    with Fetcher(Guard((site.host,)), max_bytes=100_000) as fetcher:
        yield fetcher
