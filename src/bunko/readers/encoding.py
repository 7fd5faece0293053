"""Decode bytes of unknown encoding, among them the older ones of Japanese and of the West."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from bunko.errors import SourceError

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_ISO_2022_ESCAPES = re.compile(rb"\x1b(?:\$[@B(]|\([IJ])")
_ISO_2022_CODECS = ("iso2022_jp", "iso2022_jp_ext", "iso2022_jp_2004")

# Everything below the space but tab, line ends, form feed and escape (which ISO-2022-JP and terminals use).
_CONTROL_BYTES = bytes([*range(9), 11, *range(14, 27), *range(28, 32), 127])
_MAX_CONTROL_SHARE = 0.1  # real logs stay far below, compressed data and programs far above


def decode(data: bytes) -> tuple[str, str]:
    """Return the text without its byte order mark, and the name of the Python codec that reads it."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            name = codec.removesuffix("-sig").upper()
            return _decode_first_valid(
                data, (codec,), f"it begins with a {name} byte order mark, but is not valid {name}"
            )
    controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if controls:
        pass

        if decoded := decode_utf_16(data):
            return decoded
    if 0 in data:
        raise _binary_error("it contains NUL bytes")
    if controls > len(data) * _MAX_CONTROL_SHARE:
        raise _binary_error("it contains too many control characters")
    if data.isascii() and _ISO_2022_ESCAPES.search(data):
        return _decode_first_valid(data, _ISO_2022_CODECS, "it contains ISO-2022-JP escape sequences, but is not valid")
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # Most files never get here, so the patterns for guessing are loaded only now.
        pass

        if decoded := decode_legacy(data):
            return decoded
        if looks_like_utf_8(data):
            reason = f"it looks like UTF-8, but is truncated or damaged at byte {error.start}"
        else:
            reason = f"it is not valid UTF-8 at byte {error.start}, and no Japanese, Chinese or Western encoding fits"
        raise _encoding_error(reason) from error


def _decode_first_valid(data: bytes, codecs: Sequence[str], reason: str) -> tuple[str, str]:
    for codec in codecs:
        try:
            return data.decode(codec), codec
        except UnicodeDecodeError:
            continue
    raise _encoding_error(reason)


def _binary_error(reason: str) -> SourceError:
    return SourceError(f"The file is not text: {reason}", hint="Exclude the file, or save its text as UTF-8.")


def _encoding_error(reason: str) -> SourceError:
    return SourceError(f"The encoding of the file is unknown: {reason}", hint="Save the file as UTF-8.")


_FREQUENT_KANJI = frozenset(
    "一二三四五六七八九十百千万日月火水木金土年時分半前後上下中外内左右大小多少高低長短新古明早近遠東西南北春"
    "夏秋冬朝昼夜人男女子父母兄弟友家族名私自他者員会社学校生先教室本文字書読語話言聞見行来帰出入立休住食飲買"
    "売使作開閉始終待持取知思考習勉強問題質答意味方法事物所場国都市県区町村地図駅道路車電気機械計画予定表記録"
    "資料案報告連絡変更確認設利用針管理業務仕様発検索結果関係対応合必要可能由原因目的容種類数値均最全部各現在"
    "過去未世界経済政治律条項規則制度権義契約申請手続承許禁止注安保護環境情通信技術研究科医療健康病院薬費額価"
    "格支払求収税算決銀商品販購顧客店舗営議産株式証券海山川田野天空石花草動鳥魚犬音楽歌色白黒赤青美真正直心力"
    "体足口耳頭身命運転建築工製造加減負増追削除修復元実験拠存解説示指令号番第次回量化性無有不非同等以及又当該"
    "象際初期間限届得点位置形態状況型線面角構成功失敗試選択判断準備参照引献章節代主基重特別普単純複雑簡困難易"
    "列例素呼返処配受宣公付含渡戦換常提組館依供細演接再軍送込登属王適詳側装和異反進起島完切移件流向識任親民扱"
    "効集府継推標評害改城共両着交活与介比域相球伝何述静略省調順論州神役彼般融総士鉄辺統降挙割洋訳良血掲影張系"
    "載施借賞囲想残視江優広導速器響今京領違松称像英紹陸独死光太投史勝放従末整補働"
)
_FREQUENT_HANZI = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道"
    "行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意"
    "无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什"
    "二等产或新己制身果加西月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各"
    "入几口认条平系气题活更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直资命山金指许统"
    "区保至形社便空决治展科司五基眼书非则听白却界达光放强即像难且权思完设式色路记南品住告类求据程北边张该交规"
    "万取望术领共确传师观清今切院让识候带导争运需请码网络户服器载配置测试错误输返函参您吗吧呢哪谁怎版编译调库"
    "组织"
)
_IDEOGRAPH = re.compile(r"[一-龥]")
_KANA_LETTER = re.compile(r"[ぁ-ゖァ-ヺ]")
_MIN_KANA_SHARE = 0.1  # of kana and kanji; Japanese with fewer is a list of names or headings
_MIN_FREQUENT_SHARE = 0.3
_MIN_FREQUENT_CHARS = 2  # a single one may be an accident
_MIN_KANJI = 20  # fewer may all be rare


