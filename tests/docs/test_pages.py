"""Test the shape of the docs: links, length, and that both languages stay in step."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_docs import GUIDE, GUIDE_SOURCES, PAGES, READMES, ROOT, shown, text_of

REPOSITORY = "https://github.com/bunko-authors/bunko/blob/main/"
PICTURES = "https://raw.githubusercontent.com/bunko-authors/bunko/main/"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_SHELL_COMMENT = re.compile(r" +# .*$", re.M)


def prose(page: str) -> str:
    """Return a page without code blocks and HTML comments."""
    return _COMMENT.sub("", _BLOCK.sub("", text_of(page)))


def linked_files(page: str) -> set[str]:
    """Return the files of the repository that a page links to."""
    files = set()
    for link in (target.partition("#")[0] for target in _LINK.findall(prose(page))):
        if link.startswith((REPOSITORY, PICTURES)):
            files.add(link.removeprefix(REPOSITORY).removeprefix(PICTURES))
        elif link and "://" not in link:
            path = (ROOT / page).parent.joinpath(link).resolve()
            files.add(path.relative_to(ROOT.resolve()).as_posix())
    return files


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page: str) -> None:
    assert [name for name in sorted(linked_files(page)) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_to_a_heading_name_a_heading_that_exists(page: str) -> None:
    targets = [target for target in _LINK.findall(prose(page)) if "#" in target and "://" not in target]
    for file, _, anchor in (target.partition("#") for target in targets):
        path = (ROOT / page).parent / file if file else ROOT / page
        headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
        anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{page} links to {file}#{anchor}"


@pytest.mark.parametrize("page", READMES)
def test_links_of_a_readme_also_work_on_the_package_index(page: str) -> None:
    assert [link for link in _LINK.findall(prose(page)) if "://" not in link] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), ["README.md"]
    while waiting:
        page = waiting.pop()
        if page in PAGES and page not in reached:
            reached.add(page)
            waiting += linked_files(page)
    assert set(PAGES) - reached == set()


def test_the_readme_is_short() -> None:
    words = re.sub(r"\]\([^)]+\)", "]", prose("README.md")).split()
    assert 700 <= len(words) <= 1200


def test_both_readmes_have_the_same_structure() -> None:
    english, japanese = ([len(level) for level in re.findall(r"^(#+) ", prose(page), re.M)] for page in READMES)
    assert english == japanese
    # The Japanese page also links to the guide in Japanese.
    assert linked_files("README.md") - {"README.ja.md"} == linked_files("README.ja.md") - {"README.md", GUIDE}


def test_both_readmes_show_the_same_code() -> None:
    english, japanese = (
        [(language, _SHELL_COMMENT.sub("", code)) for language, code in _BLOCK.findall(text_of(page))]
        for page in READMES
    )
    assert english == japanese


def test_the_japanese_guide_shows_what_the_english_pages_show() -> None:
    for at_a_terminal in (False, True):
        english = [command for page in GUIDE_SOURCES for command in shown(page, at_a_terminal=at_a_terminal)]
        assert sorted(shown(GUIDE, at_a_terminal=at_a_terminal)) == sorted(english)


@pytest.mark.parametrize("page", ["README.ja.md", GUIDE])
def test_japanese_pages_have_one_style(page: str) -> None:
    text = re.sub(r"`[^`\n]*`", "`", _LINK.sub("]", prose(page)))
    assert re.findall(r".{0,10}[()].{0,10}", text) == []  # （） are for Japanese
    assert re.findall("[ぁ-んァ-ヶ一-龠][,;!?].{0,10}", text) == []
    assert re.findall("(?:ライブラリ|フォルダ|サーバ|ブラウザ|エディタ)(?!ー).{0,10}|Web ページ", text) == []
