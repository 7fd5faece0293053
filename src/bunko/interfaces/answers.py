"""Show answers: their sentences with citations and remarks, and their sources; for all interfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence

NOTHING_FOUND = "The library does not say."
QUOTED = "These sentences are quoted from your documents. No chat model is set."
_QUOTED_INSTEAD = "These sentences are quoted from your documents."
ADDED_NOTE = "+ marks a source that bunko found; the model did not cite it."
_MAX_MISSING = 6
_STATE_REMARKS = {
    "changed": "the source has changed since",
    "deleted": "the source was deleted since",
    "unchecked": "the source could not be checked",
}


def visible_sentences(answer: CheckedAnswer, *, strict: bool = False) -> list[CheckedSentence]:
    """Return the sentences to show; with `strict`, none that the sources do not support."""
    sentences = [sentence for sentence in answer.sentences if sentence.holds or not strict]
    # Headings and introductions alone say nothing.
    if strict and not any(sentence.status == "supported" for sentence in sentences):
        return []
    return sentences


def is_answered(answer: CheckedAnswer, *, strict: bool = False) -> bool:
    """Return whether a reader gets an answer."""
    return answer.is_found and bool(visible_sentences(answer, strict=strict))


def visible_sources(answer: CheckedAnswer, *, strict: bool = False) -> list[AnswerSource]:
    """Return the sources that the sentences to show cite."""
    numbers = {
        citation.number for sentence in visible_sentences(answer, strict=strict) for citation in sentence.citations
    }
    return [source for source in answer.cited_sources if source.number in numbers]


def introduction(answer: CheckedAnswer) -> str:
    """Return who wrote an answer."""
    if answer.model:
        return f"Written by {answer.model}. What the sources do not say is marked."
    return _QUOTED_INSTEAD if answer.notices else QUOTED


def citation_marks(sentence: CheckedSentence) -> str:
    """Return the citations of a sentence that hold, as [1][+2]; + is one that bunko added."""
    numbers = {citation.number: citation.added for citation in sentence.citations if citation.holds}
    return "".join(f"[{'+' if is_added else ''}{number}]" for number, is_added in numbers.items())


def remarks(sentence: CheckedSentence) -> list[str]:
    """Return what a reader must know of a sentence; nothing if it can be relied on."""
    result = [
        f"there is no source {citation.label}" for citation in sentence.citations if citation.state == "not_shown"
    ]
    states = dict.fromkeys(citation.state for citation in sentence.citations)
    result += [_STATE_REMARKS[state] for state in states if state in _STATE_REMARKS]
    if sentence.holds:
        return result
    missing = ", ".join(sentence.missing[:_MAX_MISSING])
    if sentence.status == "partly":
        return [*result, f"only partly in the sources, not: {missing}" if missing else "only partly in the sources"]
    return [*result, f"not in the sources: {missing}" if missing else "not in the sources"]


def answer_text(
    answer: CheckedAnswer, *, strict: bool = False, translate: Callable[[str], str] = lambda text: text
) -> str:
    """Return the sentences of an answer with their citations, each remark in round brackets after its sentence."""
    parts = []
    for sentence in visible_sentences(answer, strict=strict):
        marks = citation_marks(sentence)
        notes = "; ".join(map(translate, remarks(sentence)))
        parts.append(f"{sentence.before}{sentence.text}{f' {marks}' if marks else ''}{f' ({notes})' if notes else ''}")
    return "".join(parts).strip() or translate(NOTHING_FOUND)


def answer_to_dict(answer: CheckedAnswer, *, strict: bool = False) -> dict[str, Any]:
    """Return an answer as a dictionary, with the sources that it cites and the others that were read."""
    cited = {source.number for source in answer.cited_sources}
    return {
        "question": answer.question,
        "found": is_answered(answer, strict=strict),
        "text": answer_text(answer, strict=strict),
        "model": answer.model,
        "sentences": [_sentence_to_dict(sentence) for sentence in visible_sentences(answer, strict=strict)],
        "sources": [
            asdict(source) | {"headings": list(source.headings), "cited": source.number in cited}
            for source in answer.sources
        ],
        "prompt_tokens": answer.prompt_tokens,
        "answer_tokens": answer.answer_tokens,
    } | {name: value for name, value in (("cost", answer.cost), ("notices", answer.notices)) if value}


def _sentence_to_dict(sentence: CheckedSentence) -> dict[str, Any]:
    return {
        "text": sentence.text,
        "status": sentence.status,
        "missing": list(sentence.missing),
        "best_source": sentence.best_source or None,
        "citations": [
            {
                "label": citation.label,
                "source": citation.number or None,
                "state": citation.state,
                "supports": citation.supports,
                "added": citation.added,
            }
            for citation in sentence.citations
        ],
    }
