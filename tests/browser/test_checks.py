"""The scripts and styles of the page pass TypeScript and Biome, as in `make check-page`."""

from __future__ import annotations

from tests.browser import npm

_ASSETS = "src/bunko/interfaces/page/assets"


def test_the_types_of_the_scripts_are_right() -> None:
    done = npm.run("tsc", "--project", "tests/browser/node")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_finds_nothing() -> None:
    options = ("--error-on-warnings", "--config-path=tests/browser/node/biome.json")
    done = npm.run("biome", "lint", *options, f"{_ASSETS}/js", f"{_ASSETS}/css")
    assert done.returncode == 0, done.stdout + done.stderr
