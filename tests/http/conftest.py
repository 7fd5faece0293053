"""A server with all of its parts, over a small library in two languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.server import Site, serve_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that all tests of a module share; what one changes, the others see."""
    with serve_site(tmp_path_factory.mktemp("site")) as served:
        yield served
