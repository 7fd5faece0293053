"""Convert answers and reports to dictionaries for JSON output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bunko.records import StoredDocument
from bunko.search.passages import Extract, extract_passages, snippet_terms
from bunko.text.snippets import highlight_ranges
from bunko.types import Answer, Explanation, Hit, Report, format_citation

if TYPE_CHECKING:
    from bunko.search.summaries import Summary


def answer_to_dict(
    answer: Answer,
    find_document: Callable[[Hit], StoredDocument | None],
    *,
    extract: Extract | None = None,
    summary: Summary | None = None,
) -> dict[str, Any]:
    """Return a search answer as a dictionary; documents are needed for the hashes that verify citations.

    With an `extract`, it includes the number of omitted characters; with snippets, the positions of the matches.
    """
    result: dict[str, Any] = {
        "results": [hit_to_dict(hit) | _passage_fields(hit, find_document, extract) for hit in answer.hits],
        "total_chunks": answer.total_chunks,
        "query": answer.query,
        **({"rewritten": answer.rewritten_query} if answer.rewritten_query else {}),
        "mode": answer.mode,
        "freshness": {
            "generation": answer.freshness.generation,
            "checked_at": answer.freshness.checked_at,
            "missing": answer.freshness.pending_changes,
        },
    }
    if extract == "snippet":
        query_terms = snippet_terms(answer.searched_query)
        for item in result["results"]:
            item["marks"] = highlight_ranges(item["content"], query_terms)
    if summary is not None:
        result["summary"] = summary_to_dict(summary)
    if answer.notices:
        result["notices"] = answer.notices
    return result


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


def hit_to_dict(hit: Hit) -> dict[str, Any]:
    """Return a hit as a dictionary."""
    chunk = hit.chunk
    result: dict[str, Any] = {
        "file_path": hit.uri,
        "heading": chunk.heading,
        "content": chunk.text,
        "score": round(hit.score, 6),
        "chunk_index": chunk.index,
        "heading_path": list(chunk.heading_path),
        "citation": hit_citation(hit),
        "line_start": chunk.first_line,
        "line_end": chunk.last_line,
        "char_start": chunk.start,
        "char_end": chunk.end,
        "title": hit.title,
        "date": hit.date,
        "tags": list(hit.tags),
        "content_hash": hit.content_hash,
        "tool": hit.tool,
        "vector_distance": _round_score(hit.vector_distance),
        "bm25_score": _round_score(hit.bm25_score),
        "combined_score": _round_score(hit.combined_score),
    }
    if hit.trust:
        result |= {"trust": hit.trust, "fetched_at": hit.fetched_at}
    if hit.explanation is not None:
        result["explain"] = explanation_to_dict(hit.explanation)
    return result


def hit_citation(hit: Hit) -> str:
    """Return the citation of a hit."""
    return format_citation(hit.uri, hit.chunk.first_line, hit.chunk.last_line)


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as a dictionary."""
    return {
        "lane": explanation.lane,
        "terms": list(explanation.terms),
        "expansions": [{"kind": kind, "term": term} for kind, term in explanation.expansions],
        "bm25": None
        if explanation.bm25 is None
        else {"score": round(explanation.bm25.score, 6), "rank": explanation.bm25.rank},
        "vector": None
        if explanation.vector is None
        else {"score": round(explanation.vector.score, 6), "rank": explanation.vector.rank},
    }


def explanation_text(explanation: Explanation) -> str:
    """Return an explanation as text."""
    parts = [f"lane {explanation.lane}"]
    if explanation.terms:
        parts.append("terms " + " ".join(explanation.terms))
    if explanation.expansions:
        parts.append("also " + " ".join(f"{term} ({kind})" for kind, term in explanation.expansions))
    if explanation.bm25:
        parts.append(f"bm25 {explanation.bm25.score:.3f} (rank {explanation.bm25.rank})")
    if explanation.vector:
        parts.append(f"vector {explanation.vector.score:.3f} (rank {explanation.vector.rank})")
    return "; ".join(parts)


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
    if report.failures:
        result["failures"] = [asdict(failure) for failure in report.failures]
    if report.notices:
        result["notices"] = report.notices
    return result


def _passage_fields(
    hit: Hit, find_document: Callable[[Hit], StoredDocument | None], extract: Extract | None
) -> dict[str, Any]:
    passage = next(iter(extract_passages([hit], find_document, "chunk")), None)
    fields: dict[str, Any] = {"hash": passage.hash if passage else ""}
    if passage and extract in ("snippet", "entry", "full"):
        fields["left_out"] = {"before": passage.chars_before, "after": passage.chars_after}
    return fields


def _round_score(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
