"""List stop words of every subject, English and Japanese, and common headings; weigh words that say little."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bunko.text.analyzer import QUESTION_WORDS, STOP_WORDS

ENGLISH = STOP_WORDS | frozenset(
    """
    able about above across add added adding additional after again against all allow allowed allows
    almost along already also although always am among another any anyone anything apply around ask
    available away back based because become becomes before began begin behind being below best
    better between big both bring called calls came cannot cause caused causes certain changed
    changing choose click come comes common complete consider contain contained containing contains
    correct create created creates creating current currently days define defined defines depending
    describe described describes different directly disregard done down during each early easily
    easy edit either else enable end enough ensure enter especially even ever every everyone
    everything except execute existing expect expected extra fact far few fill find first follow
    followed following follows forget found full further gave general generally get gets getting
    give given gives go goes going good got great happen happens having help helps hence her here
    hers him his hold holds however idea ignore immediately important include included includes
    including indeed inside instead instruction instructions introduction it's itself just keep
    keeps kinds know known large last late later learn least leave left less let let's lets like
    likely little live long look looking looks lot made main mainly make makes making many may maybe
    mean means might more most mostly move much must named near nearly need needed needs never new
    next nor normal nothing now obey often old once one ones only onto open optional other others
    otherwise out over override overview own particular particularly per perform performed performs
    perhaps please possible pre prepare press previous previously prior probably properly provide
    provided provides put quite rather read reading ready real really recent recently refer
    regarding related remain remember remove return returns right run running runs said same save
    saw say says second see seen select separate set sets several shall she show shown shows similar
    similarly simple simply since single slightly small some someone something sometimes soon
    specific specified specify start started starting starts still stop strongly sub summary sure
    take taken takes tell ten than thank thanks that's there's thereby therefore think third though
    three through throughout thus together too top total toward towards tried true try trying turn
    two typically under understand unless until up updated upon us use used useful uses using usual
    usually various versa very via vice want wants well went whatever whenever wherever whether
    while whole whose wide within without working works write writing written wrong yes yet yourself
    zero
    """.split()
)
# Nouns that say nothing alone, but something with another: health check, user interface.
ENGLISH_NOUNS = frozenset(
    """
    build building call case cases change changes check content contents copy day default
    description detail details example examples figure file files image information item items kind
    line lines list name names note notes number numbers option options page pages part parts people
    place point points problem problems process purpose reason reference references result results
    section sections setting side state step steps table text thing things time times title topic
    topics type types update user users value values view way ways word words work
    """.split()
)
# Nouns; words that their part of speech already excludes are not listed.
JAPANESE = frozenset(
    """
    こと 事 もの 物 ところ 所 とき 時 ため 為 よう 様 場合 方法 手順 例 一例 以下 以上 以前 以後
    以降 以外 以内 上記 下記 次 前 後 上 下 中 内 外 間 際 他 別 各 今回 今後 現在 最近 最後 最初
    最終 途中 同様 同時 同じ 対象 内容 部分 一部 全部 全体 全て 一般 通常 基本 特定 可能 必要 不要
    重要 有効 無効 利用 使用 実行 設定 作成 追加 変更 削除 更新 確認 表示 指定 選択 入力 出力 開始
    終了 完了 実施 説明 紹介 参照 参考 概要 目次 はじめ まとめ 注意 備考 補足 関連 項目 詳細 情報
    資料 文書 ドキュメント ページ ファイル テキスト データ 図 表 名前 名称 種類 種別 形式 状態 結果 理由 原因
    目的 問題 課題 対応 処理 機能 操作 動作 影響 関係 意味 考え 存在 発生 提供 準備 用意 記載 記述
    記入 定義 質問 回答 方 人 自分 私 我々 皆 あなた 彼 彼女 誰 何 今 今日 昨日 明日 今年 昨年 年 月
    日 時間 期間 日時 日付 時期 時点 一つ 二つ 三つ ひとつ ふたつ 複数 多く 少し 程度 最大 最小 全
    単位 数 値 量 場所 位置 先頭 末尾 冒頭 一覧 ステップ ポイント ケース サンプル メモ コツ 無視
    指示 命令 点 形 面 気 手 目 口 力 元 型 番 番号 者 側 的 性 化 用 等 など 代わり おすすめ とおり
    通り まま わけ はず つもり
    """.split()
)
# A compound with such an ending is about the words before it: 環境構築方法 is about 環境構築.
COMPOUND_TAILS = frozenset(
    """
    方法 手順 場合 等 など 時 後 前 中 際 目 以上 以下 以外 例 一覧 概要 内容 こと もの ため 的 名
    達 たち さん
    """.split()
)
# Headings that any document may have; _ stands for a space.
COMMON_HEADINGS = frozenset(
    heading.replace("_", " ")
    for heading in """
    table_of_contents contents toc license licence mit_license copyright all_rights_reserved
    rights_reserved readme changelog change_log release_notes see_also external_links
    further_reading introduction overview conclusion faq frequently_asked_questions getting_started
    get_started quick_start quickstart prerequisites requirements appendix glossary index about
    contact contact_us privacy_policy terms_of_service cookie_policy key_points last_updated
    edit_this_page previous_page next_page back_to_top code_of_conduct work_in_progress 目次 索引
    ライセンス 著作権 はじめに おわりに 概要 まとめ 参考文献 関連項目 外部リンク 脚注 出典 注釈 付録
    更新履歴 変更履歴 次のステップ 前のページ 次のページ 前提条件 必要条件 利用規約 個人情報保護方針
    お問い合わせ 行動規範 よくある質問 トップページ
    """.split()
)


WEIGHTS_PATH = Path(__file__).with_name("light_words.tsv")
# A word with at most this weight says so little that a text need not have it to have every word of a query.
MAX_LIGHT_WEIGHT = 0.5
# Words that build a sentence, as they are indexed. Questions and answers share them without being about the same, and
# where most texts are in another language, they are rare as well.
FUNCTION_WORDS = frozenset(
    """
    為る 居る 有る 在る 出来る 貰う 呉れる 仕舞う 為さる 致す 御座る 参る 仰る 伺う 申す 戴く 御
    each own avail any some other such also more most just onli veri one get
    """.split()
)
_FUNCTION_WEIGHT = 0.2  # 0 and 0.4 were no better on judged sets, see docs/quality.md
_QUESTION_WEIGHT = 0.3  # of a question word that is in too few of the questions


def query_weight(spelling: str) -> float:
    """Return what a word of a query counts, 0.1 to 1; most words count in full."""
    return _weights().get(spelling, 1.0)


@cache
def _weights() -> dict[str, float]:
    rows = (line.split("\t") for line in WEIGHTS_PATH.read_text(encoding="utf-8").splitlines())
    weights = dict.fromkeys(QUESTION_WORDS, _QUESTION_WEIGHT) | {word: float(weight) for word, weight in rows}
    return weights | {word: min(_FUNCTION_WEIGHT, weights.get(word, 1.0)) for word in FUNCTION_WORDS}
