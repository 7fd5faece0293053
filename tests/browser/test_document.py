"""A document in a browser: to read and as source, in every format, with its outline, its links and what was found."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import SIZES, WIDTHS, PageOpener, Scheme, Width, keep_screenshot
from tests.browser.sample import open_sample
from tests.browser.served import ServedPage, serve_page

FIXTURES = Path(__file__).parents[1] / "fixtures"
GUIDE = """---
title: Guide
---
# Guide

A paragraph with `code`, a [link](notes/other.md#second-part), a [[other|note]], a [site](https://example.com/)
and one that [leads nowhere](/docs/gone/).

:::tip Careful
A box with a [list](#a-list).
:::

| name | value |
|------|------:|
| wide | {wide} |

## A list

- [ ] open
- [x] done

> A quotation

```python
print("hello")
```

![A drawing of a bridge](bridge.png)

{filler}

## The end

The needle is here.
"""
TEXT = GUIDE.format(wide="wide " * 40, filler="\n\n".join(f"Paragraph {number} of the guide." for number in range(80)))
FORMATS = (
    "garden.org",
    "moving.rst",
    "notice.eml",
    "rainfall.ipynb",
    "prices.xlsx",
    "deck.pptx",
    "report.docx",
    "guide.md",
)


@pytest.fixture(scope="module")
def formats_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """A library with a document of each format, served."""
    folder = tmp_path_factory.mktemp("formats")
    documents = folder / "documents"
    (documents / "notes").mkdir(parents=True)
    for name in FORMATS[:-1]:
        source = FIXTURES / "formats" / name
        shutil.copy(source if source.exists() else FIXTURES / "documents" / name, documents)
    (documents / "guide.md").write_text(TEXT, "utf-8")
    (documents / "notes" / "other.md").write_text("# Other\n\nFirst.\n\n## Second part\n\nSecond.\n", "utf-8")
    with open_sample(folder / "library") as library:
        library.add(documents, name="docs", description="A document of each format.")
        library.import_("docs")
    with serve_page(folder / "library") as served:
        yield served


@pytest.fixture
def open_formats(browser: Browser, formats_page: ServedPage) -> Iterator[PageOpener]:
    """Open its pages."""
    opener = PageOpener(browser, formats_page)
    yield opener
    opener.close()
    assert opener.problems == []


@pytest.mark.parametrize(("width", "scheme"), [("phone", "dark"), ("desktop", "light")])
@pytest.mark.parametrize("name", FORMATS)
def test_a_document_of_each_format_is_accessible_and_fits_the_screen(
    open_formats: PageOpener, name: str, width: Width, scheme: Scheme
) -> None:
    page = open_formats(f"/documents/docs/{name}", width=width, scheme=scheme)
    keep_screenshot(page, f"reading/{name}-{scheme}-{width}")
    expect(page.locator(".text.read")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[width][0]
    assert_accessible(page)


def visible_line(page: Page) -> int:
    return int(
        page.evaluate(
            "Number([...document.querySelectorAll('.block [id^=L]')]"
            ".find((line) => line.getBoundingClientRect().bottom > 0).id.slice(1))"
        )
    )


def test_the_views_are_links_that_keep_the_place(open_formats: PageOpener) -> None:
    page = open_formats("/documents/docs/guide.md")
    expect(page.locator(".views [aria-current]")).to_have_text("Read")
    page.locator("#L80").scroll_into_view_if_needed()
    before = visible_line(page)
    page.locator(".views a", has_text="Source").focus()
    page.evaluate("(line) => document.getElementById(`L${line}`).scrollIntoView()", before)
    page.keyboard.press("Enter")
    expect(page.locator(".views [aria-current]")).to_have_text("Source")
    expect(page.locator(".views [aria-current]")).to_be_focused()
    expect(page.locator(".text.source .gutter").first).to_be_attached()
    assert abs(visible_line(page) - before) <= 6  # a little stands above it
    expect(page).to_have_url(re.compile("view=source"))
    page.reload()
    expect(page.locator(".views [aria-current]")).to_have_text("Source")
    assert abs(visible_line(page) - before) <= 6  # a little stands above it


def test_what_was_found_is_marked_and_on_the_screen_in_both_views(open_formats: PageOpener) -> None:
    line = TEXT.split("\n").index("The needle is here.") + 1
    for width in WIDTHS:
        page = open_formats(f"/documents/docs/guide.md?hit=L{line}&q=needle", width=width)
        expect(page.locator(".read .hit mark")).to_have_text("needle")
        expect(page.locator(".read .hit mark")).to_be_in_viewport()
        page.locator(".views a", has_text="Source").click()
        expect(page.locator(".source .hit mark")).to_be_in_viewport()


def test_the_outline_leads_to_headings(open_formats: PageOpener) -> None:
    page = open_formats("/documents/docs/guide.md")
    page.locator(".outline a", has_text="The end").click()
    expect(page.locator(".read h3", has_text="The end")).to_be_in_viewport()


def test_an_address_with_a_line_opens_at_what_shows_it(open_formats: PageOpener) -> None:
    page = open_formats("/documents/docs/guide.md#L150")
    expect(page.locator("#L149, #L150").last).to_be_in_viewport()


@pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no-scripts"])
def test_links_lead_to_documents_and_to_other_sites(open_formats: PageOpener, javascript: bool) -> None:
    page = open_formats("/documents/docs/guide.md", javascript=javascript)
    text = page.locator(".text.read")
    expect(text.get_by_role("link", name="site")).to_have_attribute("target", "_blank")
    expect(text.get_by_role("link", name="site")).to_have_attribute("rel", "noreferrer noopener")
    expect(text.get_by_role("link", name="leads nowhere")).to_have_count(0)
    expect(text.get_by_role("link", name="note", exact=True)).to_have_attribute(
        "href", "/documents/docs/notes/other.md"
    )
    text.get_by_role("link", name="list", exact=True).click()
    expect(page.locator(".read h3", has_text="A list")).to_be_in_viewport()
    text.get_by_role("link", name="link", exact=True).click()
    expect(page).to_have_url(re.compile(r"/documents/docs/notes/other\.md\?lines=5#L5$"))
    expect(page.locator("h1")).to_have_text("Other")


def test_the_views_work_without_scripts(open_formats: PageOpener) -> None:
    page = open_formats("/documents/docs/guide.md", javascript=False)
    page.locator(".views a", has_text="Source").click()
    expect(page.locator(".source .line").first).to_be_visible()
    page.locator(".views a", has_text="Read").click()
    expect(page.locator(".read table").first).to_be_visible()
