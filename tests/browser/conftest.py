"""A served library and a browser for all tests of this folder; every one is slow."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import start_chromium
from tests.browser.opener import PageOpener, keep_screenshot
from tests.browser.sample import build_library
from tests.browser.served import ServedPage, serve_page

_failed = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser as slow."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, for the picture of it."""
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or report.failed
    return report


# Until the last test of this folder: while Playwright runs, no other event loop can run in this thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    expect.set_options(timeout=30_000)  # for a machine that does other work too
    with start_chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with documents and memos in two languages; tests must not change it."""
    return build_library(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="package")
def served_page(library_folder: Path) -> Iterator[ServedPage]:
    """That library, served."""
    with serve_page(library_folder) as served:
        yield served


@pytest.fixture
def open_page(browser: Browser, served_page: ServedPage, request: pytest.FixtureRequest) -> Iterator[PageOpener]:
    """Open pages of the served library; whatever the browser complains about fails the test."""
    with _opening(browser, served_page, request) as opener:
        yield opener


@pytest.fixture
def open_own_page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageOpener]:
    """Open pages of such a library with folders of its own, for tests that change it: `open_own_page.library`."""
    # A copy of the library would still read the folders of the first one.
    library_folder = build_library(tmp_path / "sample")
    with serve_page(library_folder) as served, _opening(browser, served, request) as opener:
        yield opener


@contextmanager
def _opening(browser: Browser, served: ServedPage, request: pytest.FixtureRequest) -> Iterator[PageOpener]:
    opener = PageOpener(browser, served)
    yield opener
    if request.node.stash.get(_failed, False):
        for number, page in enumerate(opener.pages()):
            keep_screenshot(page, f"failed/{request.node.name}-{number}")
    opener.close()
    assert opener.problems == []
