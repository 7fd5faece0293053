"""A site's sitemaps and its llms.txt in, the addresses they name out: so many files, so many bytes, and no more."""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urljoin
from xml.etree import ElementTree

from bunko.errors import BunkoError, SourceError
from bunko.sources.web.decompress import gunzipped

# The protocol's own limit for one file is 50,000 addresses and 50 MB; a crawl wants far fewer.
_MOST_FILES = 20
_MOST_BYTES = 20_000_000
_MOST_URLS = 50_000
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")

Get = Callable[[str], bytes]


def named(get: Get, sitemaps: list[str], note: Callable[[str, BunkoError], None]) -> Iterator[str]:
    """Return the addresses that sitemaps name, and the sitemaps they name in turn; `note` hears what went wrong."""
    waiting, seen, number = deque(sitemaps), set(sitemaps), 0
    files = 0
    while waiting and files < _MOST_FILES:
        url = waiting.popleft()
        files += 1
        try:
            more, urls = _parsed(get(url), url)
        except SourceError as error:
            note(url, error)
            continue
        for one in more:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
        for one in urls:
            yield one
            number += 1
            if number >= _MOST_URLS:
                return


def listed(get: Get, url: str) -> list[str]:
    """Return the addresses that an llms.txt names; a SourceError says why there is none."""
    text = get(url).decode("utf-8", "replace")
    return _joined(url, _LINK.findall(text)[:_MOST_URLS])


def _parsed(data: bytes, url: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps and the pages that a sitemap names."""
    if data.startswith(b"\x1f\x8b"):
        data = gunzipped(data, _MOST_BYTES)
    # Decoded here, and never as the file itself says: else what is looked for below could hide in another encoding.
    text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    if not text[:1000].lstrip().startswith("<"):
        return [], [line for line in text.split()[:_MOST_URLS] if line.startswith(("http://", "https://"))]
    # Entities could unfold a few bytes into gigabytes, and no sitemap has any. NUL makes the parser guess UTF-16.
    if "<!DOCTYPE" in text or "<!ENTITY" in text or "\0" in text:
        raise SourceError("is not a plain sitemap: it declares entities, or its encoding is not said")
    try:
        kind, found = _named(text.lstrip())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SourceError(f"is not a sitemap: {error}") from error
    if kind not in ("urlset", "sitemapindex"):
        raise SourceError("is not a sitemap")
    whole = _joined(url, found)
    return (whole, []) if kind == "sitemapindex" else ([], whole)


def _named(text: str) -> tuple[str, list[str]]:
    """Return what a file is, and the addresses of its entries; each entry is let go as soon as it was read."""
    root, depth, found = None, 0, list[str]()
    for event, element in ElementTree.iterparse(io.StringIO(text), events=("start", "end")):
        if event == "start":
            root = element if root is None else root
            depth += 1
            continue
        depth -= 1
        # Only the address of an entry itself: pictures and videos in it have a loc of their own.
        if depth == 2 and _name(element.tag) == "loc" and element.text:
            found.append(element.text.strip())
        if depth == 1 and root is not None:
            root.clear()
        if len(found) >= _MOST_URLS:
            break
    return "" if root is None else _name(root.tag), found


def _joined(base: str, urls: Sequence[str]) -> list[str]:
    """Return addresses in full, without those that are none."""
    found = []
    for url in urls:
        with suppress(ValueError):
            found.append(urljoin(base, url))
    return found


def _name(tag: object) -> str:
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