def may_be_japanese(text: str) -> bool:
    """Return whether a text has kana, frequent kanji, or too few kanji to tell."""
    if _has_kana_letters(text):
        return True
    kanji_count = len(_IDEOGRAPH.findall(text))
    return kanji_count < _MIN_KANJI or _count_frequent(text, _FREQUENT_KANJI) >= _MIN_FREQUENT_SHARE * kanji_count


def is_rather_chinese(chinese: str, japanese: str) -> bool:
    """Return whether bytes are rather Chinese, given both readings; the Japanese one may be empty."""
    if _has_kana_letters(japanese):
        return False
    hanzi_count, kanji_count = len(_IDEOGRAPH.findall(chinese)), len(_IDEOGRAPH.findall(japanese))
    frequent_hanzi = _count_frequent(chinese, _FREQUENT_HANZI)
    frequent_kanji = _count_frequent(japanese, _FREQUENT_KANJI)
    if frequent_hanzi < max(_MIN_FREQUENT_CHARS, _MIN_FREQUENT_SHARE * hanzi_count):
        return False
    return frequent_hanzi * max(1, kanji_count) > frequent_kanji * hanzi_count


def _has_kana_letters(text: str) -> bool:
    kana_count = len(_KANA_LETTER.findall(text))
    return kana_count > 0 and kana_count >= _MIN_KANA_SHARE * (kana_count + len(_IDEOGRAPH.findall(text)))


def _count_frequent(text: str, frequent: frozenset[str]) -> int:
    return sum(char in frequent for char in text)


# The plain codec first; the wider one has ① and other characters that vendors added.
_JAPANESE_CODECS = (("cp932", "shift_jis_2004"), ("euc_jp", "euc_jis_2004"), ("utf-16-le",), ("utf-16-be",))
_NON_ASCII_BYTE = re.compile(rb"[\x80-\xff]")
_UTF_8_SEQUENCE = re.compile(rb"[\xe1-\xef][\x80-\xbf]{2}")
_SAMPLE_CHARS = 4000  # characters outside ASCII that are scored; scores settle after a few dozen
_NON_ASCII_CHAR = re.compile(r"[^\x00-\x7f]")
_KANA = re.compile(r"[ぁ-ゖァ-ヺー々〆、-〃「-】・！-～￠-￥]")
_HALF_WIDTH = re.compile(r"[｡-ﾟ]")
_KANJI = re.compile(r"[一-龥]")
_NEUTRAL = re.compile(r"[¢-÷‐-⏿①-⓿─-⟿〄-〠㈠-㏿Α-ωА-ё]")
# It’s in Windows-1252 is It痴 in Shift_JIS: a single kanji attached to a Latin word is a misread quote.
_STRAY_KANJI = re.compile(r"(?<=[A-Za-z])[一-龥](?![^\x00-\x7f])")
_ACCENTED_LETTER = re.compile(r"[À-ÖØ-öø-ÿŒœŠšŽžŸ](?<=[A-Za-zÀ-ž].)|[À-ÖØ-öø-ÿŒœŠšŽžŸ](?=[A-Za-zÀ-ž])", re.S)
_WESTERN_PUNCTUATION = re.compile(r"[‘’“”–—…•€£§©®™°±²³½¼¾µ«»¿¡·\xa0]|(?<!\S)[àÀéÉèêôóáíúäöåæø](?=\s|\Z)")
_MAX_WESTERN_SHARE = 0.4  # even Vietnamese or Icelandic text has fewer accents than this
_SURE_SCORE = 0.5  # right guesses score 0.7 and more, wrong ones below 0.3
_POSSIBLE_SCORE = -0.5  # half-width katakana or symbols alone, where nothing else fits


