"""Generate known-item queries from the headings and key phrases of a tool's chunks.

The relevant document is the one that the words came from. A text that occurs in many documents is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.query_variants import AS_WRITTEN, VARIANT_KINDS, loanwords, variants
from bunko.library.tools.routing import make_questions
from bunko.protocols import DocumentReader, IndexView
from bunko.search.keyphrases import extract_phrases
from bunko.text import analyzer, ngrams
from bunko.text.language import detect_language
from bunko.text.line_joins import join_lines
from bunko.text.normalise import normalise
from bunko.types.records import ChunkRow, QueryTerm

# A text in a title or heading is a better answer than a mention in the body.
NAMED_GRADE, MENTIONED_GRADE = 3.0, 1.0
# A query with more relevant documents than this is about none of them.
_MAX_ANSWERS = 3
# Per document: headings, and key phrases, alone and joined. A heading occurs once in each chunk below it, however long
# the chunk is; a topic is repeated in its text. Only both together are fair to settings that count repetition and to
# settings that do not.
_HEADINGS_PER_DOCUMENT, _PHRASES_PER_DOCUMENT = 2, 3
NAMES, TOPICS = "names", "topics"
_VARIANTS_PER_TEXT = 2  # besides the text itself
_MIN_LENGTH, _MAX_LENGTH = 3, 80
_LOANWORD_CHARACTERS = 300  # characters of a chunk that are searched for loanwords
# Chunks that are searched for mentions of a text; a text with more occurs nearly everywhere.
_MAX_ROWS = 60
_FULL_OVERLAP = 0.999

# Returns the documents that mention a text, with a grade for each; None: too many.
MentionLookup = Callable[[str], Mapping[str, float] | None]


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A generated query, and the document that its words came from."""

    query: JudgedQuery
    origin_uri: str
    family: str  # names: from headings; topics: from key phrases


def known_items(chunks: Sequence[ChunkRow], find_mentions: MentionLookup, *, limit: int) -> list[KnownItem]:
    """Return at most `limit` queries about the documents of these chunks, with variants of every possible kind."""
    english = loanwords(row.chunk.text_to_index(row.title)[:_LOANWORD_CHARACTERS] for row in chunks)
    kind_counts: Counter[str] = Counter()
    items: list[KnownItem] = []
    used_texts: set[str] = set()
    for text, family, origins in _query_texts(chunks):
        if len(items) >= limit:
            break
        answers = _answer_grades(text, origins, find_mentions)
        if answers is None:
            continue
        texts_by_kind = variants(text, english)
        # The least used kinds come first, so that kinds that few texts allow get their share.
        kinds = sorted(texts_by_kind, key=lambda kind: (kind_counts[kind], VARIANT_KINDS.index(kind)))
        chosen_texts = [(kind, texts_by_kind[kind]) for kind in kinds[:_VARIANTS_PER_TEXT]]
        for kind, query_text in [(AS_WRITTEN, text), *chosen_texts]:
            grades = answers if kind == AS_WRITTEN else _answer_grades(query_text, answers, find_mentions)
            if grades is None or query_text in used_texts:
                continue
            used_texts.add(query_text)
            kind_counts[kind] += 1
            query_id = str(len(items) + 1)
            language = detect_language(query_text) or "other"
            query = JudgedQuery(query_id, query_text, grades, language=language, kind=kind)
            items.append(KnownItem(query, next(iter(origins)), family))
    return items[:limit]


def _query_texts(chunks: Sequence[ChunkRow]) -> list[tuple[str, str, dict[str, float]]]:
    """Return headings and key phrases with their family and the grades of their documents.

    Documents take turns, so that a limit cuts off the later texts of all documents alike.
    """
    documents: dict[str, list[ChunkRow]] = {}
    for row in chunks:
        documents.setdefault(row.uri, []).append(row)
    origins: dict[str, dict[str, float]] = {}
    rounds: list[list[tuple[str, str]]] = [[], []]
    for uri in sorted(documents, key=_shuffle_key):
        document_chunks = documents[uri]
        names = [*make_questions(document_chunks, limit=_HEADINGS_PER_DOCUMENT), "", ""]
        topics = [phrase.text for phrase in extract_phrases(document_chunks, limit=_PHRASES_PER_DOCUMENT)]
        joined_topics = " ".join(topics) if len(topics) > 1 else ""
        texts = ((names[0], NAMES), (joined_topics, TOPICS), (names[1], NAMES), ("".join(topics[:1]), TOPICS))
        for round_index, (text, family) in zip((0, 0, 1, 1), texts, strict=True):
            if not _MIN_LENGTH <= len(text) <= _MAX_LENGTH:
                continue
            grades = origins.setdefault(text, {})
            if not grades:
                rounds[round_index].append((text, family))
            grades[uri] = max(NAMED_GRADE if family == NAMES else MENTIONED_GRADE, grades.get(uri, 0.0))
    return [(text, family, origins[text]) for texts_of_round in rounds for text, family in texts_of_round]


