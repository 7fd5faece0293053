"""Convert pages of results and reports to dictionaries for JSON output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bunko.interfaces.text import UNTRUSTED_NOTE, single_line
from bunko.library.catalog import ADDRESS_SCHEME
from bunko.search.passages import PARTIAL_EXTRACTS, display_label, snippet_terms
from bunko.text.snippets import highlight_ranges
from bunko.types import ArmScore, Explanation, Report

if TYPE_CHECKING:
    from bunko.library.page import Page
    from bunko.search.paging import PageItem
    from bunko.search.summaries import Summary

# A long query may match many terms, and a document may have any number of tags; a model needs this many.
MAX_TERMS = 8
MAX_TAGS = 20
_SENTENCE_CHARS = 60  # on a line that names many other things
_UNITS = 10_000  # scores are shown with four decimals
_NOT_LETTERS = re.compile(r"[\W_]+")


def page_to_dict(page: Page, *, for_model: bool = False) -> dict[str, Any]:
    """Return a page of search results as a dictionary with all that is known.

    With `for_model`, labels are short and names are on one line without hidden characters, so that no document can
    fake other parts of a reply.
    """
    result: dict[str, Any] = {
        "results": [_result_to_dict(page, item, for_model=for_model) for item in page.results],
        "total_chunks": page.total_chunks,
        "query": page.query,
        "mode": page.mode,
        "truncated": page.truncated,
        "freshness": {
            "generation": page.freshness.generation,
            "checked_at": page.freshness.checked_at,
            "missing": page.freshness.pending_changes,
        },
        "note": UNTRUSTED_NOTE,
    }
    if page.reranker:
        result["reranker"] = page.reranker
    _add_details(page, result["results"])
    return result | _page_extras(page)


def page_to_concise_dict(page: Page, *, show_tools: bool) -> dict[str, Any]:
    """Return a page as a dictionary with what a model needs to answer, to cite and to read on, each once.

    The order of the results is their rank, and a result's citation contains its path.
    """
    results = [_concise_result(page, item, show_tool=show_tools) for item in page.results]
    return {"results": results, "note": UNTRUSTED_NOTE} | _page_extras(page)


def _page_extras(page: Page) -> dict[str, Any]:
    result: dict[str, Any] = {"rewritten": page.rewritten_query} if page.rewritten_query else {}
    if page.next_cursor:
        result["next_cursor"] = page.next_cursor
    if page.summary is not None:
        result["summary"] = summary_to_dict(page.summary)
    if page.notices:
        result["notices"] = page.notices
    return result


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
    heading = display_label(hit.chunk.heading)
    result: dict[str, Any] = {"citation": single_line(passage.citation)}
    # Most passages contain their heading, and most paths say what a text without one is about.
    result |= {"heading": heading} if heading and heading not in item.text else {}
    if not heading and (title := display_label(hit.title)) and not _says(f"{hit.uri} {item.text}", title):
        result["title"] = title
    # A date with a time is that of the file, which says little.
    if hit.date and "T" not in hit.date and hit.date not in hit.uri:
        result["date"] = hit.date
    tool = page.assistant_names[hit.tool]
    result |= {"content": item.text, "hash": passage.hash, "uri": readable_address(tool, hit.uri)}
    result |= {"place": single_line(passage.place)} if passage.place else {}
    result |= {"tool": tool} if show_tool else {}
    result |= {"trust": hit.trust, "fetched_at": hit.fetched_at} if hit.trust else {}
    result |= {"more_in_document": item.more_in_document} if item.more_in_document else {}
    return result | ({} if item.has_start and item.has_end else {"truncated": True})


def _says(text: str, label: str) -> bool:
    """Return whether a text contains a label, in whatever case and with whatever between its words."""
    return _NOT_LETTERS.sub("", label.lower()) in _NOT_LETTERS.sub("", text.lower())


def _result_to_dict(page: Page, item: PageItem, *, for_model: bool) -> dict[str, Any]:
    passage, hit, chunk = item.passage, item.passage.hit, item.passage.hit.chunk
    label: Callable[[str], str] = display_label if for_model else str
    name: Callable[[str], str] = single_line if for_model else str
    result: dict[str, Any] = {
        "file_path": name(hit.uri),
        "heading": label(chunk.heading),
        "content": item.text,
        "score": round_score(hit.score),
        "chunk_index": chunk.index,
        "heading_path": [label(heading) for heading in chunk.heading_path],
        "citation": name(passage.citation),
        "line_start": passage.first_line,
        "line_end": passage.last_line,
        "hash": passage.hash,
        "uri": readable_address(page.assistant_names[hit.tool], hit.uri),
        "tool": page.assistant_names[hit.tool] if for_model else hit.tool,
    }
    if hit.trust:
        result |= {"trust": hit.trust, "fetched_at": hit.fetched_at}
    if passage.place:
        result["place"] = name(passage.place)
    if item.more_in_document:
        result["more_in_document"] = item.more_in_document
    if not (item.has_start and item.has_end):
        result["truncated"] = True
    result |= {
        "char_start": passage.start,
        "char_end": passage.end,
        "title": label(hit.title),
        "date": hit.date,
        "tags": [label(tag) for tag in (hit.tags[:MAX_TAGS] if for_model else hit.tags)],
        "content_hash": hit.content_hash,
        "vector_distance": round_score(hit.vector_distance),
        "bm25_score": round_score(hit.bm25_score),
        "combined_score": round_score(hit.combined_score),
    }
    if hit.reranker_score is not None:
        result["reranker_score"] = round_score(hit.reranker_score)
    if hit.explanation is not None:
        result["explain"] = explanation_to_dict(hit.explanation, hit.score, max_terms=MAX_TERMS if for_model else None)
    return result


def _add_details(page: Page, results: list[dict[str, Any]]) -> None:
    """Add what was omitted around passages that may be cut, and where the query's terms are in snippets."""
    if page.extract not in PARTIAL_EXTRACTS:
        return
    for item, result in zip(page.results, results, strict=True):
        result["left_out"] = {"before": item.passage.chars_before, "after": item.passage.chars_after}
    if page.extract == "snippet":
        query_terms = snippet_terms(page.searched_query)
        for result in results:
            result["marks"] = highlight_ranges(result["content"], query_terms)


