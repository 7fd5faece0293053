"""What the documents of a search have in common, counted, as links that narrow it; and the filters it has already."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bunko.interfaces.page.query import PageQuery
from bunko.interfaces.text import single_line
from bunko.search.passages import display_label
from bunko.search.request import MAX_HITS
from bunko.search.selection import hit_language
from bunko.text.readable import file_of

if TYPE_CHECKING:
    from bunko.library.access import LibraryAccess
    from bunko.types import Hit

# Documents that are counted: it takes about 50 ms in a library of 24,000 passages.
MAX_DOCUMENTS = 500
_MAX_VALUES = 8  # of one kind, so that all kinds are in view
# A folder and the end of a name, as the links here write them: guide/**, *.pdf, guide/**/*.pdf
_PATH = re.compile(r"(?:(?P<folder>(?:[^*?\[]|\[[*?\[]\])+)/\*\*)?(?:(?:(?<=.)/)?\*(?P<suffix>\.\w+))?")
_ESCAPED = re.compile(r"\[([*?\[])\]")
_SUFFIX = re.compile(r"[^/.](?P<suffix>\.\w{1,10})\Z")
# What a link that changes the filters forgets: the place in the results, and what is open beside them.
_FORGOTTEN: Mapping[str, Any] = {"cursor": "", "open": "", "hit": "", "at": 0, "why": 0}


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value that some of the documents have."""

    label: str
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one kind: `tool`, `folder`, `kind`, `language`, `year` or `tag`."""

    name: str
    values: list[FacetValue]


@dataclass(frozen=True, slots=True)
class Facets:
    """How many documents a search finds, and what they have in common."""

    count: int
    is_cut: bool  # there may be more documents than were counted
    facets: list[Facet]


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """A filter of a search, and the address of the search without it."""

    name: str
    label: str
    address: str


def count_facets(library: LibraryAccess, query: PageQuery) -> Facets:
    """Return what the best documents of a search have in common."""
    # All passages that a search returns at most; listed without words, each document has one.
    limit = MAX_HITS if query.q.strip() else MAX_DOCUMENTS + 1
    request = replace(
        query.page_request(explain=False), top_k=limit, per_document=None, cursor="", rerank=False,
        refresh=False,  # the results come first
    )  # fmt: skip
    answer = library.readable.searches.answer(request)
    by_document: dict[tuple[str, str], Hit] = {}
    for hit in answer.hits:
        by_document.setdefault((hit.tool, hit.uri), hit)
    # How many passages in other languages were passed over is not known, except where all can be ranked.
    may_have_passed_over = bool(request.language) and answer.total_chunks > MAX_HITS
    is_cut = len(by_document) > MAX_DOCUMENTS or len(answer.hits) >= MAX_HITS or may_have_passed_over
    hits = list(by_document.values())[:MAX_DOCUMENTS]
    facets = []
    for name, values in _values(hits, query).items():
        counts = Counter(filter(None, values))
        if all(count == len(hits) for count in counts.values()):
            continue  # it narrows nothing
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_VALUES]
        if name == "year":
            best.sort(reverse=True)
        facets.append(
            Facet(
                name, [FacetValue(_label(name, value), count, _narrowed(query, name, value)) for value, count in best]
            )
        )
    return Facets(len(hits), is_cut, facets)


def active_filters(query: PageQuery) -> list[ActiveFilter]:
    """Return the filters of a search, each to be removed alone."""
    folder, suffix = _parse_path(query.path) or ("", "")
    removals: list[tuple[str, str, dict[str, Any]]] = [
        ("tool", tool, {"tool": [other for other in query.tool if other != tool]}) for tool in query.tool
    ]
    if folder:
        removals.append(("folder", folder, {"path": _join_path("", suffix)}))
    if suffix:
        removals.append(("kind", suffix, {"path": _join_path(folder, "")}))
    if query.path and not (folder or suffix):
        removals.append(("path", query.path, {"path": ""}))
    if query.search_language:
        removals.append(("language", query.language, {"language": ""}))
    if query.since and query.since == query.until:
        removals.append(("date", query.since, {"since": "", "until": ""}))
    else:
        removals += [(name, value, {name: ""}) for name in ("since", "until") if (value := getattr(query, name))]
    removals += [("tag", tag, {"tag": [other for other in query.tag if other != tag]}) for tag in query.tag]
    return [
        ActiveFilter(name, _label(name, value), query.address(**{**_FORGOTTEN, **changes}))
        for name, value, changes in removals
    ]


def _values(hits: Sequence[Hit], query: PageQuery) -> dict[str, Iterable[str]]:
    """Return the values of all documents by the kind of value; empty ones say nothing."""
    path = _parse_path(query.path)
    return {
        "tool": (hit.tool for hit in hits),
        "folder": (_subfolder(hit.uri, path[0]) for hit in hits) if path else (),
        "kind": (_suffix(hit.uri) for hit in hits) if path else (),
        "language": map(hit_language, hits) if query.q.strip() else (),
        "year": (hit.date[:4] for hit in hits),
        "tag": (tag for hit in hits for tag in hit.tags if tag not in query.tag),
    }


def _narrowed(query: PageQuery, name: str, value: str) -> str:
    """Return the address of a search with one more filter."""
    changes: dict[str, Any] = {name: value}
    if name in ("folder", "kind"):
        folder, suffix = _parse_path(query.path) or ("", "")
        is_folder = name == "folder"
        changes = {
            "path": _join_path(f"{folder}/{value}".lstrip("/"), suffix) if is_folder else _join_path(folder, value)
        }
    elif name == "year":
        changes = {"since": value, "until": value}
    elif name == "tool":
        changes = {"tool": [value]}
    elif name == "tag":
        changes = {"tag": [*query.tag, value]}
    return query.address(**{**_FORGOTTEN, **changes})


def _label(name: str, value: str) -> str:
    return f"#{display_label(value)}" if name == "tag" else single_line(value)


def _parse_path(path: str) -> tuple[str, str] | None:
    """Return the folder and the end of the names that a pattern of these links stands for; None for other patterns."""
    match = _PATH.fullmatch(path)
    return (_ESCAPED.sub(r"\1", match["folder"] or ""), match["suffix"] or "") if match else None


def _join_path(folder: str, suffix: str) -> str:
    """Return the pattern of a folder and of an end of names."""
    return "/".join(filter(None, [f"{glob.escape(folder)}/**" if folder else "", f"*{suffix}" if suffix else ""]))


def _subfolder(uri: str, folder: str) -> str:
    """Return the folder below another one that a document is in, or the site of a web page; empty if it is in none."""
    rest = file_of(uri).removeprefix(f"{folder}/" if folder else "")
    scheme, separator, rest = rest.rpartition("://")
    first, slash, _ = rest.partition("/")
    return f"{scheme}{separator}{first}" if slash else ""


def _suffix(uri: str) -> str:
    """Return the end of a file's name; entries of files and web pages have none."""
    match = _SUFFIX.search(uri)
    is_file = file_of(uri) == uri and "#" not in uri.rpartition("/")[2] and "://" not in uri
    return match["suffix"] if match and is_file else ""
