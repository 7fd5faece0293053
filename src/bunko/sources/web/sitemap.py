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
from bunko.sources.web.decompress import gunzip

# The protocol's own limit for one file is 50,000 addresses and 50 MB; a crawl wants far fewer.
_MAX_FILES = 20
_MAX_BYTES = 20_000_000
_MAX_URLS = 50_000
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")

FetchBytes = Callable[[str], bytes]


def sitemap_urls(fetch: FetchBytes, sitemaps: list[str], on_error: Callable[[str, BunkoError], None]) -> Iterator[str]:
    """Return the addresses that sitemaps name, and the sitemaps they name in turn; `note` hears what went wrong."""
    waiting, seen, number = deque(sitemaps), set(sitemaps), 0
    files = 0
    while waiting and files < _MAX_FILES:
        url = waiting.popleft()
        files += 1
        try:
            more, urls = _parse_sitemap(fetch(url), url)
        except SourceError as error:
            on_error(url, error)
            continue
        for one in more:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
        for one in urls:
            yield one
            number += 1
            if number >= _MAX_URLS:
                return


def llms_txt_urls(fetch: FetchBytes, url: str) -> list[str]:
    """Return the addresses that an llms.txt names; a SourceError says why there is none."""
    text = fetch(url).decode("utf-8", "replace")
    return _absolute_urls(url, _LINK.findall(text)[:_MAX_URLS])


def _parse_sitemap(data: bytes, url: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps and the pages that a sitemap names."""
    if data.startswith(b"\x1f\x8b"):
        data = gunzip(data, _MAX_BYTES)
    # Decoded here, and never as the file itself says: else what is looked for below could hide in another encoding.
    text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    if not text[:1000].lstrip().startswith("<"):
        return [], [line for line in text.split()[:_MAX_URLS] if line.startswith(("http://", "https://"))]
    # Entities could unfold a few bytes into gigabytes, and no sitemap has any. NUL makes the parser guess UTF-16.
    if "<!DOCTYPE" in text or "<!ENTITY" in text or "\0" in text:
        raise SourceError("is not a plain sitemap: it declares entities, or its encoding is not said")
    try:
        kind, found = _parse_xml(text.lstrip())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SourceError(f"is not a sitemap: {error}") from error
    if kind not in ("urlset", "sitemapindex"):
        raise SourceError("is not a sitemap")
    whole = _absolute_urls(url, found)
    return (whole, []) if kind == "sitemapindex" else ([], whole)


def _parse_xml(text: str) -> tuple[str, list[str]]:
    """Return what a file is, and the addresses of its entries; each entry is let go as soon as it was read."""
    root, depth, found = None, 0, list[str]()
    for event, element in ElementTree.iterparse(io.StringIO(text), events=("start", "end")):
        if event == "start":
            root = element if root is None else root
            depth += 1
            continue
        depth -= 1
        # Only the address of an entry itself: pictures and videos in it have a loc of their own.
        if depth == 2 and _local_name(element.tag) == "loc" and element.text:
            found.append(element.text.strip())
        if depth == 1 and root is not None:
            root.clear()
        if len(found) >= _MAX_URLS:
            break
    return "" if root is None else _local_name(root.tag), found


def _absolute_urls(base: str, urls: Sequence[str]) -> list[str]:
    """Return addresses in full, without those that are none."""
    found = []
    for url in urls:
        with suppress(ValueError):
            found.append(urljoin(base, url))
    return found


def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
