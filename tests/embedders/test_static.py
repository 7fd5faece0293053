"""The model that comes with bunko: the files we measured, and for every text one vector that means something."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko.embedders import static, subword_table
from bunko.embedders.embed import embed_and_check
from bunko.errors import EmbedderError
from bunko.runtime.packages import find_package
from bunko.text.analyzer import CORRECTIONS_PATH as LOANWORDS
from bunko.text.bridge import TABLE_PATH as BRIDGE
from bunko.text.sentences import passage_ranges
from bunko.text.stopwords import WEIGHTS_PATH as LIGHT_WORDS
from bunko.text.subwords import MODEL_PATH as PIECES
from bunko.text.subwords import PIECES_PATH as SORTED_PIECES

# What docs/model.md says about the model was measured with these files.
SHIPPED = {
    PIECES: "0051fe9a40134ba2bc310ac4c3cf98f60a6d0350fd9558f898ad7b68946adbd0",
    SORTED_PIECES: "f84df7b11560dd71c8b269c268041d4a6ebd2cbe527e7cfacf0f44ae32a14e78",
    LIGHT_WORDS: "2835ea4119d59c762b28d2ee03ff3cf07eee5a89d72693a90d81bb188078c313",
    LOANWORDS: "0a86657363d9d67cfd1aa1fdbfb0438d829e50a5c1de5bd1659b9ae93a46b7d7",
    BRIDGE: "89cbeba777c39edf47f6e022f505dc130a55b951908038873660162eaef81749",
    subword_table.TABLE: "2ca390116752773abaabb9b2f8b098c7640add148c220a60d0a00811c0b19f07",
}

PAIRS = [
    ("明日は雨が降るそうです。", "They say it will rain tomorrow."),
    ("駅まで歩いて十分かかります。", "It takes ten minutes to walk to the station."),
    ("猫が窓のそばで寝ている。", "A cat is sleeping by the window."),
    ("毎朝コーヒーを一杯飲みます。", "I drink a cup of coffee every morning."),
    ("図書館で本を三冊借りた。", "I borrowed three books from the library."),
    ("病院の予約を変更したい。", "I want to change my appointment at the hospital."),
    ("この店のパンはとても美味しい。", "The bread of this shop is delicious."),
    ("子供たちは公園で遊んでいる。", "The children are playing in the park."),
    ("飛行機の切符はいくらですか。", "How much is a plane ticket?"),
    ("祖母の誕生日に花を贈った。", "I gave flowers to my grandmother for her birthday."),
    ("財布をなくして警察に行った。", "I lost my wallet and went to the police."),
    ("夏休みに海で泳ぎたい。", "I want to swim in the sea in the summer holidays."),
    ("玉ねぎを細かく刻んで炒める。", "Chop the onions finely and fry them."),
    ("彼女はピアノを上手に弾く。", "She plays the piano well."),
    ("冬の山は雪で真っ白だ。", "In winter the mountains are white with snow."),
    ("会議は来週の月曜日に延期された。", "The meeting was postponed to next Monday."),
    ("家賃は毎月末に払ってください。", "Please pay the rent at the end of each month."),
    ("歯が痛いので歯医者に行く。", "I have a toothache, so I am going to the dentist."),
    ("フォームの入力値を送信前に検証する。", "Validate the values of a form before it is submitted."),
    ("パスワードを忘れた場合は再設定してください。", "Reset your password if you have forgotten it."),
    ("データベースのバックアップを毎晩作成する。", "Make a backup of the database every night."),
    ("サーバーを再起動すると接続が切れる。", "Restarting the server closes the connections."),
    ("環境変数で設定を上書きできます。", "Settings can be overridden with environment variables."),
    ("非同期の関数は約束を返す。", "An asynchronous function returns a promise."),
    ("ファイルを暗号化して保存する。", "Encrypt the file and save it."),
    ("画像の大きさを変えて圧縮する。", "Resize and compress the image."),
    ("メモリ不足でプログラムが停止した。", "The program stopped because it ran out of memory."),
    ("単体テストが失敗した原因を調べる。", "Find out why the unit test failed."),
    ("利用者の権限を管理者が変更する。", "An administrator changes the permissions of a user."),
    ("配列の要素を並べ替える方法", "How to sort the elements of an array"),
    ("ネットワークの遅延を測定する。", "Measure the latency of the network."),
    ("古いブラウザーには対応していません。", "Old browsers are not supported."),
    ("ログに警告が出力される。", "A warning is written to the log."),
    ("索引を作り直すと検索が速くなる。", "Searching gets faster after the index is rebuilt."),
    ("コンテナーのイメージを作成する。", "Build the image of a container."),
    ("取引先に請求書を送る。", "Send an invoice to the customer."),
    # Near each other in topic, so that a word in common does not decide.
    ("駅の近くに引っ越した。", "I moved to a place near the station."),
    ("駅で友達を待っている。", "I am waiting for a friend at the station."),
    ("終電に乗り遅れた。", "I missed the last train."),
    ("風邪をひいて熱がある。", "I have caught a cold and have a fever."),
    ("薬は食後に飲んでください。", "Take this medicine after meals."),
    ("パスワードは八文字以上にしてください。", "A password must have at least eight characters."),
    ("ログインに何度も失敗するとアカウントがロックされる。", "An account is locked after several failed logins."),
    ("バックアップからデータを復元する。", "Restore the data from a backup."),
    ("データベースへの接続が時間切れになった。", "The connection to the database timed out."),
    ("サーバーの証明書の期限が切れた。", "The certificate of the server has expired."),
    ("関数の引数に既定値を与える。", "Give a parameter of a function a default value."),
    ("使われていない変数を削除する。", "Remove variables that are not used."),
    ("依存関係を最新の版に更新する。", "Update the dependencies to their latest versions."),
    ("有給休暇を申請する。", "Apply for paid leave."),
    ("出張の経費を精算する。", "Claim the expenses of a business trip."),
    ("議事録を参加者に配る。", "Hand out the minutes to those who took part."),
    ("給料は銀行口座に振り込まれる。", "Wages are paid into a bank account."),
    ("契約は自動的に更新される。", "The contract is renewed automatically."),
]
JAPANESE, ENGLISH = (list(side) for side in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def model() -> subword_table.Static:
    return static.build()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_shipped_files_are_the_ones_that_were_measured(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHIPPED[path]


TEXTS = [
    *JAPANESE,
    *ENGLISH,
    "",
    " \n\t　",
    "検索" * 3000,
    "DEC-0054 と max_chunk_chars",
    "🦀🎉 สวัสดีชาวโลก",
    "a",
    "同じ同じ同じ",
]


def test_a_text_has_the_same_vector_alone_and_in_any_company(model: subword_table.Static) -> None:
    alone = {text: model.embed([text])[0] for text in TEXTS}
    chance = random.Random(3)
    for size in (2, 3, 7, 31, 32, 33, 64, 65, 200):
        some = chance.choices(TEXTS, k=size)
        for text, vector in zip(some, model.embed(some), strict=True):
            assert (vector == alone[text]).all(), (size, text[:40])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=60), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_company_and_order_never_matter_whatever_the_text(texts: list[str], chance: random.Random) -> None:
    model = static.build()
    vectors = model.embed(texts)
    order = chance.sample(range(len(texts)), len(texts))
    assert (model.embed([texts[at] for at in order]) == vectors[order]).all()
    assert (np.concatenate([model.embed([text]) for text in texts]) == vectors).all()


@pytest.mark.slow
def test_every_process_makes_the_same_vectors(model: subword_table.Static) -> None:
    script = (
        "import hashlib, json, sys; from bunko.embedders import static; "
        "vectors = static.build().embed(json.load(sys.stdin)); "
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    here = hashlib.sha256(model.embed(TEXTS).tobytes()).hexdigest()
    for seed, threads in (("1", "1"), ("2", "4")):
        environ = os.environ | {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps(TEXTS),
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "　\t\r\n",
        "\0",
        "".join(map(chr, range(32))) + "\x7f\x85\u200b\ufeff\u202e",
        "あ" * 100_000,
        "word " * 20_000,
        "x" * 100_000,
        "🦀",
        "👩‍👩‍👧‍👦🏳️‍🌈🇯🇵",
        "ภาษาไทยไม่มีช่องว่าง",
        "اللغة العربية تكتب من اليمين",
        "𒀀𒁁𒂂𒃃",
        "\ud800",
        "検索\udfffする \ud83d",
        "\ue000\U0010ffff\ufffe",
        "Z̷̧̛͉a̴̢͝l̵̡̛g̶̛͜o̷̧͝",
    ],
    ids=lambda text: ascii(text[:8]),
)
@pytest.mark.parametrize("size", [256, 128])
def test_whatever_is_written_becomes_one_vector_of_length_one(size: int, text: str) -> None:
    model = static.build(size)
    for texts in ([text], [text, "検索", text]):
        vectors = embed_and_check(model, texts)
        assert vectors.shape == (len(texts), size)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_vectors(model: subword_table.Static) -> None:
    assert embed_and_check(model, []).shape == (0, 256)


def test_a_query_and_a_document_of_the_same_words_are_the_same(model: subword_table.Static) -> None:
    assert (model.embed(JAPANESE, query=True) == model.embed(JAPANESE)).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＰＩ　ｒｅｆｅｒｅｎｃｅ　２０２６", "API reference 2026"),
        ("ｻｰﾊﾞｰの再起動", "サーバーの再起動"),
        ("Restart The SERVER", "restart the server"),
        ("form  validation\n", " form validation"),
        ("GitHubで公開", "GitHub で公開"),
        ("公式ＡＰＩの説明", "公式APIの説明"),
    ],
)
def test_width_case_and_spaces_do_not_matter(model: subword_table.Static, one: str, other: str) -> None:
    first, second = model.embed([one, other])
    assert (first == second).all()


def test_half_a_vector_is_the_beginning_of_the_whole(model: subword_table.Static) -> None:
    whole, half = model.embed(TEXTS), static.build(128).embed(TEXTS)
    beginning = whole[:, :128] / np.linalg.norm(whole[:, :128], axis=1, keepdims=True)
    assert half == pytest.approx(beginning, abs=1e-6)


def test_models_of_different_size_have_different_names() -> None:
    assert static.build(128).name != static.build(256).name


# Both sizes find all 54 in both directions, and miss one of 108 where sentences of the same language are in the way.
@pytest.mark.parametrize("size", [256, 128])
def test_the_nearest_of_all_sentences_is_the_translation(size: int) -> None:
    model = static.build(size)
    japanese, english = model.embed(JAPANESE), model.embed(ENGLISH)
    own = np.arange(len(PAIRS))
    near = japanese @ english.T
    assert np.count_nonzero(near.argmax(axis=1) == own) >= 51
    assert np.count_nonzero(near.argmax(axis=0) == own) >= 51
    everything = np.concatenate([japanese, english])
    near = everything @ everything.T - 2 * np.eye(len(everything))
    partner = np.concatenate([own + len(own), own])
    assert np.count_nonzero(near.argmax(axis=1) == partner) >= 102


@pytest.mark.parametrize("size", [256, 128])
def test_a_translation_is_far_nearer_than_an_unrelated_sentence(size: int) -> None:
    model = static.build(size)
    near = model.embed(JAPANESE) @ model.embed(ENGLISH).T
    unrelated = near[~np.eye(len(PAIRS), dtype=bool)]
    assert np.diag(near).mean() > 0.5
    assert abs(unrelated.mean()) < 0.1
    assert np.quantile(unrelated, 0.99) < np.quantile(np.diag(near), 0.1)


def test_a_query_is_compared_with_each_sentence_of_a_text() -> None:
    embedder = static.build()
    text = (
        "京都の寺と庭を一日かけて歩いて回りました。" + "The database is backed up every night at two. " * 3 + "終わり。"
    )
    vectors, sentences = embedder.embed_sentences([text, "犬", ""])
    assert np.array_equal(vectors, embedder.embed([text, "犬", ""]))
    assert [int(packed[0]) for packed in sentences] == [5, 1, 1]
    query = "When are backups of the database made?"
    vector = embedder.embed([query], query=True)[0]
    (found, other, empty), trust = embedder.compare(query, vector, sentences)
    assert (found.position, trust) == (1, 1.0)  # the first of three that are the same
    assert found.cosine > float(vectors[0] @ vector)
    assert found.nearness > other.nearness
    assert empty.cosine == 0  # an empty text says nothing
    parts = embedder.embed([text[start:end] for start, end in passage_ranges(text)])
    assert found.cosine == pytest.approx(float((parts @ vector).max()), abs=1e-3)


def test_a_word_counts_by_its_nearest_one_in_a_sentence_whatever_else_the_text_says() -> None:
    embedder = static.build()
    texts = [
        "会議は月曜日です。花に水をやる係を決めます。次の掃除は来週で、鍵は管理人が持っています。車は裏に停めます。",
        "会議は月曜日です。花に水をやる係を決めます。次の掃除は来週で、鍵は管理人が持っています。",
    ]
    query = "駐車場 自動車"
    vector = embedder.embed([query], query=True)[0]
    matches, _ = embedder.compare(query, vector, embedder.embed_sentences(texts)[1])
    assert matches[0].nearness > matches[1].nearness + 0.1
    assert all(match.nearness <= 0.4 for match in matches)  # the same word counts no more than a near one


def test_a_text_that_is_split_again_compares_as_before() -> None:
    embedder = static.build()
    texts = ["京都の寺。庭を歩く。", "The database is backed up at two. Then the disks are checked.", "犬"]
    vector = embedder.embed(["backup"], query=True)[0]
    packed = embedder.embed_sentences(texts)[1]
    assert embedder.compare("backup", vector, [texts[0], packed[1], texts[2]]) == embedder.compare(
        "backup", vector, packed
    )
    assert embedder.compare("backup", vector, []) == ([], 0.0)


def test_the_words_of_a_long_query_are_not_compared() -> None:
    embedder = static.build()
    query = "昨日から何度も試しているのですが、会社の端末で印刷しようとすると毎回途中で止まり、用紙も残っています。"
    vector = embedder.embed([query], query=True)[0]
    [match], trust = embedder.compare(query, vector, ["印刷が止まる時は用紙を入れ直します。"])
    assert (match.nearness, trust) == (0.0, 0.0)
    assert match.cosine > 0


@pytest.mark.parametrize("unknown", ["ไทยภาษา", "안녕하세요 세계.", "────────────────────────", "👍👍👍"])
@pytest.mark.parametrize("size", [128, 256])
def test_a_sentence_of_characters_that_the_model_does_not_know_is_near_to_nothing(size: int, unknown: str) -> None:
    embedder = static.build(size)
    text = f"京都の寺と庭を一日かけて歩いて回りました。\n\n{unknown}"
    for query in ("😀", "สวัสดี", "감사합니다", "京都の寺"):
        vector = embedder.embed([query], query=True)[0]
        of_text, of_unknown = embedder.compare(query, vector, [text, unknown])[0]
        assert of_unknown.cosine == 0
        assert (of_text.cosine > 0.3) == (query == "京都の寺")


@given(st.lists(st.text(max_size=700), max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_text_has_the_same_vectors_alone_and_among_others(texts: list[str]) -> None:
    embedder = static.build()
    vectors, sentences = embedder.embed_sentences(texts)
    for text, vector, rows in zip(texts, vectors, sentences, strict=True):
        alone, alone_rows = embedder.embed_sentences([text])
        assert np.array_equal(alone[0], vector)
        assert np.array_equal(alone_rows[0], rows)


def test_queries_need_no_tokenizer_that_is_missing(
    model: subword_table.Static, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [f"{japanese} {number}" for number, (japanese, _) in enumerate(PAIRS)]
    expected = [model.embed([query], query=True) for query in queries]
    subword_table.load_tokenizer.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sentencepiece", None)
        lone = subword_table.Static(model.size)
        for query, vector in zip(queries, expected, strict=True):
            assert np.array_equal(lone.embed([query], query=True), vector)
        assert np.array_equal(lone.embed(queries, query=True), np.concatenate(expected))
        # Only the tokenizer can tell how it would split these, and texts to store are longer than our own split is for.
        for texts, is_query in (["Ελλάδα"], True), (["a text"], False):
            with pytest.raises(EmbedderError, match=r"sentencepiece \S+ cannot be used") as caught:
                lone.embed(texts, query=is_query)
            assert caught.value.hint == find_package("sentencepiece").repair
    assert np.array_equal(lone.embed(["Ελλάδα"], query=True), model.embed(["Ελλάδα"], query=True))
