"""Start the Chromium of this machine; `make chromium` installs it on Debian."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser")
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Not even the name of another machine is looked up.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def find_chromium() -> str:
    """Return the path of Chromium; without one, skip the test, or fail it in CI."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    if os.environ.get("CI"):
        pytest.fail("Chromium is missing; CI must not pass without the tests of the page")
    pytest.skip("Chromium is not on this machine; `make chromium` installs it on Debian")


@contextmanager
def start_chromium() -> Iterator[Browser]:
    """Run a headless Chromium for as long as the block runs."""
    path = find_chromium()
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *sandbox])
        try:
            yield browser
        finally:
            browser.close()