def summary_to_dict(summary: Summary) -> dict[str, Any]:
    """Return a summary as a dictionary; a model's summary includes the model's name."""
    return {
        "count": summary.count,
        "since": summary.since,
        "until": summary.until,
        "tags": [{"tag": tag, "count": count} for tag, count in summary.tags],
        "phrases": list(summary.phrases),
        "sentences": [
            {"text": sentence.text, "file_path": sentence.uri, "title": sentence.title, "date": sentence.date}
            for sentence in summary.sentences
        ],
    } | ({"text": summary.text, "model": summary.model} if summary.text else {})


def explanation_to_dict(explanation: Explanation, score: float, *, max_terms: int | None = None) -> dict[str, Any]:
    """Return the explanation of a score as a dictionary, with at most `max_terms` terms and expansions.

    Without a limit it has the arithmetic too: its points add up to the score, and those of its terms to that of bm25.
    """
    result: dict[str, Any] = {
        "lane": explanation.lane,
        "terms": list(explanation.terms[:max_terms]),
        "expansions": [{"kind": kind, "term": term} for kind, term in explanation.expansions[:max_terms]],
        "bm25": _arm_to_dict(explanation.bm25),
        "vector": _arm_to_dict(explanation.vector),
        **({"reranker": _arm_to_dict(explanation.reranker)} if explanation.reranker else {}),
    }
    return result if max_terms is not None else result | _arithmetic_to_dict(explanation, score)


def _arithmetic_to_dict(explanation: Explanation, score: float) -> dict[str, Any]:
    points = round_to_sum([part.points for part in explanation.parts], score)
    scores = round_to_sum(
        [term.score for term in explanation.term_scores], explanation.bm25.score if explanation.bm25 else 0.0
    )
    return {
        "fusion": explanation.fusion,
        "parts": [
            {
                "arm": part.arm,
                "score": round_score(part.score),
                "rank": part.rank,
                "value": round_score(part.value),
                "weight": round_score(part.weight),
                "points": rounded_points,
            }
            for part, rounded_points in zip(explanation.parts, points, strict=True)
        ],
        "term_scores": [
            {"term": term.term, "kind": term.role or "word", "score": term_score, "fields": list(term.fields)}
            for term, term_score in zip(explanation.term_scores, scores, strict=True)
        ],
        "best_sentence": explanation.best_sentence,
        "nearest_sentence": None
        if explanation.sentence_score is None
        else {"text": explanation.nearest_sentence, "score": round_score(explanation.sentence_score)},
    }


def _arm_to_dict(arm: ArmScore | None) -> dict[str, Any] | None:
    return None if arm is None else {"score": round_score(arm.score), "rank": arm.rank}


def explanation_text(explanation: Explanation, score: float) -> str:
    """Return the explanation of a score as text, with what each term and each arm adds to it."""
    arithmetic = _arithmetic_to_dict(explanation, score)
    scores = {(term["kind"], term["term"]): term["score"] for term in arithmetic["term_scores"]}
    words = [(term, scores.get(("word", term), scores.get(("part", term)))) for term in explanation.terms]
    parts = [f"lane {explanation.lane}"]
    if words:
        parts.append("terms " + " ".join(f"{term}{_added(points)}" for term, points in words))
    if explanation.expansions:
        expansions = [(f"{term} ({kind})", scores.get((kind, term))) for kind, term in explanation.expansions]
        parts.append("also " + " ".join(f"{term}{_added(points)}" for term, points in expansions))
    if explanation.bm25:
        parts.append(f"bm25 {explanation.bm25.score:.3f} (rank {explanation.bm25.rank})")
    if explanation.vector:
        parts.append(f"vector {explanation.vector.score:.3f} (rank {explanation.vector.rank})")
    if explanation.sentence_score is not None:
        sentence = " ".join(explanation.nearest_sentence.split())
        sentence = sentence if len(sentence) <= _SENTENCE_CHARS else f"{sentence[:_SENTENCE_CHARS].rstrip()}…"
        parts.append(f"nearest sentence {explanation.sentence_score:.3f} {sentence}")
    if len(arithmetic["parts"]) > 1:
        points = " + ".join(f"{part['arm']} {part['points']:.4f}" for part in arithmetic["parts"])
        parts.append(f"score {score:.4f} = {points}")
    if explanation.reranker:
        parts.append(f"reranker {explanation.reranker.score:.3f} (rank {explanation.reranker.rank})")
    return "; ".join(parts)


def _added(points: float | None) -> str:
    return f" +{points:.4f}" if points else ""


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


def round_score(value: float | None) -> float | None:
    """Return a score with four decimals, enough to tell hits apart."""
    return None if value is None else round(value, 4)
