"""Files are read as text with title, date and tags, in any encoding."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bunko.errors import SourceError
from bunko.readers import markdown, read
from bunko.types import Text

JAPANESE = (
    "朝ごはんに味噌汁を飲む",
    "サーバーを再起動する。",
    "庭の手入れ、雨の日は休み",
    "会議は十時から始まります",
    "設定ファイルの場所",
    "図書館で本を三冊借りた。\r\n返すのは来週。\r\n",
    "Python 3.11 の型ヒントを使う",
    "def f(x):  # 値を二倍にして返す\n    return x * 2\n",
)
WESTERN = (
    "It’s a test",
    "Café au lait",
    "Schöne Grüße aus Köln",
    "El niño comió piñas",
    "“Quoted” – and dashed",
)
CODECS = ("utf-8", "utf-8-sig", "utf-16", "utf-32", "cp932", "euc_jp", "iso2022_jp", "utf-16-le", "utf-16-be")


def note(content: str) -> Text:
    return read(content.encode(), "note.md")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("written", JAPANESE)
def test_short_japanese_text_is_read_in_every_encoding(written: str, codec: str) -> None:
    text = read(written.encode(codec), "memo.txt")
    assert text.text == written
    assert text.encoding == codec


@pytest.mark.parametrize("written", WESTERN)
def test_western_text_is_not_taken_for_japanese(written: str) -> None:
    text = read(written.encode("cp1252"), "memo.txt")
    assert (text.text, text.encoding) == (written, "cp1252")


@pytest.mark.parametrize("written", ["①②㈱テスト", "髙橋と﨑山", "ﾃｽﾄ", "これはﾃｽﾄです"])
def test_characters_that_vendors_added_are_read(written: str) -> None:
    assert read(written.encode("cp932"), "memo.txt").text == written


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"])
def test_a_byte_order_mark_alone_is_an_empty_text(mark: bytes) -> None:
    assert read(mark, "memo.txt").text == ""


def test_line_ends_stay_as_they_are() -> None:
    assert read("一\r\n二\n三\r四".encode(), "memo.txt").text == "一\r\n二\n三\r四"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00",
        b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        b"one\x00two",
        bytes(range(1, 32)),
        bytes(range(128, 256)) * 4,
        "途中で切れた文字列".encode()[:-1],
        "傷の付いた".encode() + b"\xff" + "文字列です".encode(),
        b"\xff\xfea",
        b"\xef\xbb\xbf\xff",
        b"\x1b$B\x7f\x7f\x1b(B",
    ],
    ids=range(10),
)
def test_what_is_not_text_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        read(data, "memo.txt")
    assert caught.value.code == "source"
    assert caught.value.message
    assert caught.value.hint


@given(data=st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text = read(data, "note.md")
    except SourceError:
        return
    assert data.decode(text.encoding) == text.text


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.md", "text/markdown"),
        ("A.MD", "text/markdown"),
        ("b.markdown", "text/markdown"),
        ("c.mdown", "text/markdown"),
        ("d.mkd", "text/markdown"),
        ("e.txt", "text/plain"),
        ("md", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_the_name_decides_how_a_file_is_read(name: str, media_type: str) -> None:
    assert read(b"# x", name).media_type == media_type


def test_front_matter_gives_title_date_and_tags() -> None:
    text = note("---\ntitle:  旅の 記録\ndate: 2024-01-15\ntags: [旅行, Ｐｙｔｈｏｎ, python, 写真]\n---\n# 見出し\n")
    assert (text.title, text.date, text.tags) == ("旅の 記録", "2024-01-15", ("旅行", "python", "写真"))
    assert text.text[text.body_start :] == "# 見出し\n"


@pytest.mark.parametrize(
    ("block", "title", "tags"),
    [
        ("title: 会議: 来期の計画\ndate: 2024-03-04\ntags: [仕事, 計画]\n", "会議: 来期の計画", ("仕事", "計画")),
        (
            "title: [下書き 来期の計画\ndate: 2024-03-04\ntags:\n  - 仕事\n  - '計画'\n",
            "[下書き 来期の計画",
            ("仕事", "計画"),
        ),
        ('title: "閉じていない\ndate: 2024-03-04\ntags: 仕事\n', "閉じていない", ("仕事",)),
    ],
)
def test_front_matter_that_is_nearly_yaml_is_read_line_by_line(block: str, title: str, tags: tuple[str, ...]) -> None:
    text = read(f"---\n{block}---\n本文\n".encode(), "a.md")
    assert (text.title, text.date, text.tags) == (title, "2024-03-04", tags)
    assert text.text[text.body_start :] == "本文\n"


def test_a_tag_with_a_long_gap_takes_no_time_that_grows_with_its_square() -> None:
    for gap in (60_000, 500_000):
        text = read(f"---\ntitle: [\ntags:\n - a{' ' * gap}b\n---\nbody\n".encode(), "a.md")
        assert text.text.endswith("body\n")
    assert read(b"---\ntitle: [\ntags:\n -  'a b'  \n---\nbody\n", "a.md").tags == ("a b",)


def test_a_heading_of_opened_tags_takes_no_time_that_grows_with_its_square() -> None:
    assert read(b"<h1>" + b"<" * 1_000_000 + b"</h1>\n\nbody\n", "a.md").text.endswith("body\n")
    assert read(b"<h1>A <em>long</em> title</h1>\n\nbody\n", "a.md").title == "A long title"


def test_toml_front_matter_is_read_too() -> None:
    text = note('+++\ntitle = "記録"\ndate = 2024-01-15T09:30:00+09:00\ntags = ["A", "b"]\n+++\n本文')
    assert (text.title, text.date, text.tags) == ("記録", "2024-01-15T09:30:00+09:00", ("a", "b"))
    assert text.text[text.body_start :] == "本文"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_body_begins_after_the_front_matter_whatever_the_line_ends(end: str) -> None:
    text = note(end.join(["---", "title: あ", "---", "本文"]))
    assert text.title == "あ"
    assert text.text[text.body_start :] == "本文"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-01-15", "2024-01-15"),
        ("2024/1/5", "2024-01-05"),
        ("2024年1月15日", "2024-01-15"),
        ("２０２４年１月１５日（月）", "2024-01-15"),
        ("2024-1", "2024-01"),
        ("2024年3月", "2024-03"),
        ("2024", "2024"),
        ("20240115", "2024-01-15"),
        ("2024-01-15 9:30", "2024-01-15T09:30:00"),
        ("2024-01-15T09:30:12.5Z", "2024-01-15T09:30:12+00:00"),
        ("2024-01-15 09:30:00 +0900", "2024-01-15T09:30:00+09:00"),
        ("2024-13-01", ""),
        ("2023-02-29", ""),
        ("昨日", ""),
        ("[2024]", ""),
        ("", ""),
    ],
)
def test_dates_become_iso_as_far_as_they_are_given(written: str, expected: str) -> None:
    assert note(f"---\ndate: {written}\n---\n").date == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("検索, Search,検索", ("検索", "search")),
        ("検索、全文検索", ("検索", "全文検索")),
        ("one two", ("one", "two")),
        ("\n  - '#旅'\n  - new york\n  - 007\n  - yes", ("旅", "new york", "007", "yes")),
        ("", ()),
        ("{a: b}", ()),
        ("[[nested], kept]", ("kept",)),
    ],
)
def test_tags_are_a_list_or_a_line(written: str, expected: tuple[str, ...]) -> None:
    assert note(f"---\ntags: {written}\n---\n").tags == expected


@pytest.mark.parametrize(
    "content",
    [
        "---\nただの文\n---\nx",
        "---\n- a\n- b\n---\nx",
        "---\ntitle: never closed\n",
        "---\ntitle: " + "x" * 70_000 + "\n---\n",
        "---\ntitle: \x01\n---\n",
        "---\na: " + "[" * 30_000 + "\n---\n",
        "---\n" + "- " * 30_000 + "\n---\n",
        "---\na: " + "{a: " * 10_000 + "\n---\n",
        "+++\ntitle = \n+++\nx",
        "+++\na = " + "[" * 30_000 + "\n+++\n",
        "+++\na = " + "9" * 6_000 + "\n+++\n",
        " ---\ntitle: x\n---\n",
        "----\ntitle: x\n----\n",
    ],
    ids=range(13),
)
def test_what_cannot_be_read_as_front_matter_is_body_text(content: str) -> None:
    text = note(content)
    assert (text.body_start, text.date, text.tags) == (0, "", ())


def test_aliases_cannot_grow_without_end() -> None:
    laughs = "a0: &a0 {x: 1}\n" + "".join(
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n" for level in range(1, 30)
    )
    text = note(f"---\n{laughs}title: done\ntags: *a29\n---\n")
    assert (text.title, text.tags) == ("done", ())


@given(block=st.text(max_size=120), fence=st.sampled_from(["---", "+++"]))
@settings(deadline=None)
@example("title: !!python/object:os.system x", "---")
@example("? [a]\n: b", "---")
@example("date: 9999-99-99T99:99", "---")
def test_no_front_matter_breaks_a_file(block: str, fence: str) -> None:
    content = f"{fence}\n{block}\n{fence}\n本文です"
    text = markdown.read(content, "utf-8")
    assert text.body_start <= content.index("本文です") or "本文です" in block


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("本文\n\n## 二番\n\n# 一番 #\n", "一番"),
        ("表題\n===\n", "表題"),
        ("## 節だけ {#only}\n", "節だけ"),
        ("```\n# code\n```\n\n## 本物\n", "本物"),
        ("<!--\n# 隠れた\n-->\n### 見える\n", "見える"),
        ("<h1 class='x'>題 <b>太字</b></h1>\n", "題 太字"),
        ("#\n\n## 名あり\n", "名あり"),
        ("本文だけ", ""),
        ("---\ntitle: ''\n---\n# 見出し", "見出し"),
        ("| 品名 | 単価 |\n---\n| りんご | 120 |\n", ""),
        ("| 品名 | 単価 |\n---\n\n## 注記\n", "注記"),
    ],
)
def test_the_title_is_the_first_main_heading(content: str, title: str) -> None:
    assert note(content).title == title


def test_a_title_and_tags_take_no_more_than_a_title_and_tags_do() -> None:
    tags = ", ".join(f"tag{number}" for number in range(5_000))
    text = note(f"---\ntitle: {'長い題' * 1000}\ntags: [{tags}, {'x' * 500}]\n---\n本文")
    assert len(text.title) == 300
    assert text.tags == tuple(f"tag{number}" for number in range(1_000))


CHINESE = (
    "你好，世界",
    "这是一个测试文件。",
    "我们在会议上讨论了明年的预算和人员安排，决定下个月再开一次会。",
    "# 安装说明\n\n请先下载安装程序，然后按照提示完成安装。如果出现错误，请查看日志文件。\n",
    "int count = 0;  // 计数器，每次调用加一\n",
    "中国北京市海淀区",
)


@pytest.mark.parametrize("codec", ["gb18030", "gbk", "gb2312"])
@pytest.mark.parametrize("written", CHINESE)
def test_chinese_text_is_not_taken_for_japanese(written: str, codec: str) -> None:
    text = read(written.encode(codec), "memo.txt")
    assert (text.text, text.encoding) == (written, "gb18030")


@pytest.mark.parametrize("codec", ["cp932", "euc_jp"])
@pytest.mark.parametrize(
    "written", ["会議資料", "東京都千代田区", "平成二十年度予算案一覧表", "本日休業", "山田太郎\n鈴木花子\n佐藤一郎"]
)
def test_japanese_without_kana_is_not_taken_for_chinese(written: str, codec: str) -> None:
    text = read(written.encode(codec), "memo.txt")
    assert (text.text, text.encoding) == (written, codec)


@pytest.mark.parametrize(
    ("written", "codec"),
    [
        ("회의에서 내년 예산과 인원 배치를 논의했고 다음 달에 다시 회의를 열기로 했습니다.", "euc_kr"),
        ("我們在會議上討論了明年的預算和人員安排，決定下個月再開一次會，詳細內容請參閱附件。", "big5"),
    ],
)
def test_text_in_an_unknown_encoding_is_refused_rather_than_garbled(written: str, codec: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(written.encode(codec), "memo.txt")
    assert caught.value.hint == "Save the file as UTF-8."