def _answer_grades(text: str, origins: Mapping[str, float], find_mentions: MentionLookup) -> dict[str, float] | None:
    mentions = find_mentions(text)
    if mentions is None:
        return None
    grades = dict(origins)
    for uri, grade in mentions.items():
        grades[uri] = max(grade, grades.get(uri, 0.0))
    return grades if len(grades) <= _MAX_ANSWERS else None


def split_by_document(items: Sequence[KnownItem]) -> tuple[list[KnownItem], list[KnownItem]]:
    """Split queries into two halves that share no relevant document; queries that would connect them are dropped."""
    documents = sorted({uri for item in items for uri in item.query.grades}, key=_shuffle_key)
    first_half_uris = set(documents[::2])
    first_half, second_half = [], []
    for item in items:
        in_first_half = [uri in first_half_uris for uri in item.query.grades]
        if all(in_first_half):
            first_half.append(item)
        elif not any(in_first_half):
            second_half.append(item)
    return first_half, second_half


def _shuffle_key(uri: str) -> bytes:
    # Documents of one folder are similar: hashing spreads them over both halves.
    return sha256(uri.encode("utf-8", "surrogatepass")).digest()


class MentionFinder:
    """Finds the documents that mention a text, in one view of a tool."""

    def __init__(self, documents: DocumentReader, view: IndexView) -> None:
        self._documents, self._view = documents, view

    def find_mentions(self, text: str) -> dict[str, float] | None:
        """Return the documents that contain a text, graded as heading or mention; None if there are too many.

        A chunk with all its words counts as a mention too: a user who types them could mean either.
        """
        terms = [QueryTerm(gram.key, 1.0, is_gram=True) for gram in ngrams.query_grams(join_lines(text))]
        if not terms:
            return {}
        rows = self._view.rank_grams(terms, _MAX_ROWS, min_share=_FULL_OVERLAP).rows
        word_rows = self._rows_with_all_words(text)
        if _MAX_ROWS in (len(rows), len(word_rows)):
            return None
        grades: dict[str, float] = {chunk.uri: MENTIONED_GRADE for chunk in self._chunk_rows(word_rows)}
        folded_text = _fold_text(text)
        for chunk in self._chunk_rows(rows):
            if grade := _mention_grade(folded_text, chunk):
                grades[chunk.uri] = max(grade, grades.get(chunk.uri, 0.0))
        return grades

    def _rows_with_all_words(self, text: str) -> list[int]:
        terms = [QueryTerm(key, 1.0) for key in dict.fromkeys(analyzer.term_keys(text))]
        # With k1 and b at 0, long texts are not penalised, so chunks with every word rank first.
        rows = self._view.rank(terms, _MAX_ROWS, k1=0.0, b=0.0).rows
        matches = self._view.matches(terms, rows)
        return [row for row, term_matches in zip(rows, matches, strict=True) if term_matches and all(term_matches)]

    def _chunk_rows(self, rows: Sequence[int]) -> Iterable[ChunkRow]:
        return self._documents.chunks(self._view.chunk_ids(rows)).values()


def _mention_grade(folded_text: str, row: ChunkRow) -> float:
    if any(folded_text in _fold_text(name) for name in (row.title, *row.chunk.heading_path)):
        return NAMED_GRADE
    return MENTIONED_GRADE if folded_text in _fold_text(row.chunk.text) else 0.0


def _fold_text(text: str) -> str:
    return " ".join(normalise(text).casefold().split())
