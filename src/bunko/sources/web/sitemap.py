"""Find the pages of a site in its sitemaps and its llms.txt."""

from __future__ import annotations

import io
import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urljoin
from xml.etree import ElementTree

from bunko.errors import BunkoError, SourceError
from bunko.sources.web.decompress import gunzip
from bunko.sources.web.fetch import SITEMAP_TYPES
from bunko.sources.web.visit import FORBIDDEN_REASON, Visitor

_log = logging.getLogger("bunko.web")

# The protocol limits one file to 50,000 URLs and 50 MB; a crawl needs far fewer.
_MAX_FILES = 20
_MAX_BYTES = 20_000_000
_MAX_URLS = 50_000
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")

FetchBytes = Callable[[str], bytes]
OnError = Callable[[str, BunkoError], None]


def site_urls(visitor: Visitor, root: str, on_error: OnError) -> list[str]:
    """Return the URLs in the sitemaps of a site and its llms.txt, which are fetched as politely as its pages."""
    root_target = visitor.guard.target(root)

    def fetch(url: str) -> bytes:
        target = visitor.guard.link_target(root_target, url)
        visitor.check_url(str(target))
        if not visitor.robots.allows(str(target)):
            raise SourceError(FORBIDDEN_REASON)
        visitor.wait_for_host(target)
        return visitor.fetcher.fetch(str(target), accept=(*SITEMAP_TYPES, "text/markdown")).content

    try:
        visitor.check_url(root)
    except BunkoError:
        return []  # reported when the page itself is visited; until then not even robots.txt is fetched
    llms_txt = f"{root_target.origin}/llms.txt"
    sitemaps = list(visitor.robots.sitemaps(root)) or [f"{root_target.origin}/sitemap.xml"]
    urls = list(sitemap_urls(fetch, sitemaps, on_error))
    try:
        urls += llms_txt_urls(fetch, llms_txt)
    except SourceError as error:
        _log.debug("%s: %s", llms_txt, error.message)  # few sites have an llms.txt
    return urls


def sitemap_urls(fetch: FetchBytes, sitemaps: list[str], on_error: OnError) -> Iterator[str]:
    """Return the URLs in sitemaps and in the sitemaps they link to; `on_error` is called for each that fails."""
    queue, queued = deque(sitemaps), set(sitemaps)
    file_count = url_count = 0
    while queue and file_count < _MAX_FILES:
        sitemap = queue.popleft()
        file_count += 1
        try:
            child_sitemaps, page_urls = _parse_sitemap(fetch(sitemap), sitemap)
        except SourceError as error:
            on_error(sitemap, error)
            continue
        for child in child_sitemaps:
            if child not in queued:
                queued.add(child)
                queue.append(child)
        for url in page_urls:
            yield url
            url_count += 1
            if url_count >= _MAX_URLS:
                return


def llms_txt_urls(fetch: FetchBytes, url: str) -> list[str]:
    """Return the URLs in an llms.txt; raise SourceError if it cannot be fetched."""
    text = fetch(url).decode("utf-8", "replace")
    return _absolute_urls(url, _LINK.findall(text)[:_MAX_URLS])


def _parse_sitemap(data: bytes, url: str) -> tuple[list[str], list[str]]:
    """Return the URLs of sitemaps and of pages in a sitemap."""
    if data.startswith(b"\x1f\x8b"):
        data = gunzip(data, _MAX_BYTES)
    # Decoded here, never as the file declares: otherwise declarations could hide from the checks below.
    text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    if not text[:1000].lstrip().startswith("<"):
        return [], [line for line in text.split()[:_MAX_URLS] if line.startswith(("http://", "https://"))]
    # Entities could expand a few bytes to gigabytes, and no sitemap has any. NUL makes the parser guess UTF-16.
    if "<!DOCTYPE" in text or "<!ENTITY" in text or "\0" in text:
        raise SourceError("is not a plain sitemap: it declares entities, or its encoding is unknown")
    try:
        kind, locations = _parse_xml(text.lstrip())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SourceError(f"is not a sitemap: {error}") from error
    if kind not in ("urlset", "sitemapindex"):
        raise SourceError("is not a sitemap")
    urls = _absolute_urls(url, locations)
    return (urls, []) if kind == "sitemapindex" else ([], urls)


def _parse_xml(text: str) -> tuple[str, list[str]]:
    """Return the name of the root element and the URLs of its entries; entries are freed as they are read."""
    root, depth, urls = None, 0, list[str]()
    for event, element in ElementTree.iterparse(io.StringIO(text), events=("start", "end")):
        if event == "start":
            root = element if root is None else root
            depth += 1
            continue
        depth -= 1
        # Only the URL of the entry itself: images and videos in it have their own loc.
        if depth == 2 and _local_name(element.tag) == "loc" and element.text:
            urls.append(element.text.strip())
        if depth == 1 and root is not None:
            root.clear()
        if len(urls) >= _MAX_URLS:
            break
    return "" if root is None else _local_name(root.tag), urls


def _absolute_urls(base: str, urls: Sequence[str]) -> list[str]:
    """Return absolute URLs, without invalid ones."""
    absolute = []
    for url in urls:
        with suppress(ValueError):
            absolute.append(urljoin(base, url))
    return absolute


def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
