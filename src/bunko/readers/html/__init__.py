"""Extract the main text of a web page as Markdown, with its title, date and links.

Nothing is fetched and no script runs. The result is what a person would read: no menus, no hidden text, tables as
tables, so that a folder of saved pages and a crawled site are chunked like any Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

from bunko.readers.reader import Reader
from bunko.types import Text

__all__ = ["ParsedPage", "keeps_readings", "read"]

# Readings are furigana: the pronunciation above a word, in <ruby>. Where a larger share of the text has them, they are
# for children, not for names that are hard to read, and are left out.
_SPARSE_READINGS_SHARE = 0.05
_ALLOWED_READING_CHARS = 20  # characters of readings that any page may have


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """The main text of a page, and its metadata."""

    text: Text
    links: tuple[str, ...] = ()  # absolute, without fragments, from the whole page, in order and without duplicates
    canonical_url: str = ""  # absolute; it may lead to another site
    language: str = ""
    noindex: bool = False  # the page asks not to be indexed


def read(data: bytes, *, charset: str = "", url: str = "") -> ParsedPage:
    """Read a page; `charset` comes from the server, and relative links are resolved against `url`.

    Raise SourceError if it has more tags than any page of text; no other bytes make it fail.
    """
    from bunko.readers.html import blocks, decoding, metadata, tree

    text, encoding = decoding.decode(data, charset)
    document = tree.parse_html(text)
    page = tree.build_tree(document)
    head = metadata.PageHead(document)
    main = tree.main_element(page)
    keep_readings = keeps_readings(page.ruby_chars, page.body.chars)
    main_text = blocks.markdown(main, keep_menus=main is not page.body, keep_readings=keep_readings)
    if not main_text:
        main_text = blocks.markdown(page.body, keep_readings=keep_readings) or blocks.markdown(
            page.body, keep_boilerplate=True, keep_readings=keep_readings
        )
    title, title_is_outside = metadata.page_title(head, page, main)
    if title_is_outside and main_text:
        main_text = f"# {title}\n\n{main_text}"
    base = metadata.absolute_url(head.base_url, url) or url
    return ParsedPage(
        Text(
            text=main_text,
            media_type="text/html",
            encoding=encoding,
            title=title,
            date=metadata.publication_date(head, page, main),
        ),
        metadata.page_links(document, base),
        metadata.absolute_url(head.canonical_url, base) if head.canonical_url else "",
        metadata.page_language(document, head, main_text),
        metadata.is_noindex(head),
    )


def keeps_readings(reading_chars: int, text_chars: int) -> bool:
    """Return whether the readings of a text are kept, by their share of it."""
    return reading_chars <= max(_ALLOWED_READING_CHARS, _SPARSE_READINGS_SHARE * text_chars)


def read_file(data: bytes) -> Text:
    """Read the main text of a saved page."""
    return read(data).text


READER = Reader(
    read_file,
    suffixes=(".html", ".htm", ".xhtml"),
    media_type="text/html",
    default_suffixes=(".html", ".htm", ".xhtml"),
    label="HTML",
)
