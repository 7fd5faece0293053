"""The bytes of a web page come in, its main text as Markdown with title and date, and its links, go out.

Nothing is fetched and nothing is run. What goes out is what a person would read: no menus, no hidden text, tables as
tables, so that a folder of saved pages and a crawled site are cut like any Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

from bunko.types import Text

__all__ = ["ParsedPage", "read"]

# Where more is annotated than this, readings are for children, not for names that are hard to read.
_SPARSE_READINGS_SHARE = 0.05
_ALLOWED_READING_CHARS = 20  # characters of readings that any page may have


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page: its main text, and what else it says."""

    text: Text
    links: tuple[str, ...] = ()  # absolute, in order, each once, without fragments, from the whole page
    canonical_url: str = ""  # the address the page gives itself, absolute; it may lead to another site
    language: str = ""
    noindex: bool = False  # it asks not to be indexed


def read(data: bytes, *, charset: str = "", url: str = "") -> ParsedPage:
    """Read a page; `charset` is what the server said, `url` what its links are relative to. Never fails."""
    from bunko.readers.html import blocks, decoding, main_content, metadata, tree

    text, encoding = decoding.decode(data, charset)
    document = tree.parse_html(text)
    page = tree.build_tree(document)
    head = metadata.PageHead(document)
    body = main_content.main_element(page)
    readings = page.ruby_chars <= max(_ALLOWED_READING_CHARS, _SPARSE_READINGS_SHARE * page.body.chars)
    written = blocks.markdown(body, keep_menus=body is not page.body, keep_readings=readings)
    if not written:
        written = blocks.markdown(page.body, keep_readings=readings) or blocks.markdown(
            page.body, keep_boilerplate=True, keep_readings=readings
        )
    title, outside = metadata.page_title(head, page, body)
    if outside and written:
        written = f"# {title}\n\n{written}"
    base = metadata.absolute_url(head.base_url, url) or url
    return ParsedPage(
        Text(
            text=written,
            media_type="text/html",
            encoding=encoding,
            title=title,
            date=metadata.publication_date(head, page, body),
        ),
        metadata.page_links(document, base),
        metadata.absolute_url(head.canonical_url, base) if head.canonical_url else "",
        metadata.page_language(document, head, written),
        metadata.is_noindex(head),
    )
