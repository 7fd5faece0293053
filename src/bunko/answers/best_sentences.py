"""Choose the sentences of passages that answer a question best, without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from bunko.answers.evidence import analyze_passage
from bunko.answers.statements import analyze_clauses
from bunko.answers.support import check_support, find_gaps
from bunko.search.query_analysis import analyse_query
from bunko.text import analyzer
from bunko.text.language import detect_language
from bunko.text.sentences import LIST_MARKER, sentence_ranges
from bunko.types.answers import AnswerSource

MAX_SENTENCES = 4
# A question is answered if the best sentences are at least this certain: by their words and their similarity, or by the
# words alone. Tuned on one half of the judged questions, see docs/ask.md.
MIN_CERTAINTY = 0.45
MIN_COVERAGE = 0.3
_COVERAGE_WEIGHT, _SIMILARITY_WEIGHT = 0.5, 0.8
_MAX_COMPARED = 3
# A further sentence must score this share of the best.
_MIN_SCORE_SHARE = 0.75
# A word in the headings above a sentence, or in the sentence beside it, counts less than one in the sentence.
_HEADING_WEIGHT, _NEIGHBOUR_WEIGHT = 0.6, 0.4
_EXPECTED_KIND_BONUS = 0.25
_RANK_DISCOUNT = 0.04
_OTHER_LANGUAGE = 0.8
_MAX_SENTENCE_CHARS = 400
_MIN_SENTENCE_CHARS = 4
# Sentences that share this much of their words may say the same.
_SAME_SHARE = 0.8
_UNSEEN_FREQUENCY = 0.5  # of a word that no passage has, for its weight
_TABLE_RULE = re.compile(r"[\s|:=*_#>~`-]+")
_ENDS_WITH_LABEL = re.compile(r"[:：]\s*\Z")

# What a question asks for, by its words in both languages.
_ASKED_KINDS = {
    "amount": r"(?i)\bhow (?:many|much|long|often|far|fast|high|old|big|quickly|soon)\b|いくら|どのくらい|上限|期間"
    r"|料金|何(?:日|時間|分|秒|年|か月|週|人|名|個|回|件|円|度|枚|台|行|番|号|通)|どれ(?:くらい|だけ)|の量|の数"
    r"|月額|年額",
    "date": r"(?i)\bwhen\b|\b(?:what|which) (?:day|date|year|month|time)\b|いつ|何(?:月|曜|時(?!間))|期限|日付",
    "name": r"(?i)\bwho\b|\bwhom\b|\bwhose\b|\bwhich (?:person|company|team)\b|誰|だれ|担当",
    "place": r"(?i)\bwhere\b|どこ|場所",
    "reason": r"(?i)\bwhy\b|なぜ|どうして|原因|理由",
}
_REASON = re.compile(
    r"(?i)\bbecause\b|\bsince\b|\bdue to\b|\bcaused?\b|\bso that\b|\breason\b|ため|から|ので|原因|理由"
)
_PLACE = re.compile(r"(?i)\b(?:in|at|on|from|near|to) (?:the )?[A-Z]|にあり|階|室|棚|駅|から")


class ChosenSentence(NamedTuple):
    """A sentence with the numbers of the sources that say it, the best first."""

    text: str
    sources: tuple[int, ...]
    certainty: float  # that it answers the question, 0 to about 1.5


@dataclass(slots=True)
class _Candidate:
    text: str
    source: AnswerSource
    rank: int
    words: frozenset[str]
    coverage: float = 0.0  # the share of the question's words that it and its headings have
    score: float = 0.0
    certainty: float = 0.0


class _Question(NamedTuple):
    groups: Mapping[int, Mapping[str, float]]  # words that mean the same, with their weights
    kinds: frozenset[str]


# The cosines of a question and of texts, if there is an embedder that costs nothing.
Similarity = Callable[[str, Sequence[str]], Sequence[float]]


def choose_sentences(
    question: str, sources: Sequence[AnswerSource], *, similarity: Similarity | None = None, limit: int = MAX_SENTENCES
) -> list[ChosenSentence]:
    """Return the sentences that answer a question best; none if they do not seem to answer it.

    A sentence that several documents have is returned once, with all of them as its sources. A question about a name
    that no source has is not answered.
    """
    if not sources or _asks_for_unknown_name(question, sources):
        return []
    candidates = _score(_analyze_question(question), sources, question, similarity)
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.rank))
    best = candidates[: limit if similarity else _MAX_COMPARED]
    certainty = max((candidate.certainty for candidate in best), default=0.0)
    if certainty < (MIN_CERTAINTY if similarity else MIN_COVERAGE):
        return []
    sentences: list[tuple[_Candidate, list[int]]] = []
    for candidate in candidates:
        if candidate.score < _MIN_SCORE_SHARE * candidates[0].score:
            break
        same = next((other for other in sentences if _say_the_same(other[0], candidate)), None)
        if same is not None:
            if candidate.source.number not in same[1]:
                same[1].append(candidate.source.number)
        elif len(sentences) < limit:
            sentences.append((candidate, [candidate.source.number]))
    language = detect_language(question)
    sentences.sort(key=lambda item: -_score_in(language, item[0]))
    return [ChosenSentence(candidate.text, tuple(numbers), candidate.certainty) for candidate, numbers in sentences]


def _score_in(language: str, candidate: _Candidate) -> float:
    """Return the score of a sentence for somebody who asks in a language: less if it is in another one."""
    other = detect_language(candidate.text)
    return candidate.score * (_OTHER_LANGUAGE if language and other and other != language else 1.0)


def _asks_for_unknown_name(question: str, sources: Sequence[AnswerSource]) -> bool:
    """Return whether a question has a name, or a number that names something, that no source has."""
    if not find_gaps(question, [], amounts=False):
        return False  # it has no names at all, so that no source need be analyzed
    evidence = [analyze_passage(source.text, source.context) for source in sources]
    return bool(find_gaps(question, evidence, amounts=False))


def _analyze_question(question: str) -> _Question:
    analysis = analyse_query(question)
    groups: dict[int, dict[str, float]] = {}
    for term, spelling, role in zip(analysis.terms, analysis.spellings, analysis.roles, strict=True):
        if role != "gram" and spelling not in _QUESTION_FILLERS:
            groups.setdefault(term.group, {})[spelling] = term.weight
    kinds = {kind for kind, expression in _ASKED_KINDS.items() if re.search(expression, question)}
    return _Question({group: words for group, words in groups.items() if words}, frozenset(kinds))


# Words of questions and of politeness, as they are indexed.
_QUESTION_FILLERS = analyzer.STOP_WORDS | frozenset(
    """
    為る 有る 居る 成る 出来る 言う 事 物 所 時 為 様 場合 良い 下さる 頂く 何 誰 何処 何時 幾ら
    如何 日 時間 分 秒 年 月 週 人 名 個 回 件 円 度 枚 台 行 番 号 さん
    知る 教える 貰う 呉れる 見る 行く 来る 思う 遣る 其れ 此れ 其の 此の 方 どの どれ くらい 位
    many much long often far soon fast quick quickli happen get need want may can mean tell know find pleas
    """.split()
)


def _score(
    question: _Question, sources: Sequence[AnswerSource], text: str, similarity: Similarity | None
) -> list[_Candidate]:
    candidates: list[_Candidate] = []
    sentences = [list(_sentences(source.text)) for source in sources]
    words = [[_words(sentence) for sentence in group] for group in sentences]
    idf = _group_weights(question, [sentence_words for group in words for sentence_words in group])
    total = sum(idf.values()) or 1.0
    for rank, source in enumerate(sources):
        heading_words = _words(source.context)
        for index, (sentence, sentence_words) in enumerate(zip(sentences[rank], words[rank], strict=True)):
            neighbours = frozenset[str]().union(*words[rank][max(0, index - 1) : index + 2])
            coverage = in_sentence = 0.0
            for group, spellings in question.groups.items():
                match = _group_match(spellings, sentence_words)
                in_sentence += idf[group] * match / total
                coverage += (
                    idf[group]
                    / total
                    * max(
                        match,
                        _HEADING_WEIGHT * _group_match(spellings, heading_words),
                        _NEIGHBOUR_WEIGHT * _group_match(spellings, neighbours),
                    )
                )
            candidate = _Candidate(
                sentence, source, rank, sentence_words, coverage, (2 * coverage + in_sentence) / 3, coverage
            )
            if in_sentence or similarity:
                candidates.append(candidate)
    if similarity:
        texts = [f"{item.source.title} {' '.join(item.source.headings)} {item.text}" for item in candidates]
        for candidate, cosine in zip(candidates, similarity(text, texts), strict=True):
            candidate.certainty = _COVERAGE_WEIGHT * candidate.coverage + max(0.0, cosine)
            candidate.score += _SIMILARITY_WEIGHT * max(0.0, cosine)
    for candidate in candidates:
        candidate.score *= 1 + _EXPECTED_KIND_BONUS * _has_asked_kind(question, candidate.text)
        candidate.score /= 1 + _RANK_DISCOUNT * candidate.rank
    return candidates


def _group_weights(question: _Question, sentences: Sequence[frozenset[str]]) -> dict[int, float]:
    """Return how much each word of a question says: the rarer among the sentences, the more."""
    return {
        group: log(
            1 + (len(sentences) + 1) / (_UNSEEN_FREQUENCY + sum(not words.isdisjoint(spellings) for words in sentences))
        )
        for group, spellings in question.groups.items()
    }


def _group_match(spellings: Mapping[str, float], words: frozenset[str]) -> float:
    return max((weight for spelling, weight in spellings.items() if spelling in words), default=0.0)


def _words(text: str) -> frozenset[str]:
    return frozenset(term.spelling for run in analyzer.runs(text) for term in analyzer.terms(run))


def _sentences(text: str) -> Iterator[str]:
    header = ""
    lines = text.split("\n")
    for start, end in sentence_ranges(text):
        raw = text[start:end].strip()
        if raw.startswith("|"):
            if _TABLE_RULE.fullmatch(raw):
                continue
            cells = [cell.strip() for cell in raw.strip("|").split("|")]
            if not header or _is_header(raw, lines):
                header = raw
                continue
            yield _row_sentence(header, cells)
            continue
        sentence = " ".join(LIST_MARKER.sub("", text[start:end]).split())
        is_heading = raw.startswith("#") or _ENDS_WITH_LABEL.search(sentence)
        if _MIN_SENTENCE_CHARS <= len(sentence) <= _MAX_SENTENCE_CHARS and not is_heading:
            yield sentence


def _is_header(row: str, lines: Sequence[str]) -> bool:
    """Return whether a rule follows a row of a table."""
    return any(
        line.strip() == row and index + 1 < len(lines) and _TABLE_RULE.fullmatch(lines[index + 1].strip())
        for index, line in enumerate(lines)
    )


def _row_sentence(header: str, cells: Sequence[str]) -> str:
    """Return a row of a table as a line that can be read alone: Plan: Team, Price: 12 euro."""
    names = [cell.strip() for cell in header.strip("|").split("|")]
    if len(names) != len(cells):
        return " | ".join(cells)
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True) if cell)


def _has_asked_kind(question: _Question, text: str) -> bool:
    if not question.kinds:
        return False
    clauses = analyze_clauses(text)
    quantities = [quantity for clause in clauses for quantity in clause.quantities]
    return (
        ("amount" in question.kinds and any(quantity.kind == "amount" for quantity in quantities))
        or (
            "date" in question.kinds
            and any(quantity.kind != "amount" or quantity.unit == "second" for quantity in quantities)
        )
        or ("name" in question.kinds and any(clause.names for clause in clauses))
        or ("place" in question.kinds and _PLACE.search(text) is not None)
        or ("reason" in question.kinds and _REASON.search(text) is not None)
    )


def _say_the_same(first: _Candidate, second: _Candidate) -> bool:
    if first.text == second.text:
        return True
    shared = len(first.words & second.words)
    if shared < _SAME_SHARE * max(len(first.words), len(second.words), 1):
        return False
    # One number, name or negation may be all that differs, and then neither document is a source of the other sentence.
    return all(
        check_support(one.text, [analyze_passage(other.text)]).status == "supported"
        for one, other in ((first, second), (second, first))
    )