def decode_utf_16(data: bytes) -> tuple[str, str] | None:
    """Decode UTF-16 without a byte order mark: each ASCII character has a NUL, each kana the same high byte."""
    best = (_SURE_SCORE, "", "")
    for codec in ("utf-16-le", "utf-16-be"):
        text = _decode_strict(data, codec)
        if text and "\0" not in text:
            sample = text[:_SAMPLE_CHARS]
            ascii_share = 1 - len(_NON_ASCII_CHAR.findall(sample)) / len(sample)
            if 0 in data or _has_kana(sample):
                best = max(best, (ascii_share + (1 - ascii_share) * _japanese_score(sample), text, codec))
    return best[1:] if best[1] else None


def _has_kana(text: str) -> bool:
    # Any two bytes make some UTF-16 character; kana among them show that the text really is UTF-16.
    return len(_KANA.findall(text)) * 10 >= len(text)


def decode_legacy(data: bytes) -> tuple[str, str] | None:
    """Decode Japanese, Chinese or Western text, or UTF-16 without a byte order mark; return None if nothing fits."""
    best = (-9.0, "", "")
    for family in _JAPANESE_CODECS:
        for codec in family:
            if (text := _decode_strict(data, codec)) is not None:
                score = _japanese_score(text)
                if score > best[0] and (codec[:3] != "utf" or _has_kana(text)):
                    best = (score, text, codec)
                break
    japanese_sample = _sample(best[1])
    is_damaged_utf_8 = looks_like_utf_8(data)
    chinese = None if is_damaged_utf_8 else _decode_strict(data, "gb18030")
    if chinese and is_rather_chinese(_sample(chinese), japanese_sample):  # most of it is valid EUC-JP too
        return chinese, "gb18030"
    if not may_be_japanese(japanese_sample):
        best = (-9.0, "", "")  # Korean or another encoding of Chinese
    if best[0] >= _SURE_SCORE:
        return best[1], best[2]
    if is_damaged_utf_8:
        return None
    codec = "cp1252"
    western = _decode_strict(data, codec)
    if western is None:
        codec = "latin-1"
        western = data.decode(codec)
    if _western_score(western) >= _SURE_SCORE:
        return western, codec
    if best[0] > _POSSIBLE_SCORE:
        return best[1], best[2]
    return None


def may_be(text: str, codec: str) -> bool:
    """Return whether a text looks like the language of the legacy codec that decoded it; True for other codecs."""
    if codec in ("cp932", "euc_jp"):
        return may_be_japanese(_sample(text))
    return codec != "gb18030" or is_rather_chinese(_sample(text), "")


def looks_like_utf_8(data: bytes) -> bool:
    """Return whether bytes that are not valid UTF-8 are damaged UTF-8.

    A truncated or damaged file often decodes as Shift_JIS, to garbage; a real Shift_JIS file hardly contains UTF-8
    sequences.
    """
    return 2 * len(b"".join(_UTF_8_SEQUENCE.findall(data))) > len(_NON_ASCII_BYTE.findall(data))


def _decode_strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _sample(text: str) -> str:
    """Return the first characters outside ASCII."""
    return "".join(match[0] for match in islice(_NON_ASCII_CHAR.finditer(text), _SAMPLE_CHARS))


def _japanese_score(text: str) -> float:
    """Return how much the characters outside ASCII look like Japanese, up to 1."""
    sample = _sample(text)
    if not sample:
        return 1.0
    kanji = "".join(_KANJI.findall(sample))
    # In Shift_JIS the lead bytes up to 98 are the everyday kanji of level 1; the rare ones of level 2 follow.
    common_kanji = sum(lead <= 0x98 for lead in kanji.encode("shift_jis", "ignore")[::2])
    kana = len(_KANA.findall(sample))
    half_width = len(_HALF_WIDTH.findall(sample))
    other = len(sample) - kana - len(kanji) - half_width - len(_NEUTRAL.findall(sample))
    stray_kanji = len(_STRAY_KANJI.findall(text[: _SAMPLE_CHARS * 4]))
    return (kana + common_kanji - 0.5 * (len(kanji) - common_kanji) - 0.4 * half_width - other - 2 * stray_kanji) / len(
        sample
    )


def _western_score(text: str) -> float:
    """Return how much the characters outside ASCII look like accents and quotes of Western text, up to 1."""
    sample = text[: _SAMPLE_CHARS * 4]
    non_ascii = len(_NON_ASCII_CHAR.findall(sample))
    if not non_ascii:
        sample = text
        non_ascii = len(_NON_ASCII_CHAR.findall(sample))
    if non_ascii > len(sample) * _MAX_WESTERN_SHARE:
        return 0.0
    return (len(_ACCENTED_LETTER.findall(sample)) + len(_WESTERN_PUNCTUATION.findall(sample))) / max(non_ascii, 1)
