"""`bunko ui` and a real browser: the link signs it in once, and the session is all that it keeps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.slow.corpus import environment, wait_until

_LINK = re.compile(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]+")


@contextmanager
def _run_ui(library_folder: Path, output: Path, *options: str, **environ: str) -> Iterator[None]:
    """Run `bunko ui` for as long as the block runs."""
    command = [sys.executable, "-m", "bunko", "ui", *options, "--port", "0", "--library", str(library_folder)]
    with (
        open(output, "wb") as file,
        subprocess.Popen(command, stdout=file, stderr=file, env=environment(**environ)) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def _wait_for_link(file: Path) -> str:
    wait_until(lambda: file.exists() and _LINK.search(file.read_text("utf-8")) is not None, "bunko ui tells its link")
    match = _LINK.search(file.read_text("utf-8"))
    assert match is not None
    return match[0]


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that was never here before."""
    with browser.new_context(locale="ja-JP") as context:
        yield context


def test_the_link_of_bunko_ui_signs_a_browser_in_once(
    context: BrowserContext, browser: Browser, library_folder: Path, tmp_path: Path
) -> None:
    with _run_ui(library_folder, tmp_path / "output", "--no-open"):
        link = _wait_for_link(tmp_path / "output")
        address = link.partition("/login")[0]
        page, failed = context.new_page(), []
        page.on("response", lambda response: failed.append(response.url) if response.status >= 400 else None)
        page.goto(link)
        assert page.url == f"{address}/"
        assert page.locator("#query").is_visible()
        (cookie,) = context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert page.evaluate("document.cookie") == ""
        page.goto(f"{address}/?q=京都")
        assert page.locator("#query").input_value() == "京都"
        assert page.evaluate("document.styleSheets.length") >= 1
        assert failed == []
        with browser.new_context(locale="ja-JP") as another:
            page = another.new_page()
            page.goto(link)
            assert page.locator("[role=alert]").is_visible()
            assert another.cookies() == []
            response = page.goto(f"{address}/?q=京都")
            assert response is not None
            assert response.status == 401
            assert "京都への" not in page.content()


def test_a_browser_that_bunko_ui_opens_is_signed_in(
    context: BrowserContext, library_folder: Path, tmp_path: Path
) -> None:
    # It starts from a file, whose links are those of another site: a strict cookie does not come along at once.
    program, opened = tmp_path / "browser", tmp_path / "opened.html"
    program.write_text(f'#!/bin/sh\ncp "${{1#file://}}" "{opened}.part" && mv "{opened}.part" "{opened}"\n')
    program.chmod(0o700)
    with _run_ui(library_folder, tmp_path / "output", BROWSER=str(program)):
        _wait_for_link(opened)
        page = context.new_page()
        page.goto(opened.as_uri())
        page.locator("#query").wait_for()
        assert page.url.endswith("/")
