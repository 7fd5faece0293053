"""A parsed page comes in; what it says about itself goes out: title, date, language, address, links."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from bunko.readers.html.blocks import one_line
from bunko.readers.html.tree import Node, PageTree, inner_text
from bunko.text.dates import iso_date
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.language import detect_language

_MAX_TITLE_CHARS = 300
_MAX_META_CHARS = 2000  # characters of a title that are looked at
_MAX_URL_CHARS = 2048
_MAX_LINKS = 10_000
_TITLE_SEPARATOR = re.compile(r"\s+[|｜\-–—―»›«:：・/]\s+|\s*[|｜]\s*")
_TITLE_BAR = re.compile(r"\s*[|｜]\s*")
_JSON_LD_PUBLISHED = re.compile(r'"datePublished"\s*:\s*"([^"\\]{4,40})"')
_DATE_CLASS = re.compile(r"(?i)publish|posted|entry-date|post-date|date")
_DATE_META_NAMES = (
    "article:published_time", "og:article:published_time", "datepublished", "date", "pubdate", "publishdate", "dc.date",
    "dc.date.issued", "dcterms.issued", "dcterms.date", "dcterms.created", "cxenseparse:recs:publishtime",
)  # fmt: skip
_MAX_JSON_LD_CHARS = 300_000  # characters of JSON-LD that are looked at
_SKIPPED_PREFIXES = ("#", "javascript:", "mailto:", "tel:", "data:", "about:", "blob:")


class PageHead:
    """What the elements of a page's head say, by name; the first of a name counts, but wishes to robots add up."""

    def __init__(self, document: Any) -> None:
        self.metas: dict[str, str] = {}
        self.base_url = self.canonical_url = self.title = self.json_ld = ""
        for node in document.css("meta, base, link, title, script"):
            tag, attributes = node.tag, node.attributes
            if tag == "meta":
                name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
                name = name or attributes.get("http-equiv")
                content = attributes.get("content")
                if name and content:
                    name = name.strip().lower()
                    if name == "robots" and len(self.metas.get(name, " " * _MAX_META_CHARS)) < _MAX_META_CHARS:
                        self.metas[name] += f", {content[:_MAX_META_CHARS]}"
                    self.metas.setdefault(name, content.strip())
            elif tag == "base":
                self.base_url = self.base_url or (attributes.get("href") or "").strip()
            elif tag == "link":
                if "canonical" in (attributes.get("rel") or "").lower().split():
                    self.canonical_url = self.canonical_url or (attributes.get("href") or "").strip()
            elif tag == "title":
                # The drawings in a page have titles, too.
                if not self.title and node.parent is not None and node.parent.tag in ("head", "body", "html"):
                    self.title = _clean_line(node.text(deep=True) or "")[:_MAX_META_CHARS]
            elif (attributes.get("type") or "").lower() == "application/ld+json" and len(
                self.json_ld
            ) < _MAX_JSON_LD_CHARS:
                self.json_ld += (node.text(deep=True) or "")[:_MAX_JSON_LD_CHARS]


def page_title(head: PageHead, page: PageTree, main: Node) -> tuple[str, bool]:
    """Return the title, and whether it is a heading that stands outside of the region.

    The heading of the text says it best; the title of the window, without the name of the site, comes next.
    """
    site = (head.metas.get("og:site_name") or head.metas.get("application-name") or "")[:_MAX_META_CHARS]
    stated = (head.metas.get("og:title") or head.title)[:_MAX_META_CHARS]
    shown = [node for node in page.headings if not node.is_boilerplate]
    # The name of the site stands last; what stands between is a heading more often.
    names = {site.casefold(), *(part.casefold() for part in _TITLE_SEPARATOR.split(head.title)[1:][-1:])}
    for node in sorted(shown, key=lambda node: not main.contains(node)):
        text = one_line(node, keep_readings=False)[:_MAX_TITLE_CHARS]
        # A logo is a heading on many a page.
        if text and not (text.casefold() in names and _strip_site_name(stated, text, "") != text):
            return text, not main.contains(node)
    # The heading of the page's header is the name of the site, unless the window bears it as well.
    for node in page.headings:
        text = one_line(node, keep_readings=False)[:_MAX_TITLE_CHARS] if node.is_boilerplate else ""
        if text and (_clean_line(stated).startswith(text) or not stated):
            return text, True
    heading = next((one_line(node, keep_readings=False) for node in (*shown, *page.headings)), "")
    return (_strip_site_name(stated, site or heading, heading) or heading)[:_MAX_TITLE_CHARS], False


def publication_date(head: PageHead, page: PageTree, main: Node) -> str:
    """Return when the page was published, as far as it says so."""
    stated = [head.metas[name] for name in _DATE_META_NAMES if name in head.metas]
    stated += _JSON_LD_PUBLISHED.findall(head.json_ld)[:1]
    times = page.times
    for node in times:
        if node.attributes.get("itemprop") == "datePublished" or "pubdate" in node.attributes:
            stated.append(_time_text(node))
    within = [node for node in times if main.contains(node)]
    if len(within) == 1 or (within and _DATE_CLASS.search(within[0].attributes.get("class") or "")):
        stated.append(_time_text(within[0]))
    return next((found for one in stated if (found := iso_date(one))), "")


def page_language(document: Any, head: PageHead, text: str) -> str:
    """Return the language as a two-letter code; a template's lang="en" does not make Japanese text English."""
    root = document.css_first("html")
    stated = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    stated = (stated or head.metas.get("content-language", "")).strip().lower().replace("_", "-").partition("-")[0]
    found = detect_language(text[:20_000])
    if stated == "en" and found == "ja":
        return found
    return stated if re.fullmatch(r"[a-z]{2,3}", stated) else found


def is_noindex(head: PageHead) -> bool:
    """Say whether the page asks not to be indexed."""
    asked = {one.strip().lower() for one in head.metas.get("robots", "").split(",")}
    return not asked.isdisjoint(("noindex", "none"))


def absolute_url(url: str, base: str) -> str:
    """Return an absolute address without its fragment; nothing if it does not lead to a web page."""
    try:
        found = urldefrag(urljoin(base, url)).url
        parts = urlsplit(found)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or len(found) > _MAX_URL_CHARS:
        return ""
    return found


def page_links(document: Any, base: str) -> tuple[str, ...]:
    """Return where the links of the whole page lead, in order, each once; those marked nofollow too."""
    written: dict[str, None] = {}
    for node in document.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        if href and not href.lower().startswith(_SKIPPED_PREFIXES):
            written[remove_hidden_chars(href).replace("\n", "").replace("\t", "").replace("\r", "")] = None
            if len(written) >= _MAX_LINKS:
                break
    return tuple(dict.fromkeys(found for href in written if (found := absolute_url(href, base))))


def _strip_site_name(stated: str, site: str, heading: str) -> str:
    """Return the title of a window without the name of its site before or behind it."""
    stated = _clean_line(stated)
    if site:
        for separator in _TITLE_SEPARATOR.finditer(stated):
            before, after = stated[: separator.start()], stated[separator.end() :]
            if after.casefold() == site.casefold() and before:
                return before
            if before.casefold() == site.casefold() and after:
                return after
    if heading and stated.startswith(heading):
        return heading
    bars = [match.start() for match in _TITLE_BAR.finditer(stated)]
    return stated[: bars[-1]] if bars and bars[-1] else stated


def _time_text(node: Node) -> str:
    return (node.attributes.get("datetime") or inner_text(node)).strip()


def _clean_line(text: str) -> str:
    return " ".join(remove_hidden_chars(text).split())
