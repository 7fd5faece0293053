"""Tell what a text denies: negations of Japanese and English, and words that mean the opposite of others."""

from __future__ import annotations

import re
from functools import cache

# Negations that affirm: "must", "perhaps", "only", "not only". They are replaced before a text is analyzed.
_AFFIRMING = (
    (
        re.compile(r"(?:なければ|なくては|なくちゃ|ないと|ねば)(?:なら|なり|いけ|だめ|ダメ)(?:ない|ません|ぬ|ず)?"),
        "必要がある",
    ),
    (re.compile(r"かもしれ(?:ない|ません|ず)"), "かも"),
    (re.compile(r"しか(?:ない|ありません|なく)"), "だけ"),
    (re.compile(r"(?:だけ|のみ)(?:で|では|じゃ)?なく|のみならず"), "と"),
    (re.compile(r"間違い(?:ない|なく|ありません)"), "確実"),
    (re.compile(r"(?i)\bnot only\b"), "both"),
    (re.compile(r"(?i)\bno (?:more|later|less|fewer|longer) than\b"), "than"),
    (re.compile(r"(?i)\bno doubt\b"), "surely"),
)
# Auxiliary verbs of Japanese that negate, as they are written.
JAPANESE_NEGATIONS = frozenset("ない なかっ なく なけれ なかろ ぬ ん ず ざる ね まい ねえ".split())
# Words that deny what comes before them, by their lemma.
JAPANESE_DENIALS = frozenset("無い 無し 不可 不能 禁止 禁ずる 厳禁 不許可 拒否 拒む 却下".split())
# Prefixes that deny the word after them: 未署名, 非公開.
JAPANESE_PREFIXES = frozenset("未 非 不 無".split())
# Words that deny another word.
JAPANESE_OPPOSED = {"不要": "必要", "不必要": "必要", "不可能": "可能", "無効": "有効", "未定": "定まる"}
# Words that deny the content word after them, and those that deny all of their clause.
ENGLISH_NEGATIONS = frozenset("not never cannot no without non hardly rarely seldom barely scarcely".split())
ENGLISH_DENIALS = frozenset("none nobody nothing neither nowhere".split())
ENGLISH_PROHIBITIONS = frozenset("forbid forbidden prohibit ban disallow unabl impossibl refus".split())

# A meaning and its opposite, as regular expressions over the written text, in both languages.
_OPPOSITES = (
    (
        r"\bbefore\b|\buntil\b|\bprior to\b|以前|までに|(?<![以午])前(?!提|年|日|回|月|期|半|者)",
        r"\bafter\b|\bsince\b|\bonce\b|以降|以後|(?<![午今最])後(?!者|半)",
    ),
    (
        r"\bat least\b|\bmore than\b|\bover\b|\babove\b|\bexceed|以上|超",
        r"\bat most\b|\bless than\b|\bfewer than\b|\bunder\b|\bbelow\b|\bup to\b|以下|以内|未満"
        r"|(?<=[日回人円間月年個件名点枚%])まで(?!に)",
    ),
    (r"\benabl|有効", r"\bdisabl|無効"),
    (r"\ballow|\bpermit|許可|認め(?!ま?[せな])", r"\bforb|\bprohibit|\bban(?:s|ned)?\b|禁止|禁ず"),
    (
        r"\bincreas|\brais|\brise|\brose\b|増|引き上げ|値上げ",
        r"\bdecreas|\breduc|\blower|\bfell\b|\bfall|減|引き下げ|値下げ",
    ),
    (r"\bstart|\bbegin|\bbegan|開始|始ま", r"\bend(?:s|ed|ing)?\b|\bfinish|\bstop|終了|終わ"),
    (r"\blarge|\bbig|\bgreater|大き", r"\bsmall|\blittle\b|小さ"),
    (r"\bhigh|高[いくめ]", r"\blow(?:er|est)?\b|低[いくめ]|安[いくめ]"),
    (r"\bold(?:er|est)?\b|古[いく]|旧", r"\bnew(?:er|est)?\b|新し"),
    (r"\bmax|最大|最多", r"\bmin(?:imum)?\b|最小|最少"),
    (r"\bmandatory|\brequired|必須|義務", r"\boptional|任意"),
    (r"\bfree of charge|\bfor free|\bis free|無料", r"\bpaid\b|\bcosts?\b|有料"),
    (r"\bdomestic|国内", r"\boverseas|\babroad|\bforeign|海外|国外"),
    (r"\bdaytime|昼|日中", r"\bnight(?!s)|夜"),
    (r"\blater\b|遅[いくれ]", r"\bearlier\b|早[いくめ]"),
    (r"\bmorning|午前|朝", r"\bevening|\bafternoon|午後|夕"),
    (r"\binternal|社内|内部", r"\bexternal|社外|外部"),
    (r"\badd(?:s|ed)?\b|追加", r"\bremov|\bdelet|削除|消去"),
    (r"\baccept|\bapprov|承認|受け入れ", r"\breject|\brefus|\bdeclin|却下|拒否"),
    (r"\bopen|開[いくけ]", r"\bclos|閉|締め切"),
    (r"\bfirst\b|最初", r"\blast\b|最後"),
    (r"\bfast|\bquick|速[いく]", r"\bslow|遅[いく]"),
    (r"\bwith\b|付き|あり", r"\bwithout\b|なし|抜き"),
    (r"\bboth\b|両方", r"\bneither\b|\bonly one\b|片方"),
    (r"\boutside\b", r"\bin(?:side)?\b"),
    (r"\bleft\b|左", r"\bright\b|右"),
    (r"\bnorth|北", r"\bsouth|南"),
    (r"\beast|東", r"\bwest|西"),
)

