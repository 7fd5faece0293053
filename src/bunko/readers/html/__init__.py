"""The bytes of a web page come in, its main text as Markdown with title and date, and its links, go out.

Nothing is fetched and nothing is run. What goes out is what a person would read: no menus, no hidden text, tables as
tables, so that a folder of saved pages and a crawled site are cut like any Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

from bunko.types import Text

__all__ = ["Html", "read"]

# Where more is annotated than this, readings are for children, not for names that are hard to read.
_SPARSE = 0.05
_FEW = 20  # characters of readings that any page may have


@dataclass(frozen=True, slots=True)
class Html:
    """A page: its main text, and what else it says."""

    text: Text
    links: tuple[str, ...] = ()  # absolute, in order, each once, without fragments, from the whole page
    canonical: str = ""  # the address the page gives itself, absolute; it may lead to another site
    language: str = ""
    noindex: bool = False  # it asks not to be indexed


def read(data: bytes, *, charset: str = "", url: str = "") -> Html:
    """Read a page; `charset` is what the server said, `url` what its links are relative to. Never fails."""
    from bunko.readers.html import blocks, decoding, main_content, metadata, tree

    text, encoding = decoding.decode(data, charset)
    document = tree.parse(text)
    page = tree.tree(document)
    head = metadata.Head(document)
    body = main_content.main_text(page)
    readings = page.ruby_chars <= max(_FEW, _SPARSE * page.body.chars)
    written = blocks.markdown(body, dense=body is not page.body, readings=readings)
    if not written:
        written = blocks.markdown(page.body, readings=readings) or blocks.markdown(
            page.body, boilerplate=True, readings=readings
        )
    title, outside = metadata.title(head, page, body)
    if outside and written:
        written = f"# {title}\n\n{written}"
    base = metadata.address(head.base, url) or url
    return Html(
        Text(
            text=written, media_type="text/html", encoding=encoding, title=title, date=metadata.date(head, page, body)
        ),
        metadata.links(document, base),
        metadata.address(head.canonical, base) if head.canonical else "",
        metadata.spoken(document, head, written),
        metadata.noindex(head),
    )
