"""Format a page of search results for pipes and other programs: text, paths, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.interfaces.cli.terminal.printing import escape_controls, replace_controls
from bunko.interfaces.result_fields import (
    Tools,
    absolute_path,
    body_text,
    explanation_text,
    heading_labels,
    is_memo,
    link,
    location,
    memo_label,
)
from bunko.interfaces.serialize import page_to_dict, round_score
from bunko.messages import translate
from bunko.search.nearest_sentence import nearest_sentence
from bunko.search.passages import snippet_terms
from bunko.text.readable import excerpt_text, readable
from bunko.text.snippets import snippet_range

if TYPE_CHECKING:
    from bunko.library.searching.page import Page
    from bunko.search.paging import PageItem
    from bunko.types.tool_options import Extract

CSV_COLUMNS = ("rank", "score", "tool", "path", "location", "title", "date", "tags", "heading", "text")
# A spreadsheet runs a cell that begins with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>#|])")
# As much of a text as a line of a list should have.
_LIST_CHARS = 150


def to_text(page: Page, *, tools: Tools | None = None, show_tool_names: bool = False) -> str:
    """Return a page of results as text for a pipe, with the names of tools if there are several."""
    tools = tools or {}
    if not page.results:
        return translate(f"No results among {page.total_chunks} chunks.")
    # Before terms are marked: **these** are no marks of the document.
    page = replace(page, results=[item._replace(text=_own_text(item, page.extract, tools)) for item in page.results])
    blocks = []
    for rank, (item, text) in enumerate(zip(page.results, page.display_texts(), strict=True), 1):
        hit = item.passage.hit
        reranker = f"  reranker={hit.reranker_score:.4f}" if hit.reranker_score is not None else ""
        tool = f"  tool={escape_controls(hit.tool)}" if show_tool_names else ""
        lines = [f"[{rank}] {escape_controls(location(item.passage))}  score={hit.score:.4f}{reranker}{tool}"]
        if hit.trust:
            lines.append(f"{translate('trust')}: {translate(f'{hit.trust}, fetched {hit.fetched_at}')}")
        if is_memo(hit, tools) and (memo := memo_label(item.passage)):
            lines.append(escape_controls(memo))
        if labels := heading_labels(item.passage):
            lines.append(escape_controls(" > ".join(labels)))
        if hit.explanation is not None:
            lines.append(f"{translate('why')}: {explanation_text(hit.explanation, hit.score)}")
        lines.append(replace_controls(text))
        if item.more_in_document:
            more = translate(f"{item.more_in_document} more in this document")
            lines.append(f"({more})")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _own_text(item: PageItem, extract: Extract | None, tools: Tools) -> str:
    """Return a text without what the lines above it show: as people read it, a whole entry as it is written."""
    hit = item.passage.hit
    text = body_text(item, titles=(hit.title,) if is_memo(hit, tools) else ())
    return text if extract in ("entry", "full") else readable(text, hit.uri)


def to_json(page: Page, tools: Tools) -> dict[str, object]:
    """Return a page of results as an object, with the absolute paths of files."""
    result = page_to_dict(page)
    for item, fields in zip(page.results, result["results"], strict=True):
        if path := absolute_path(item.passage.hit, tools):
            fields["absolute_path"] = path
    return result


def paths(page: Page, tools: Tools) -> list[str]:
    """Return the path of each document, or its URL, best first."""
    return list(dict.fromkeys(_path(item, tools) for item in page.results))


def to_csv(page: Page, tools: Tools) -> str:
    """Return a page of results as CSV with a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for rank, item in enumerate(page.results, 1):
        hit = item.passage.hit
        texts = (
            hit.tool, _path(item, tools), location(item.passage), hit.title, hit.date, " ".join(hit.tags),
            " > ".join(heading_labels(item.passage)), body_text(item).strip(),
        )  # fmt: skip
        writer.writerow([rank, round_score(hit.score), *map(_csv_cell, texts)])
    return file.getvalue().rstrip("\n")


def to_markdown(page: Page, tools: Tools) -> str:
    """Return a page of results as a Markdown list of links, each with the part of its text that matches."""
    terms = snippet_terms(page.searched_query)
    lines = []
    for rank, item in enumerate(page.results, 1):
        hit = item.passage.hit
        label = " › ".join(heading_labels(item.passage)) or hit.title or hit.uri
        label = f"{hit.title} ({hit.date[:10]})" if is_memo(hit, tools) and hit.title and hit.date else label
        address = link(hit, tools).replace("(", "%28").replace(")", "%29")
        name = f"[{_escape(label)}]({address})" if address else _escape(label)
        text = " ".join(excerpt_text(body_text(item, titles=(hit.title,)), hit.uri).split())
        sentence = excerpt_text(nearest_sentence(hit), hit.uri)
        start, end = snippet_range(text, terms, _LIST_CHARS, sentence=sentence)
        snippet = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        lines.append(f"{rank}. {name} {_escape(location(item.passage))}: {_escape(snippet)}")
    return "\n".join(lines)


def _path(item: PageItem, tools: Tools) -> str:
    hit = item.passage.hit
    # A path with a line break would become two, and the second could name any file.
    return escape_controls(absolute_path(hit, tools) or hit.uri)


def _csv_cell(text: str) -> str:
    text = replace_controls(text.replace("\r\n", "\n"))
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _escape(text: str) -> str:
    return _MARKDOWN_SIGNS.sub(r"\\\1", replace_controls(" ".join(text.split())))
