"""The pictures in the documentation are made here: `make pictures` renews them."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.opener import SIZES, PageOpener, Width

DOCS = Path(__file__).parents[2] / "docs"
IS_UPDATE = os.environ.get("BUNKO_UPDATE_SNAPSHOTS") == "1"


def take_picture(page: Page, name: str, width: Width = "desktop") -> None:
    """Take the picture of a page; it replaces the one in the documentation only if pictures are to be renewed."""
    data = page.screenshot()
    path = DOCS / f"page-{name}.png"
    if IS_UPDATE:
        path.write_bytes(data)
    size = struct.unpack(">II", path.read_bytes()[16:24])
    assert size == SIZES[width], f"{path.name} shows another size of the page: run `make pictures`"


def test_a_search_says_why(open_page: PageOpener) -> None:
    page = open_page("/?q=How+do+I+roll+back+a+release%3F&why=1")
    expect(page.locator(".why").first).to_contain_text("Words")
    take_picture(page, "search")


def test_a_document_is_read_beside_the_results(open_page: PageOpener) -> None:
    page = open_page("/?q=京都の宿はどこ", language="ja", scheme="dark")
    page.locator(".result h2 a").first.click()
    expect(page.locator("#panel .read .hit").first).to_be_in_viewport()
    open_page.settle(page)
    take_picture(page, "document")


def test_a_document_is_read_on_a_phone(open_page: PageOpener) -> None:
    page = open_page("/documents/handbook/oncall.md?q=roll+back&hit=L16-L19", width="phone")
    expect(page.locator(".read .hit").first).to_be_in_viewport()
    take_picture(page, "phone", "phone")


def test_the_map_names_what_lies_together(open_own_page: PageOpener, tmp_path: Path) -> None:
    library, folder = open_own_page.library, tmp_path / "documentation"
    for path in sorted(DOCS.glob("*.md")):
        for number, section in enumerate(path.read_text("utf-8").split("\n## ")):
            part = folder / path.stem / f"{number}.md"
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(f"# {section}" if number else section, "utf-8")
    library.add(folder, name="documentation", description="The documentation of bunko.")
    library.import_("documentation")
    page = open_own_page("/map?color=folder")
    expect(page.locator("#legend li").first).to_be_visible()
    open_own_page.settle(page)
    take_picture(page, "map")
