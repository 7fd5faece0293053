"""Tell sentences that claim nothing from those that need a source: greetings, headings, "the library does not say"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bunko.answers.clauses import Clause
from bunko.answers.evidence import Evidence
from bunko.answers.statements import analyze_clauses
from bunko.answers.word_match import best_match

# "The library does not say", in the words that models and people use. The verb counts: "documents cannot be deleted"
# and 文書は破棄できません are about documents, and need a source.
_REFUSAL = re.compile(
    r"(?i)\b(?:librar(?:y|ies)|documents?|sources?|passages?|notes?|excerpts?|materials?|texts?)\b[^.!?,;:]{0,40}"
    r"(?:\b(?:do(?:es)? not|don['’]t|doesn['’]t|did not|didn['’]t) (?:\w+ly |seem to |appear to )?"
    r"(?:say|mention|state|contain|answer|specify|include|provide|describe|explain|tell|give|cover|indicate|name|discuss|show)"
    r"|\b(?:contains?|ha(?:s|ve)|gives?|provides?) no (?:information|answer|mention|details?|passage|evidence|record)"
    r"|\bsa(?:y|ys|id) nothing|\bcannot answer|\bcan['’]t answer)\b"
    r"|\b(?:there is|i found|found|contains?|has|have) no (?:information|answer|mention|passage|evidence)\b"
    r"|\bnot (?:mentioned|stated|found|specified|covered) in\b"
    r"|\bi (?:could not|couldn['’]t|cannot|can['’]t) (?:find|answer)\b"
)
_JAPANESE_REFUSAL = re.compile(
    r"(?:資料|文書|ライブラリー?|抜粋|出典|情報源|文献|メモ|ノート)(?:の中)?(?:に|では|から)[^。]{0,40}?"
    r"(?:(?:書かれて|記され|記載され|載って|含まれて|触れられて|示されて|述べられて|言及され|説明され|定められて)(?:て)?(?:い)?"
    r"|(?:わか|分か|答えら|判断でき|確認でき)(?:り|れ)?|(?:記載|情報|言及|記述|回答|答え|説明|内容)(?:[はがも])?(?:あり)?"
    r"|あり)(?:ません|ない|なかった|なく)"
    r"|(?:記載|情報|言及|記述|回答|答え)(?:[はがも])[^。、]{0,10}(?:あり|見当たり|見つかり)?(?:ません|ない)"
    r"|(?:資料|文書|情報|記載|記述|該当|内容|箇所|もの)[^。、]{0,10}(?:見つかり|見当たり)ません"
    r"|(?:わかり|分かり)ません"
)
_CLAUSE_BORDER = re.compile(r"[、，。;；:：.!?]|,\s|\s(?:but|so|and|however|therefore|thus)\s", re.IGNORECASE)
# What may stand beside a refusal: where was looked, and regret.
_BESIDE_REFUSAL = frozenset(
    """
    unfortunate unfortunately sorry search look library document source question answer say tell know determine find
    read available provided given 残念 申し訳 申し訳無い 検索 探す 調べる 確認 答える 回答 判断 資料
    文書 ライブラリー ライブラリ
    """.split()
)
# Before what they introduce, only the introduction claims nothing: "Yes, it is" does not, "yes, delete it" does.
_OPENING = re.compile(
    r"(?i)(?:hello|hi|hey|thank you|thanks?|sure|certainly|of course|yes|no|okay|ok|great question|in summary"
    r"|to summari[sz]e)\b|こんにちは|はい|いいえ|ありがとう(?:ございます)?|まとめ(?:ると)?|なお"
    r"|結論(?:として|から言うと)?|詳しくは"
)
_INTRODUCTION = re.compile(
    r"(?i)(?:here(?:'s| is| are)|below (?:is|are)|based on (?:the|your)"
    r"|according to (?:the|your) (?:library|documents?|sources?|passages?|notes?|excerpts?))\b|以下|上記|次のとおり"
)
_CLOSING = re.compile(
    r"(?i)(?:i hope|hope this|let me know|feel free|please (?:let|ask|note that this)|is there anything|would you like"
    r"|thank(?:s| you) for (?:your question|asking))\b|ご質問|ご不明|お役に立|何か(?:他|ほか)"
)
_QUESTION_END = ("?", "？")
_MAX_CLOSING_WORDS, _MAX_INTRODUCTION_WORDS = 6, 3
_MAX_UNKNOWN_WORDS = 2  # of a heading: words that neither a source nor the question has


def is_refusal(sentence: str) -> bool:
    """Return whether a sentence says that the sources do not answer the question."""
    return _find_refusal(sentence) is not None


def claims_nothing(text: str, *, is_layout: bool, known: Sequence[Evidence]) -> bool:
    """Return whether a sentence needs no source; `known` are the sources and the question.

    Names and numbers need one in any case: the caller checks them.
    """
    clauses = analyze_clauses(text)
    if not clauses or text.rstrip("」』\"'”）)").endswith(_QUESTION_END):
        return True
    if (refusal := _find_refusal(text)) is not None:
        return _refuses_only(text, refusal)
    word_count = _word_count(text)
    if _CLOSING.match(text):
        return word_count <= _MAX_CLOSING_WORDS
    if _INTRODUCTION.match(text) and word_count <= _MAX_INTRODUCTION_WORDS:
        return not any(clause.negations for clause in clauses)
    if opening := _OPENING.match(text):
        return not _word_count(text[opening.end() :])
    return is_layout and _is_heading(clauses, known)


def _word_count(text: str) -> int:
    return sum(len(clause.words) + len(clause.quantities) for clause in analyze_clauses(text))


def _is_heading(clauses: Sequence[Clause], known: Sequence[Evidence]) -> bool:
    everywhere = [clause for evidence in known for clause in (*evidence.clauses, *evidence.context)]
    unknown = [word for clause in clauses for word in clause.words if not best_match(word, everywhere)[0]]
    return len(unknown) <= _MAX_UNKNOWN_WORDS and not any(clause.negations for clause in clauses)


def _find_refusal(text: str) -> re.Match[str] | None:
    return _REFUSAL.search(text) or _JAPANESE_REFUSAL.search(text)


def _refuses_only(text: str, refusal: re.Match[str]) -> bool:
    """Return whether a sentence says nothing beside its refusal; in English, what is not said comes after the verb."""
    borders = [match.end() for match in _CLAUSE_BORDER.finditer(text)]
    start = max((border for border in borders if border <= refusal.start()), default=0)
    end = refusal.end()
    if refusal.re is _REFUSAL:
        end = min((border for border in borders if border > end), default=len(text))
    beside = [*analyze_clauses(text[:start]), *analyze_clauses(text[end:])]
    return not any(clause.quantities for clause in beside) and all(
        word.text.lower() in _BESIDE_REFUSAL or not _BESIDE_REFUSAL.isdisjoint(word.spellings)
        for clause in beside
        for word in clause.words
    )
