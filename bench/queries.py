"""Queries of several kinds over the generated pages."""

from __future__ import annotations

import re

from bench import corpus

_ONE_WORD = {
    "common kanji": ("設定", "検索", "文書"),
    "kanji": ("紅葉", "温泉", "津波"),
    "katakana": ("サーバー", "データベース", "カレンダー"),
    "English": ("server", "validation", "telescope"),
}
_QUESTIONS = {
    "Japanese phrase": ("環境構築の方法", "検索結果の評価", "障害の復旧手順"),
    "Japanese question": (
        "データベースの障害から復旧する手順を教えてください",
        "検索の精度と性能を評価した実験の結果はどこにありますか",
        "温泉旅館の料理について調べた資料はありますか",
    ),
    "English question": (
        "how to restore a database backup safely",
        "which cache option do I need to configure for the server",
        "validation error when the form request has no token",
    ),
    "mixed": ("server の設定を変更する command", "GitHub Actions で test を実行する", "passwordの暗号化とtoken"),
}

# Of each question, other wordings and a passage as it might stand in the answer.
_WORDINGS = {
    "データベースの障害から復旧する手順を教えてください": (
        ("DB のリストアの手順", "障害のあとバックアップからデータを戻す方法", "データベース 復旧 作業手順書"),
        "障害が起きたときは、まずデータベースを停止し、前日のバックアップから復元してから、更新の履歴を順に適用します。",
    ),
    "温泉旅館の料理について調べた資料はありますか": (
        ("旅館で出る夕食の献立", "温泉宿の食事 調査", "和食と会席料理の報告"),
        "調べた温泉旅館では、夕食に地元の野菜と魚を使った料理が並び、朝食には味噌汁と豆腐が出ます。",
    ),
    "which cache option do I need to configure for the server": (
        ("server cache settings", "enable caching of responses in the config", "cache size and expiry parameter"),
        "Set the cache option of the server to the number of seconds for which a response may be used again, and"
        " restart the server so that the new configuration is read.",
    ),
}

# Questions that are near none of the generated pages.
SOMETHING_ELSE = (
    "who composed the opera about a barber in Seville",
    "how deep do whales dive for squid",
    "rules of offside in football",
    "why did the Roman republic end",
    "symptoms of a vitamin D deficiency",
    "how to prune an apple tree in winter",
    "what is the capital of Mongolia",
    "price of a second-hand bicycle",
    "赤ちゃんの夜泣きはいつまで続きますか",
    "将棋で穴熊囲いを崩す方法",
    "江戸時代の参勤交代の費用",
    "冬に咲く花の種類",
    "確定申告で医療費控除を受けるには",
    "富士山が最後に噴火した年",
    "猫が毛玉を吐くとき",
    "ワインと日本酒の違い",
)


def worded_questions() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return questions, each with three other wordings and a passage; together they are five times as long."""
    return _WORDINGS


def one_word() -> dict[str, tuple[str, ...]]:
    """Return single words by kind; the rare ones are names that occur in a few chunks of a corpus of any size."""
    return _ONE_WORD | {"rare name": _first_matches(r"。([ァ-ン]{3,4})の")}


def questions() -> dict[str, tuple[str, ...]]:
    """Return queries of several words by kind."""
    return {"identifier": _first_matches(r"[A-Z]{3}-\d{4}")} | _QUESTIONS


def all_queries() -> list[str]:
    """Return the queries of all kinds."""
    return [query for kind in (one_word() | questions()).values() for query in kind]


def _first_matches(pattern: str) -> tuple[str, ...]:
    # The first pages are part of a corpus of any size.
    texts = (text for _, text in corpus.pages(3))
    return tuple(re.findall(pattern, text)[0] for text in texts)
