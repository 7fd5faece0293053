"""Find the headings of a text by its media type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from bunko.readers import outline
from bunko.readers.outline import Heading, Verbatim

# Takes lines and a range of them.
Scanner = Callable[[str, int, int | None], Iterator[Heading | Verbatim]]


def scan_outline(
    lines: str, start: int = 0, end: int | None = None, *, media_type: str = "text/markdown"
) -> Iterator[Heading | Verbatim]:
    """Yield the headings and the verbatim blocks of a text; a type that is not known is read as Markdown.

    `lines` is the result of `unify_line_ends`.
    """
    scan = _find_scanner(media_type)
    return scan(lines, start, end) if scan else _scan_markdown(lines, start, end)


def has_outline(media_type: str) -> bool:
    """Return whether texts of a type have headings of their own syntax."""
    return _find_scanner(media_type) is not None


def _scan_markdown(lines: str, start: int, end: int | None) -> Iterator[Heading | Verbatim]:
    return outline.scan_outline(lines, start, end)


@cache
def _find_scanner(media_type: str) -> Scanner | None:
    from bunko.readers import code, notebook, org, rst

    scanners: dict[str, Scanner] = {
        org.MEDIA_TYPE: org.scan_outline,
        rst.MEDIA_TYPE: rst.scan_outline,
        notebook.MEDIA_TYPE: _scan_markdown,
    }
    if media_type in code.LANGUAGES_BY_TYPE:
        from bunko.readers import definitions

        return definitions.scanner(code.LANGUAGES_BY_TYPE[media_type])
    return scanners.get(media_type)
