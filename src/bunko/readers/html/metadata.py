"""Extract the title, date, language, URLs and links of a web page."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from bunko.readers.html.blocks import one_line
from bunko.readers.html.tree import Node, PageTree, inner_text
from bunko.text.dates import iso_date
from bunko.text.labels import remove_hidden_chars
from bunko.text.language import detect_language

_MAX_TITLE_CHARS = 300
_MAX_META_CHARS = 2000  # characters of a title that are read
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
_MAX_JSON_LD_CHARS = 300_000  # characters of JSON-LD that are read
_SKIPPED_PREFIXES = ("#", "javascript:", "mailto:", "tel:", "data:", "about:", "blob:")


class PageHead:
    """The metadata in the head of a page; the first value of a name counts, but robots directives add up."""

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
                # SVG drawings in a page have titles, too.
                if not self.title and node.parent is not None and node.parent.tag in ("head", "body", "html"):
                    self.title = _clean_line(node.text(deep=True) or "")[:_MAX_META_CHARS]
            elif (attributes.get("type") or "").lower() == "application/ld+json" and len(
                self.json_ld
            ) < _MAX_JSON_LD_CHARS:
                self.json_ld += (node.text(deep=True) or "")[:_MAX_JSON_LD_CHARS]


def page_title(head: PageHead, page: PageTree, main: Node) -> tuple[str, bool]:
    """Return the title, and whether it is a heading outside of the main element.

    The heading of the text is best; the window title without the name of the site comes next.
    """
    site_name = (head.metas.get("og:site_name") or head.metas.get("application-name") or "")[:_MAX_META_CHARS]
    stated_title = (head.metas.get("og:title") or head.title)[:_MAX_META_CHARS]
    for node in page.headings:
        text = one_line(node, keep_readings=False)[:_MAX_TITLE_CHARS] if node.is_boilerplate else ""
        if text and text == _clean_line(stated_title):  # pandoc puts the title of a document there
            return text, True
    headings = [node for node in page.headings if not node.is_boilerplate]
    # The name of the site comes last; the parts before it are more often headings.
    site_names = {site_name.casefold(), *(part.casefold() for part in _TITLE_SEPARATOR.split(head.title)[1:][-1:])}
    for node in sorted(headings, key=lambda node: not main.contains(node)):
        text = one_line(node, keep_readings=False)[:_MAX_TITLE_CHARS]
        # On many pages the logo is a heading.
        if text and not (text.casefold() in site_names and _strip_site_name(stated_title, text, "") != text):
            return text, not main.contains(node)
    # A heading in the page header is the name of the site, unless the window title begins with it.
    for node in page.headings:
        text = one_line(node, keep_readings=False)[:_MAX_TITLE_CHARS] if node.is_boilerplate else ""
        if text and (_clean_line(stated_title).startswith(text) or not stated_title):
            return text, True
    heading = next((one_line(node, keep_readings=False) for node in (*headings, *page.headings)), "")
    return (_strip_site_name(stated_title, site_name or heading, heading) or heading)[:_MAX_TITLE_CHARS], False


def publication_date(head: PageHead, page: PageTree, main: Node) -> str:
    """Return the date of publication, or "" if the page does not say."""
    candidates = [head.metas[name] for name in _DATE_META_NAMES if name in head.metas]
    candidates += _JSON_LD_PUBLISHED.findall(head.json_ld)[:1]
    times = page.times
    for node in times:
        if node.attributes.get("itemprop") == "datePublished" or "pubdate" in node.attributes:
            candidates.append(_time_text(node))
    main_times = [node for node in times if main.contains(node)]
    if len(main_times) == 1 or (main_times and _DATE_CLASS.search(main_times[0].attributes.get("class") or "")):
        candidates.append(_time_text(main_times[0]))
    return next((date for candidate in candidates if (date := iso_date(candidate))), "")


def page_language(document: Any, head: PageHead, text: str) -> str:
    """Return the language as a two-letter code; a template's lang="en" does not make Japanese text English."""
    root = document.css_first("html")
    declared = (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root is not None else ""
    declared = (declared or head.metas.get("content-language", "")).strip().lower().replace("_", "-").partition("-")[0]
    detected = detect_language(text[:20_000])
    if declared == "en" and detected == "ja":
        return detected
    return declared if re.fullmatch(r"[a-z]{2,3}", declared) else detected


def is_noindex(head: PageHead) -> bool:
    """Return whether the page asks not to be indexed."""
    directives = {directive.strip().lower() for directive in head.metas.get("robots", "").split(",")}
    return not directives.isdisjoint(("noindex", "none"))


def absolute_url(url: str, base: str) -> str:
    """Return an absolute URL without its fragment, or "" if it is not an HTTP URL."""
    try:
        absolute = urldefrag(urljoin(base, url)).url
        parts = urlsplit(absolute)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or len(absolute) > _MAX_URL_CHARS:
        return ""
    return absolute


def page_links(document: Any, base: str) -> tuple[str, ...]:
    """Return the URLs that the whole page links to, in order, without duplicates, nofollow links included."""
    hrefs: dict[str, None] = {}
    for node in document.css("a[href], area[href]"):
        href = (node.attributes.get("href") or "").strip()
        if href and not href.lower().startswith(_SKIPPED_PREFIXES):
            hrefs[remove_hidden_chars(href).replace("\n", "").replace("\t", "").replace("\r", "")] = None
            if len(hrefs) >= _MAX_LINKS:
                break
    return tuple(dict.fromkeys(absolute for href in hrefs if (absolute := absolute_url(href, base))))


def _strip_site_name(title: str, site_name: str, heading: str) -> str:
    """Return a window title without the name of the site before or after it."""
    title = _clean_line(title)
    if site_name:
        for separator in _TITLE_SEPARATOR.finditer(title):
            before, after = title[: separator.start()], title[separator.end() :]
            if after.casefold() == site_name.casefold() and before:
                return before
            if before.casefold() == site_name.casefold() and after:
                return after
    if heading and title.startswith(heading):
        return heading
    bars = [match.start() for match in _TITLE_BAR.finditer(title)]
    return title[: bars[-1]] if bars and bars[-1] else title


def _time_text(node: Node) -> str:
    return (node.attributes.get("datetime") or inner_text(node)).strip()


def _clean_line(text: str) -> str:
    return " ".join(remove_hidden_chars(text).split())
