"""A parsed page comes in; what it says about itself goes out: title, date, language, address, links."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from bunko.readers.html.blocks import line
from bunko.readers.html.tree import Node, Tree, text_of
from bunko.text.dates import iso
from bunko.text.hidden_chars import clean
from bunko.text.language import language

_LONGEST_TITLE = 300
_LONGEST_STATED = 2000  # characters of a title that are looked at
_LONGEST_ADDRESS = 2048
_MOST_LINKS = 10_000
_SEPARATOR = re.compile(r"\s+[|｜\-–—―»›«:：・/]\s+|\s*[|｜]\s*")
_BAR = re.compile(r"\s*[|｜]\s*")
_PUBLISHED = re.compile(r'"datePublished"\s*:\s*"([^"\\]{4,40})"')
_DATED_CLASS = re.compile(r"(?i)publish|posted|entry-date|post-date|date")
_META_DATES = (
    "article:published_time", "og:article:published_time", "datepublished", "date", "pubdate", "publishdate", "dc.date",
    "dc.date.issued", "dcterms.issued", "dcterms.date", "dcterms.created", "cxenseparse:recs:publishtime",
)  # fmt: skip
_MOST_DATA = 300_000  # characters of JSON-LD that are looked at
_SKIPPED = ("#", "javascript:", "mailto:", "tel:", "data:", "about:", "blob:")


class Head:
    """What the elements of a page's head say, by name; the first of a name counts, but wishes to robots add up."""

    def __init__(self, document: Any) -> None:
        self.metas: dict[str, str] = {}
        self.base = self.canonical = self.title = self.data = ""
        for node in document.css("meta, base, link, title, script"):
            tag, attributes = node.tag, node.attributes
            if tag == "meta":
                name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
                name = name or attributes.get("http-equiv")
                content = attributes.get("content")
                if name and content:
                    name = name.strip().lower()
                    if name == "robots" and len(self.metas.get(name, " " * _LONGEST_STATED)) < _LONGEST_STATED:
                        self.metas[name] += f", {content[:_LONGEST_STATED]}"
                    self.metas.setdefault(name, content.strip())
            elif tag == "base":
                self.base = self.base or (attributes.get("href") or "").strip()
            elif tag == "link":
                if "canonical" in (attributes.get("rel") or "").lower().split():
                    self.canonical = self.canonical or (attributes.get("href") or "").strip()
            elif tag == "title":
                # The drawings in a page have titles, too.
                if not self.title and node.parent is not None and node.parent.tag in ("head", "body", "html"):
                    self.title = _tidy(node.text(deep=True) or "")[:_LONGEST_STATED]
            elif (attributes.get("type") or "").lower() == "application/ld+json" and len(self.data) < _MOST_DATA:
                self.data += (node.text(deep=True) or "")[:_MOST_DATA]


def title(head: Head, page: Tree, region: Node) -> tuple[str, bool]:
    """Return the title, and whether it is a heading that stands outside of the region.

    The heading of the text says it best; the title of the window, without the name of the site, comes next.
    """
    site = (head.metas.get("og:site_name") or head.metas.get("application-name") or "")[:_LONGEST_STATED]
    stated = (head.metas.get("og:title") or head.title)[:_LONGEST_STATED]
    shown = [node for node in page.headings if not node.boilerplate]
    # The name of the site stands last; what stands between is a heading more often.
    names = {site.casefold(), *(part.casefold() for part in _SEPARATOR.split(head.title)[1:][-1:])}
    for node in sorted(shown, key=lambda node: not region.holds(node)):
        text = line(node, readings=False)[:_LONGEST_TITLE]
        # A logo is a heading on many a page.
        if text and not (text.casefold() in names and _without_site(stated, text, "") != text):
            return text, not region.holds(node)
    # The heading of the page's header is the name of the site, unless the window bears it as well.
    for node in page.headings:
        text = line(node, readings=False)[:_LONGEST_TITLE] if node.boilerplate else ""
        if text and (_tidy(stated).startswith(text) or not stated):
            return text, True
    heading = next((line(node, readings=False) for node in (*shown, *page.headings)), "")
    return (_without_site(stated, site or heading, heading) or heading)[:_LONGEST_TITLE], False


def date(head: Head, page: Tree, region: Node) -> str:
    """Return when the page was published, as far as it says so."""
    stated = [head.metas[name] for name in _META_DATES if name in head.metas]
    stated += _PUBLISHED.findall(head.data)[:1]
    times = page.times
    for node in times:
        if node.attributes.get("itemprop") == "datePublished" or "pubdate" in node.attributes:
            stated.append(_moment(node))
    within = [node for node in times if region.holds(node)]
    if len(within) == 1 or (within and _DATED_CLASS.search(within[0].attributes.get("class") or "")):
        stated.append(_moment(within[0]))
    return next((found for one in stated if (found := iso(one))), "")


def spoken(document: Any, head: Head, text: str) -> str:
    """Return the language as a two-letter code; a template's lang="en" does not make Japanese text English."""
    root = document.css_first("html")
    stated = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    stated = (stated or head.metas.get("content-language", "")).strip().lower().replace("_", "-").partition("-")[0]
    found = language(text[:20_000])
    if stated == "en" and found == "ja":
        return found
    return stated if re.fullmatch(r"[a-z]{2,3}", stated) else found


def noindex(head: Head) -> bool:
    """Say whether the page asks not to be indexed."""
    asked = {one.strip().lower() for one in head.metas.get("robots", "").split(",")}
    return not asked.isdisjoint(("noindex", "none"))


def address(url: str, base: str) -> str:
    """Return an absolute address without its fragment; nothing if it does not lead to a web page."""
    try:
        found = urldefrag(urljoin(base, url)).url
        parts = urlsplit(found)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or len(found) > _LONGEST_ADDRESS:
        return ""
    return found


def links(document: Any, base: str) -> tuple[str, ...]:
    """Return where the links of the whole page lead, in order, each once; those marked nofollow too."""
    written: dict[str, None] = {}
    for node in document.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        if href and not href.lower().startswith(_SKIPPED):
            written[clean(href).replace("\n", "").replace("\t", "").replace("\r", "")] = None
            if len(written) >= _MOST_LINKS:
                break
    return tuple(dict.fromkeys(found for href in written if (found := address(href, base))))


def _without_site(stated: str, site: str, heading: str) -> str:
    """Return the title of a window without the name of its site before or behind it."""
    stated = _tidy(stated)
    if site:
        for separator in _SEPARATOR.finditer(stated):
            before, after = stated[: separator.start()], stated[separator.end() :]
            if after.casefold() == site.casefold() and before:
                return before
            if before.casefold() == site.casefold() and after:
                return after
    if heading and stated.startswith(heading):
        return heading
    bars = [match.start() for match in _BAR.finditer(stated)]
    return stated[: bars[-1]] if bars and bars[-1] else stated


def _moment(node: Node) -> str:
    return (node.attributes.get("datetime") or text_of(node)).strip()


def _tidy(text: str) -> str:
    return " ".join(clean(text).split())
