"""What is left of documents that were made to act, load or take part in the page when they are read."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bunko.interfaces.page.document import show_document
from bunko.library.access import LibraryAccess
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.access import ALL_RIGHTS, Caller
from tests.page.hostile_documents import LARGE, PAYLOADS, as_text

_TAGS = set(
    "a b blockquote br cite code col dd div dl dt em h2 h3 h4 h5 h6 hr i li mark ol p pre s span strong "
    "sub sup table tbody"
    " td th thead tr ul".split()
)
_ATTRIBUTES = set("aria-label class data-line href id rel role start tabindex target".split())
_CLASSES = set("callout callout-title cell hit image plain table tight center left right".split())
_PARTS = re.compile(r"root:|127\.0\.0\.1|localhost")


class _Elements(HTMLParser):
    """Notes elements, their attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibraryAccess]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "docs").mkdir()
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "3600", "BUNKO_EMBEDDING_PROVIDER": "none"}
    with open_library(locate_library(library=folder / "library", environ=environ), environ=environ) as library:
        _fill(library, folder / "docs")
        yield LibraryAccess(library, Caller("tester", "http", ALL_RIGHTS))


def _fill(library: Library, folder: Path) -> None:
    tool = library.add(folder, name="docs", description="Hostile documents.")
    library.replace_texts(tool, {name: as_text(document) for name, document in (PAYLOADS | LARGE).items()})


def read(access: LibraryAccess, name: str) -> _Elements:
    document = show_document(access, "docs", name, view="read", table_label="Table")
    assert document["view"] == "read"
    return _Elements(str(document["html"]))


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_hostile_document_becomes_harmless_text(access: LibraryAccess, name: str) -> None:
    page = read(access, name)
    assert PAYLOADS[name].read in page.text
    assert not _PARTS.search(page.text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.text)
    for tag, attributes in page.elements:
        assert tag in _TAGS
        assert set(attributes) <= _ATTRIBUTES
        assert set((attributes.get("class") or "").split()) <= _CLASSES
        assert re.fullmatch(r"L\d+", attributes.get("id") or "L1")
        assert attributes.get("role") in (None, "region")
        assert attributes.get("tabindex") in (None, "0")
        if href := attributes.get("href"):
            assert href.startswith("/documents/docs/") or urlsplit(href).scheme in ("http", "https", "mailto")
            assert not href.startswith("//")
            assert attributes["rel"] == "noreferrer noopener"


@pytest.mark.parametrize("name", LARGE)
def test_too_much_of_something_takes_no_more_than_a_moment(access: LibraryAccess, name: str) -> None:
    start = time.process_time()
    page = read(access, name)
    assert time.process_time() - start < 5  # a second and less on a machine that does nothing else
    assert LARGE[name].read in page.text
    assert len(page.elements) < 80_000
