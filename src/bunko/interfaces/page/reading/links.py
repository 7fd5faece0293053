"""Find where the links of a document lead: to documents of its tool, to lines of its own, or to other sites."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote, urljoin, urlsplit

from bunko.interfaces.page.query import document_address
from bunko.text.wiki_links import WikiLink

if TYPE_CHECKING:
    from bunko.interfaces.page.reading.parts import DocumentHeading
    from bunko.library.access import LibraryAccess
    from bunko.types import Tool

_PAGE_SIZE = 1000
_MAX_CACHED = 8
_MAX_HREF_CHARS = 2000
_TEXT_SUFFIXES = (".markdown", ".md", ".mdx", ".org", ".rst", ".html", ".htm", ".txt")
# The pages of a folder, which its address leads to.
_FOLDER_PAGES = ("index", "_index", "readme")
_CONTROLS = re.compile(r"[\x00-\x20\x7f]+")
_ANCHOR_MARK = re.compile(r"\{[ \t]*+#([\w:.-]{1,200})[ \t]*+\}[ \t]*+#*+[ \t]*+\Z")
_WORD = re.compile(r"[^\W_]+")
_cached_names: dict[tuple[object, ...], dict[str, list[str]]] = {}


class Link(NamedTuple):
    """Where a link leads."""

    address: str
    line: int = -1  # of the same document, counted from 0
    is_external: bool = False


@dataclass(slots=True)
class Links:
    """Resolves the links of one document."""

    library: LibraryAccess
    tool: Tool
    uri: str
    headings: Sequence[DocumentHeading]
    _documents: dict[str, list[str]] | None = None  # by the last name of their paths
    _lines: dict[str, int] | None = None  # of the headings, by what names them

    def resolve(self, href: str) -> Link | None:
        """Return where an address leads; None if it is nothing that may be followed, or no document is there."""
        href = _CONTROLS.sub("", href)[:_MAX_HREF_CHARS]
        try:
            parts = urlsplit(href)
        except ValueError:
            return None
        if parts.scheme == "file" and not parts.netloc:  # as Org writes them
            parts = parts._replace(scheme="")
        is_page = self.uri.startswith(("http://", "https://"))
        if is_page and not parts.scheme and (parts.path or parts.netloc):
            try:
                href = urljoin(self.uri, href)
                parts = urlsplit(href)
            except ValueError:
                return None
        if parts.scheme in ("http", "https"):
            if not parts.netloc:
                return None
            page = href.partition("#")[0]
            if is_page and self._has(page):
                return Link(document_address(self.tool.name, page, section=unquote(parts.fragment)))
            return Link(href, is_external=True)
        if parts.scheme == "mailto":
            return Link(href)
        if parts.scheme or parts.netloc:
            return None
        fragment = unquote(parts.fragment)
        if not parts.path:
            return self._own_section(fragment)
        uri = self._find_file(unquote(parts.path))
        return Link(document_address(self.tool.name, uri, section=fragment)) if uri else None

    def resolve_wiki(self, link: WikiLink) -> Link | None:
        """Return where a link between notes leads, by the names of their files."""
        if not link.name:
            return self._own_section(link.heading) if link.heading else None
        uri = self._find_file(link.name, is_name=True)
        return Link(document_address(self.tool.name, uri, section=link.heading)) if uri else None

    def _own_section(self, anchor: str) -> Link | None:
        if self._lines is None:
            self._lines = heading_lines(self.headings)
        line = find_heading(self._lines, anchor)
        return None if line is None else Link(document_address(self.tool.name, self.uri, section=anchor), line)

    def _has(self, uri: str) -> bool:
        return uri in self._names().get(_last_name(uri), ())

    def _find_file(self, path: str, *, is_name: bool = False) -> str:
        """Return the document at a path, which may be one of a site whose root is not known; "" if there is none."""
        is_absolute = path.startswith("/")
        folder = posixpath.dirname(self.uri)
        relative = posixpath.normpath(path.lstrip("/") if is_absolute else posixpath.join(folder, path))
        if relative.startswith(".."):
            return ""
        wanted = _path_key(relative)
        candidates = self._names().get(wanted.rpartition("/")[2], [])
        exact = [uri for uri in candidates if _path_key(uri) == wanted]
        if not exact and (is_absolute or is_name):
            # An address of a site, or a bare name: the end of a path, if only one document has it.
            end = _path_key(posixpath.normpath(path.strip("/")))
            exact = [uri for uri in candidates if f"/{_path_key(uri)}".endswith(f"/{end}")]
            if len(exact) > 1 and is_absolute:
                near = [uri for uri in exact if uri.partition("/")[0] == self.uri.partition("/")[0]]
                exact = _common(near, self.uri)
        suffix = posixpath.splitext(path)[1].lower()
        return min(
            exact,
            key=lambda uri: (uri != relative, not uri.lower().endswith(suffix), uri.count("/"), uri),
            default="",
        )

    def _names(self) -> dict[str, list[str]]:
        """Return the documents of the tool by the last name of their paths, until one changes."""
        if self._documents is not None:
            return self._documents
        key = str(self.library.paths), self.tool.id, self.library.generation()
        names = _cached_names.get(key)
        if names is None:
            names = {}
            for uri in self._uris():
                names.setdefault(_last_name(uri), []).append(uri)
            if len(_cached_names) >= _MAX_CACHED:
                _cached_names.clear()
            _cached_names[key] = names
        self._documents = names
        return names

    def _uris(self) -> Iterable[str]:
        after = ""
        while page := self.library.documents.stored.uris(self.tool.id, after=after, limit=_PAGE_SIZE):
            yield from page
            after = page[-1]


def heading_lines(headings: Iterable[DocumentHeading]) -> dict[str, int]:
    """Return the lines of headings by their own marks, with # in front, and by their words; of many, the first one."""
    lines: dict[str, int] = {}
    for heading in headings:
        if mark := _ANCHOR_MARK.search(heading.source):
            lines.setdefault(f"#{mark[1]}", heading.line)
        lines.setdefault(_words(heading.title), heading.line)
    return lines


def find_heading(lines: Mapping[str, int], anchor: str) -> int | None:
    """Return the line of the heading that an anchor names: its own mark, or its words with - between them."""
    wanted = anchor.lstrip("#*").strip()
    names = filter(None, (f"#{wanted}", _words(wanted)))
    return min((lines[name] for name in names if name in lines), default=None)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _common(uris: Sequence[str], other: str) -> list[str]:
    """Return those of some paths that share the most folders with another one, if the rest shares fewer."""
    shared = {uri: len(posixpath.commonprefix([uri.split("/"), other.split("/")])) for uri in uris}
    most = max(shared.values(), default=0)
    return [uri for uri in uris if shared[uri] == most]


def _path_key(path: str) -> str:
    """Return a path without the suffix of a text; of a folder's page, the folder."""
    key = normalize("NFC", path).casefold().rstrip("/")
    stem, suffix = posixpath.splitext(key)
    key = stem if suffix in _TEXT_SUFFIXES else key
    folder, _, name = key.rpartition("/")
    return folder if name in _FOLDER_PAGES and folder else key


def _last_name(uri: str) -> str:
    return uri if "://" in uri else _path_key(uri).rpartition("/")[2]
