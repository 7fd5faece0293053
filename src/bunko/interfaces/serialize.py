"""Answers and reports in, plain dictionaries out: the same object in `--json`, MCP and the web API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bunko.records import StoredDocument
from bunko.search.passages import Extract, looked_for, passages
from bunko.text.snippets import marks
from bunko.types import Answer, Explanation, Hit, Report, cited

if TYPE_CHECKING:
    from bunko.search.summaries import Summary


def answer(
    found: Answer,
    document: Callable[[Hit], StoredDocument | None],
    *,
    extract: Extract | None = None,
    summary: Summary | None = None,
) -> dict[str, Any]:
    """Return a search's answer; documents are needed for the hashes that citations are checked by.

    Of an `extract` that leaves something out it is said how many characters; in a snippet, where the terms stand.
    """
    result: dict[str, Any] = {
        "results": [hit(one) | _place(one, document, extract) for one in found.hits],
        "total_chunks": found.total_chunks,
        "query": found.query,
        **({"rewritten": found.rewritten} if found.rewritten else {}),
        "mode": found.mode,
        "freshness": {
            "generation": found.freshness.generation,
            "checked_at": found.freshness.checked_at,
            "missing": found.freshness.missing,
        },
    }
    if extract == "snippet":
        looked = looked_for(found.searched)
        for one in result["results"]:
            one["marks"] = marks(one["content"], looked)
    if summary is not None:
        result["summary"] = summarised(summary)
    if found.notices:
        result["notices"] = found.notices
    return result


def summarised(summary: Summary) -> dict[str, Any]:
    """Return what some hits say together; who wrote it is said where that was a model."""
    return {
        "count": summary.count,
        "since": summary.since,
        "until": summary.until,
        "tags": [{"tag": tag, "count": count} for tag, count in summary.tags],
        "phrases": list(summary.phrases),
        "sentences": [
            {"text": one.text, "file_path": one.uri, "title": one.title, "date": one.date} for one in summary.sentences
        ],
    } | ({"text": summary.text, "model": summary.model} if summary.text else {})


def hit(one: Hit) -> dict[str, Any]:
    """Return one hit."""
    chunk = one.chunk
    result: dict[str, Any] = {
        "file_path": one.uri,
        "heading": chunk.heading,
        "content": chunk.text,
        "score": round(one.score, 6),
        "chunk_index": chunk.index,
        "heading_path": list(chunk.heading_path),
        "citation": citation(one),
        "line_start": chunk.first_line,
        "line_end": chunk.last_line,
        "char_start": chunk.start,
        "char_end": chunk.end,
        "title": one.title,
        "date": one.date,
        "tags": list(one.tags),
        "content_hash": one.content_hash,
        "tool": one.tool,
        "vector_distance": _rounded(one.vector_distance),
        "bm25_score": _rounded(one.bm25_score),
        "combined_score": _rounded(one.combined_score),
    }
    if one.trust:
        result |= {"trust": one.trust, "fetched_at": one.fetched_at}
    if one.why is not None:
        result["explain"] = explanation(one.why)
    return result


def citation(one: Hit) -> str:
    """Return where a hit stands."""
    return cited(one.uri, one.chunk.first_line, one.chunk.last_line)


def explanation(why: Explanation) -> dict[str, Any]:
    """Return why a hit answered."""
    return {
        "lane": why.lane,
        "terms": list(why.terms),
        "expansions": [{"kind": kind, "term": term} for kind, term in why.expansions],
        "bm25": None if why.bm25 is None else {"score": round(why.bm25.score, 6), "rank": why.bm25.rank},
        "vector": None if why.vector is None else {"score": round(why.vector.score, 6), "rank": why.vector.rank},
    }


def reasons(why: Explanation) -> str:
    """Return why a hit answered, in words."""
    parts = [f"lane {why.lane}"]
    if why.terms:
        parts.append("terms " + " ".join(why.terms))
    if why.expansions:
        parts.append("also " + " ".join(f"{term} ({kind})" for kind, term in why.expansions))
    if why.bm25:
        parts.append(f"bm25 {why.bm25.score:.3f} (rank {why.bm25.rank})")
    if why.vector:
        parts.append(f"vector {why.vector.score:.3f} (rank {why.vector.rank})")
    return "; ".join(parts)


def report(done: Report) -> dict[str, Any]:
    """Return what an import did."""
    result: dict[str, Any] = {
        "added": done.added,
        "updated": done.updated,
        "deleted": done.deleted,
        "unchanged": done.unchanged,
        "total_chunks": done.total_chunks,
        "moved": done.moved,
        "embedded": done.embedded,
        "interrupted": done.interrupted,
        "problems": [
            {"file_path": problem.uri, "reason": problem.reason} | ({"tool": problem.tool} if problem.tool else {})
            for problem in done.problems
        ],
    }
    if done.failures:
        result["failures"] = [asdict(failure) for failure in done.failures]
    if done.notices:
        result["notices"] = done.notices
    return result


def _place(one: Hit, document: Callable[[Hit], StoredDocument | None], extract: Extract | None) -> dict[str, Any]:
    passage = next(iter(passages([one], document, "chunk")), None)
    place: dict[str, Any] = {"hash": passage.hash if passage else ""}
    if passage and extract in ("snippet", "entry", "full"):
        place["left_out"] = {"before": passage.before, "after": passage.after}
    return place


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