# Words of which a statement has one: another one in its place says something else.
_ALTERNATIVES = tuple(
    re.compile(expression, re.IGNORECASE)
    for expression in (
        "前々日|前日|当日|翌々日|翌日",
        "先々月|前月|先月|当月|今月|翌々月|翌月|来月",
        "前年|昨年|当年|今年|翌々年|翌年|来年",
        "社長|副社長|会長|専務|常務|部長|次長|課長|係長|主任",
        "毎日|毎週|毎月|毎年",
        r"\bdaily\b|\bweekly\b|\bmonthly\b|\byearly\b",
    )
)
# A number that is only exceeded or not reached is another one; anything like it in the passage may mean the same.
_STRICT_BOUND = re.compile(r"\b(?:less|fewer|more) than\b(?! (?:one|once)\b)|未満|を超え", re.IGNORECASE)
_ANY_BOUND = re.compile(
    r"\bthan\b|\bunder\b|\bbelow\b|\bover\b|\babove\b|\bexceed|\bbeyond\b|\bat (?:least|most)\b|\bup to\b|\bwithin\b"
    r"|\bm(?:ax|in)(?:imum)?\b|\blimit|\bat the (?:latest|earliest)\b|\buntil\b|\bby\b"
    r"|以上|以下|以内|未満|超|まで|最[大低小高多少]|限度|上限|下限",
    re.IGNORECASE,
)


def affirm(text: str) -> str:
    """Return a text in which double negations and other negations that affirm are replaced."""
    for pattern, replacement in _AFFIRMING:
        text = pattern.sub(replacement, text)
    return text


def is_english_negation(word: str) -> bool:
    """Return whether an English word denies the word after it: not, cannot, doesn't."""
    return word in ENGLISH_NEGATIONS or word.endswith(("n't", "n’t"))


def opposite(claim: str, text: str) -> str:
    """Return the words of a claim whose opposite a text says without saying the words themselves, or ""."""
    for first, second in _opposites():
        for claimed, denied in ((first, second), (second, first)):
            match = claimed.search(claim)
            if match and not denied.search(claim) and denied.search(text) and not claimed.search(text):
                return match[0]
    return _alternative(claim, text)


def _alternative(claim: str, text: str) -> str:
    """Return the word of a claim in whose place a text has another: 当日 for 前日, or ""."""
    for pattern in _ALTERNATIVES:
        claimed, said = ({match[0] for match in pattern.finditer(part)} for part in (claim, text))
        if claimed and said and not claimed & said:
            return min(claimed)
    return ""


def missing_bound(claim: str, text: str) -> str:
    """Return a bound of a claim if a text has none: "less than 35 days" where it is 35 days."""
    match = _STRICT_BOUND.search(claim)
    return match[0] if match and not _ANY_BOUND.search(text) else ""


@cache
def _opposites() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    return tuple((re.compile(first, re.IGNORECASE), re.compile(second, re.IGNORECASE)) for first, second in _OPPOSITES)
