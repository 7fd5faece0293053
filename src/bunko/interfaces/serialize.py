"""Declare the JSON of pages of results, and write it and that of import reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from math import floor
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from bunko.interfaces.fields import Fields, of
from bunko.interfaces.text import UNTRUSTED_NOTE, single_line
from bunko.library.tools.catalog import ADDRESS_SCHEME
from bunko.search.passages import PARTIAL_EXTRACTS, display_label, snippet_terms
from bunko.text.snippets import highlight_ranges
from bunko.types import Explanation, Report

if TYPE_CHECKING:
    from bunko.library.searching.page import Page
    from bunko.search.paging import PageItem

# A long query may match many terms, and a document may have any number of tags; a model needs this many.
MAX_TERMS = 8
MAX_TAGS = 20
WORDING_CHARS = 30  # for a model, which has written it
_UNITS = 10_000  # scores are shown with four decimals
_CONCISE_FIELDS = ("note", "rewritten", "next_cursor", "summary", "notices")
_NOT_LETTERS = re.compile(r"[\W_]+")


def round_score(value: float | None) -> float | None:
    """Return a score with four decimals, enough to tell hits apart."""
    return None if value is None else round(value, 4)


class ArmScoreFields(Fields):
    """The score and rank that words, meaning or a reranker gave a hit."""

    score: float | None = of("score", round_score)
    rank: int | None


class Expansion(Fields):
    """A further word that was searched for."""

    kind: str = of(itemgetter(0))
    term: str = of(itemgetter(1))


class ScorePartFields(Fields):
    """What words or meaning add to a score: value × weight are its points."""

    arm: str
    score: float | None = of("score", round_score)
    rank: int | None
    value: float | None = of("value", round_score)
    weight: float | None = of("weight", round_score)
    points: float | None


class TermScoreFields(Fields):
    """What one term adds to the score by words."""

    term: str
    kind: str = of(lambda term: term.role or "word")
    score: float | None
    fields: list[str]


class NearestSentenceFields(Fields):
    """A sentence and its cosine with the query."""

    text: str = of("nearest_sentence")
    score: float | None = of("sentence_score", round_score)


class NearWordFields(Fields):
    """A word of the query and the nearest one of the passage."""

    word: str
    near: str
    cosine: float = of("cosine", round_score)


class WordingFields(Fields):
    """What the query, or another wording of it, adds to the score."""

    kind: Literal["query", "also", "passage"]
    text: str
    score: float | None = of("score", round_score)
    rank: int | None
    weight: float = of("weight", round_score)
    added: float


class ReasonFields(Fields):
    """What a hit was found by."""

    lane: str
    terms: list[str]
    expansions: list[Expansion]
    bm25: ArmScoreFields | None
    vector: ArmScoreFields | None
    reranker: ArmScoreFields = of(optional=True)  # which decided the order; the score is that of the ranking before it
    wordings: list[WordingFields] = of(optional=True)  # if other wordings were searched; they add up to the score


class ExplanationFields(ReasonFields):
    """Why a hit was found; the points of its parts add up to its score, or to that by the wording that found it."""

    fusion: str
    parts: list[ScorePartFields]
    term_scores: list[TermScoreFields]
    best_sentence: str
    # Or heading, by vectors; None without them.
    nearest_sentence: NearestSentenceFields | None = of(lambda hit: None if hit.sentence_score is None else hit)
    near_words: list[NearWordFields]


class LeftOut(Fields):
    """How many characters before and after a passage were left out."""

    before: int = of("chars_before")
    after: int = of("chars_after")


class ResultFields(Fields):
    """A passage that was found."""

    file_path: str = of("passage.hit.uri")
    heading: str
    content: str = of("text")
    score: float | None = of("passage.hit.score", round_score)
    chunk_index: int = of("passage.label.chunk_index")
    heading_path: list[str] = of("passage.label.heading_path")
    citation: str = of("passage.citation")
    line_start: int = of("passage.first_line")
    line_end: int = of("passage.last_line")
    hash: str = of("passage.hash")
    uri: str
    tool: str
    author: str = of("passage.label.author", optional=True)  # of a memo
    trust: str = of("passage.hit.trust", optional=True)
    fetched_at: str = of(optional=True)
    place: str = of("passage.place", optional=True)
    more_in_document: int = of(optional=True)
    truncated: bool = of(lambda item: not (item.has_start and item.has_end), optional=True)
    char_start: int = of("passage.start")
    char_end: int = of("passage.end")
    title: str = of("passage.hit.title")
    date: str = of("passage.hit.date")
    tags: list[str] = of("passage.hit.tags")
    content_hash: str = of("passage.hit.content_hash")
    vector_distance: float | None = of("passage.hit.vector_distance", round_score)
    bm25_score: float | None = of("passage.hit.bm25_score", round_score)
    combined_score: float | None = of("passage.hit.combined_score", round_score)
    reranker_score: float | None = of("passage.hit.reranker_score", round_score, optional=True)  # decided the order
    explain: ExplanationFields = of(optional=True)
    left_out: LeftOut = of(optional=True)
    marks: list[tuple[int, int]] = of(optional=True)  # where the words of the query are in the content


class FreshnessFields(Fields):
    """Which state of the documents was searched."""

    generation: int
    checked_at: str
    missing: int = of("pending_changes")


class SearchReply(Fields):
    """A page of results."""

    results: list[ResultFields]
    total_chunks: int
    query: str
    mode: str
    truncated: bool
    freshness: FreshnessFields
    note: str = of(lambda _: UNTRUSTED_NOTE)
    reranker: str = of(optional=True)  # the model that put the results in order
    rewritten: str = of("rewritten_query", optional=True)
    next_cursor: str = of(optional=True)
    notices: list[str] = of(optional=True)


class TagCount(Fields):
    """How many memos have a tag."""

    tag: str = of(itemgetter(0))
    count: int = of(itemgetter(1))


class SentenceOfSummary(Fields):
    """A sentence with the document that it is from."""

    text: str
    file_path: str = of("uri")
    title: str
    date: str


class SummaryFields(Fields):
    """A summary of hits; one that a model wrote has its text and the name of the model."""

    count: int
    since: str
    until: str
    tags: list[TagCount]
    phrases: list[str]
    sentences: list[SentenceOfSummary]
    text: str = of(optional=True)
    model: str = of(lambda summary: summary.text and summary.model, optional=True)


class SummarizedReply(SearchReply):
    """A page of results with their summary, which the API has no parameter for."""

    summary: SummaryFields = of(optional=True)
    notices: list[str] = of(optional=True)


def page_to_dict(page: Page, *, for_model: bool = False) -> dict[str, Any]:
    """Return a page of search results as a dictionary with all that is known.

    With `for_model`, labels are short and names are on one line without hidden characters, so that no document can
    fake other parts of a reply.
    """
    results = [_result_to_dict(page, item, for_model=for_model) for item in page.results]
    if page.extract == "snippet":
        query_terms = snippet_terms(page.searched_query)
        for result in results:
            result["marks"] = highlight_ranges(result["content"], query_terms)
    return SummarizedReply.fill(page, results=results)


def page_to_concise_dict(page: Page, *, show_tools: bool) -> dict[str, Any]:
    """Return a page as a dictionary with what a model needs to answer, to cite and to read on, each once."""
    results = [_concise_result(page, item, show_tool=show_tools) for item in page.results]
    result: dict[str, Any] = {"query": page.query, "total_chunks": page.total_chunks, "results": results}
    result |= {} if show_tools else tool_of_results(page)
    full = SummarizedReply.fill(page, results=[])
    return result | {name: full[name] for name in _CONCISE_FIELDS if name in full}


def tool_of_results(page: Page) -> dict[str, str]:
    """Return the tool that all results are from, by the name that assistants see; nothing if there is no other."""
    names = {page.assistant_names[item.passage.hit.tool] for item in page.results}
    return {"tool": names.pop()} if len(names) == 1 and len(page.assistant_names) > 1 else {}


def resource_address(assistant_name: str, uri: str) -> str:
    """Return the address of a document as an MCP resource, by the name that assistants see its tool by."""
    return f"{ADDRESS_SCHEME}://{assistant_name}/{_quote(uri)}"


def readable_address(assistant_name: str, uri: str) -> str:
    """Return the same address with the letters of all languages as they are: encoded, each would cost many tokens."""
    path = _quote(uri) if uri.isascii() else "".join(char if char.isalnum() else quote(char) for char in uri)
    return f"{ADDRESS_SCHEME}://{assistant_name}/{path}"


# A reply has most addresses twice, and the next one names some of the same documents.
_quote = lru_cache(maxsize=1024)(quote)


def _concise_result(page: Page, item: PageItem, *, show_tool: bool) -> dict[str, Any]:
    passage, hit = item.passage, item.passage.hit
    heading = display_label(page.heading_of(passage))
    result: dict[str, Any] = {
        "file_path": single_line(hit.uri),
        "heading": heading,
        "content": item.text,
        "score": round_score(hit.score),
        "chunk_index": passage.label.chunk_index,
        "citation": single_line(passage.citation),
        "hash": passage.hash,
    }
    # Most paths say what a text without a heading is about, perhaps with other signs between its words.
    if (
        not heading
        and (title := display_label(hit.title))
        and _NOT_LETTERS.sub("", title.lower()) not in _NOT_LETTERS.sub("", f"{hit.uri} {item.text}".lower())
    ):
        result["title"] = title
    # A date with a time is that of the file, which says little.
    if hit.date and "T" not in hit.date and hit.date not in hit.uri:
        result["date"] = hit.date
    result |= {"author": display_label(passage.label.author)} if passage.label.author else {}
    result |= {"place": single_line(passage.place)} if passage.place else {}
    result |= {"tool": page.assistant_names[hit.tool]} if show_tool else {}
    result |= {"trust": hit.trust, "fetched_at": hit.fetched_at} if hit.trust else {}
    result |= {"more_in_document": item.more_in_document} if item.more_in_document else {}
    return result | ({} if item.has_start and item.has_end else {"truncated": True})


def _result_to_dict(page: Page, item: PageItem, *, for_model: bool) -> dict[str, Any]:
    passage, hit = item.passage, item.passage.hit
    max_terms = MAX_TERMS if for_model else None
    result = ResultFields.fill(
        item,
        heading=page.heading_of(passage),
        uri=readable_address(page.assistant_names[hit.tool], hit.uri),
        tool=page.assistant_names[hit.tool] if for_model else hit.tool,
        fetched_at=hit.fetched_at if hit.trust else None,
        explain=hit.explanation and explanation_to_dict(hit.explanation, hit.score, max_terms=max_terms),
        left_out=LeftOut.fill(passage) if page.extract in PARTIAL_EXTRACTS else None,
        marks=None,
    )
    if for_model:
        result |= {name: single_line(result[name]) for name in ("file_path", "citation", "place") if name in result}
        result |= {name: display_label(result[name]) for name in ("heading", "author", "title") if name in result}
        result["heading_path"] = [display_label(heading) for heading in passage.label.heading_path]
        result["tags"] = [display_label(tag) for tag in hit.tags[:MAX_TAGS]]
    return result


def explanation_to_dict(explanation: Explanation, score: float, *, max_terms: int | None = None) -> dict[str, Any]:
    """Return the explanation of a score as a dictionary, with at most `max_terms` terms and expansions.

    Without a limit it has the arithmetic too: its points add up to the score, and those of its terms to that of bm25.
    """
    added = round_to_sum([wording.added for wording in explanation.wordings], score)
    wordings = [
        WordingFields.fill(wording, added=rounded) for wording, rounded in zip(explanation.wordings, added, strict=True)
    ]
    if max_terms is not None:
        wordings = [wording | {"text": wording["text"][:WORDING_CHARS]} for wording in wordings]
        shown = replace(explanation, terms=explanation.terms[:max_terms], expansions=explanation.expansions[:max_terms])
        return ReasonFields.fill(shown, wordings=wordings or None)
    points = round_to_sum([part.points for part in explanation.parts], explanation.explained_score(score))
    scores = round_to_sum(
        [term.score for term in explanation.term_scores], explanation.bm25.score if explanation.bm25 else 0.0
    )
    parts, terms = zip(explanation.parts, points, strict=True), zip(explanation.term_scores, scores, strict=True)
    return ExplanationFields.fill(
        explanation,
        wordings=wordings or None,
        parts=[ScorePartFields.fill(part, points=rounded) for part, rounded in parts],
        term_scores=[TermScoreFields.fill(term, score=rounded) for term, rounded in terms],
    )


def report_to_dict(report: Report) -> dict[str, Any]:
    """Return an import report as a dictionary."""
    result: dict[str, Any] = {
        "added": report.added,
        "updated": report.updated,
        "deleted": report.deleted,
        "unchanged": report.unchanged,
        "total_chunks": report.total_chunks,
        "moved": report.moved,
        "embedded": report.embedded,
        "interrupted": report.interrupted,
        "problems": [
            {"file_path": problem.uri, "reason": problem.reason} | ({"tool": problem.tool} if problem.tool else {})
            for problem in report.problems
        ],
    }
    if report.skipped_folders:
        result["skipped_folders"] = report.skipped_folders
    if report.failures:
        result["failures"] = [asdict(failure) for failure in report.failures]
    if report.notices:
        result["notices"] = report.notices
    return result


def round_to_sum(values: Sequence[float], total: float) -> list[float]:
    """Return values with four decimals that add up to their rounded total.

    Those that lose most by rounding down are rounded up, so that a reader who adds them gets the score that is shown.
    """
    units = [value * _UNITS for value in values]
    rounded = [floor(unit) for unit in units]
    missing = round(round(total, 4) * _UNITS) - sum(rounded)
    order = sorted(range(len(units)), key=lambda i: rounded[i] - units[i])
    for step in range(abs(missing) if order else 0):
        rounded[order[step % len(order)]] += 1 if missing > 0 else -1
    return [unit / _UNITS for unit in rounded]
