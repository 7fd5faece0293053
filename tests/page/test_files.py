"""The files of the page: all in the wheel, of one subject each, without markup or styles that its policy forbids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.page.sources import PACKAGE, ROOT, SCRIPTS, STYLES, TEMPLATES

_MAX_LINES = 400
_FORBIDDEN_IN_SCRIPTS = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|createContextualFragment|parseFromString|document\.write"
    r"|eval|new Function)\b"
)
# Parts of pages come from the server, which has escaped every text in them.
_ALLOWED = {"fragments.js": {"parseFromString"}}
_OTHER_SITE = re.compile(r"(?:https?:)?//(?!www\.w3\.org/)[a-z0-9-]+\.[a-z]")


def test_every_file_of_the_page_is_in_the_wheel() -> None:
    packed = {Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {"base.html", "base.css", "dom.js", "ja.toml"} <= {path.name for path in files}
    assert files - packed == set()


@pytest.mark.parametrize("file", [*SCRIPTS, *STYLES, *TEMPLATES], ids=lambda file: file.name)
def test_a_file_has_one_subject(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= _MAX_LINES


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_a_script_never_makes_markup_of_text(script: Path) -> None:
    code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", script.read_text("utf-8"), flags=re.DOTALL)
    assert len(code) > 100
    assert set(_FORBIDDEN_IN_SCRIPTS.findall(code)) <= _ALLOWED.get(script.name, set())


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
def test_a_template_has_no_inline_script_or_style_and_escapes_everything(template: Path) -> None:
    text = template.read_text("utf-8")
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", text) == []
    assert re.findall(r"\|\s*safe\b|autoescape", text) == []
    for script in re.findall(r"<script[^>]*>", text):
        assert 'src="' in script or 'type="application/json"' in script, script


@pytest.mark.parametrize("file", [*SCRIPTS, *STYLES, *TEMPLATES], ids=lambda file: file.name)
def test_nothing_is_fetched_from_another_site(file: Path) -> None:
    assert _OTHER_SITE.findall(file.read_text("utf-8")) == []
