"""A library in, what is wrong with it out: the file, the derived index, and whether its own words find its texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bunko.embedders import embed_and_check
from bunko.errors import BunkoError, EmbedderError
from bunko.indexes.embedded.snapshot import Snapshot
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Embedder, Store
from bunko.search.rank import SearchRequest, rank_rows
from bunko.text import analyzer
from bunko.text.language import detect_language
from bunko.types import MODES, Chunk, Mode, Tool

if TYPE_CHECKING:
    from bunko.types import Vectors

# Each language is asked this many questions that its own texts answer.
_QUESTIONS_PER_LANGUAGE = 25
_MAX_SAMPLED_CHUNKS = 400
# Not every question is answered by the text it came from; below this share, search is dead.
_MIN_FOUND_SHARE = 0.5
_MIN_QUESTIONS = 4  # questions; fewer that fail are bad luck
_SAME_TEXT_SHARE = 0.8
_SENTENCE = re.compile(r"[^\n。.!?！？|`#<>]{6,60}")
_LANGUAGE_NAMES = {"ja": "Japanese", "en": "English"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    state: Literal["ok", "warning", "error"]
    subject: str
    message: str
    hint: str = ""


def check_storage(store: Store) -> list[Finding]:
    """Check that the library's file is whole."""
    try:
        wrong = store.check()
    except BunkoError as error:
        return [Finding("error", "library", error.message, error.hint)]
    if wrong:
        return [
            Finding(
                "error",
                "library",
                wrong,
                "Move the file away and import again; your documents are untouched.",
            )
        ]
    return [Finding("ok", "library", "the file is whole")]


def check_index(index: ToolIndex, tool: Tool) -> list[Finding]:
    """Check that the derived index is what was written."""
    if wrong := index.check_file():
        return [Finding("warning", tool.name, f"{wrong}; it is rebuilt at the next import", "Nothing is lost.")]
    return [Finding("ok", tool.name, "the derived index is whole")]


def check_search(
    store: Store,
    snapshot: Snapshot,
    tool: Tool,
    embedder: Embedder | None,
    *,
    per_language: int = _QUESTIONS_PER_LANGUAGE,
) -> list[Finding]:
    """Ask for texts with their own sentences, in each language and each mode, and tell how many came back."""
    if not snapshot.size:
        return [Finding("warning", tool.name, "holds no text yet", "Import something: bunko reindex.")]
    findings = []
    questions = _sample_questions(store, snapshot, per_language)
    asked: Embedder | None = None
    if embedder is not None:
        try:
            asked = _PrecomputedQueries(embedder, [question for items in questions.values() for question in items])
        except EmbedderError as error:
            told = f"search by vectors was not tried: {error.message}"
            findings.append(Finding("warning", tool.name, told, error.hint))
    for code, items in questions.items():
        for mode in MODES:
            if mode != "bm25" and asked is None:
                continue
            found = sum(_finds_answer(store, snapshot, question, mode, asked) for question in items)
            share = found / len(items)
            text = f"{_LANGUAGE_NAMES[code]}, {mode}: {found} of {len(items)} texts found by a sentence of their own"
            if share < _MIN_FOUND_SHARE and len(items) >= _MIN_QUESTIONS:
                findings.append(Finding("error", tool.name, text, "This search is dead: please report it."))
            else:
                findings.append(Finding("ok", tool.name, text))
    return findings


def search_problems(
    store: Store, snapshot: Snapshot, tool: Tool, embedder: Embedder | None, *, per_language: int
) -> list[str]:
    """Return a sentence for each language and mode in which texts are not found, and where that could not be tried."""
    findings = check_search(store, snapshot, tool, embedder, per_language=per_language)
    return [f"{one.message}. {one.hint}" for one in findings if one.state != "ok" and snapshot.size]


class _PrecomputedQueries:
    """An embedder that knows the vectors of some questions: they were asked for in one call, which may cost."""

    def __init__(self, embedder: Embedder, questions: Sequence[str]) -> None:
        self.name, self.size, self.label, self.noise_floor = (
            embedder.name,
            embedder.size,
            embedder.label,
            embedder.noise_floor,
        )
        self.batch_size, self.is_remote = embedder.batch_size, embedder.is_remote
        self._embedder = embedder
        distinct = list(dict.fromkeys(questions))
        vectors = embed_and_check(embedder, distinct, query=True) if distinct else ()
        self._vectors = dict(zip(distinct, vectors, strict=True))

    def unavailable_reason(self) -> str:
        """Return what the other one lacks."""
        return self._embedder.unavailable_reason()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return the row of each question."""
        return np.stack([self._vectors[text] for text in texts])


def _sample_questions(store: Store, snapshot: Snapshot, per_language: int) -> dict[str, list[str]]:
    rows = snapshot.alive_rows().tolist()
    some = rows[:: max(1, len(rows) // min(_MAX_SAMPLED_CHUNKS, 8 * per_language))]
    found: dict[str, list[str]] = {}
    for chunk in _load_chunks(store, snapshot, some):
        question = _pick_sentence(chunk)
        code = detect_language(question)
        if code and len(found.setdefault(code, [])) < per_language:
            found[code].append(question)
    return found


def _load_chunks(store: Store, snapshot: Snapshot, rows: Sequence[int]) -> list[Chunk]:
    found = []
    for at in range(0, len(rows), 200):
        ids = [snapshot.chunk_id(row) for row in rows[at : at + 200]]
        chunks = store.chunks(ids)
        found += [chunks[chunk_id].chunk for chunk_id in ids]
    return found


def _pick_sentence(chunk: Chunk) -> str:
    """Return a sentence of a chunk, from its middle, where it is not the title again."""
    sentences = _SENTENCE.findall(chunk.text)
    return sentences[len(sentences) // 2].strip() if sentences else ""


def _finds_answer(store: Store, snapshot: Snapshot, question: str, mode: Mode, embedder: Embedder | None) -> bool:
    request = SearchRequest(question, mode=mode, top_k=10)
    found = rank_rows(snapshot, question, embedder, request, snapshot.masks(None))
    asked = set(analyzer.term_keys(question))
    for chunk in _load_chunks(store, snapshot, [one.row for one in found]):
        # Texts repeat each other: one that says nearly the same is as good an answer.
        if question in chunk.text or len(asked & set(analyzer.term_keys(chunk.text))) >= _SAME_TEXT_SHARE * max(
            1, len(asked)
        ):
            return True
    return False
