"""The characters of web pages are decoded correctly."""

from __future__ import annotations

import pytest

from bunko.readers import html
from tests.readers.html_pages import PARAGRAPH, SENTENCE, page


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("Shift_JIS", "cp932"),
        ("x-sjis", "cp932"),
        ("windows-31j", "cp932"),
        ("EUC-JP", "euc_jp"),
        ("iso-2022-jp", "iso2022_jp"),
        ("utf8", "utf-8"),
    ],
)
def test_a_japanese_page_comes_out_right_however_its_charset_is_told(label: str, codec: str) -> None:
    body = f"<p>{SENTENCE}</p>"
    http_equiv = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={label}"></head>{body}'
    meta_charset = f"<html><head><meta charset='{label}'></head>{body}"
    for data, charset in (
        (http_equiv.encode(codec), ""),
        (meta_charset.encode(codec), ""),
        (body.encode(codec), label),
        (body.encode(codec), ""),
    ):
        read = html.read(data, charset=charset).text
        assert read.text == SENTENCE
        assert read.encoding == codec


def test_a_byte_order_mark_beats_the_server_and_the_server_beats_the_page() -> None:
    body = f'<meta charset="euc-jp"><p>{SENTENCE}</p>'
    assert html.read(b"\xef\xbb\xbf" + body.encode(), charset="shift_jis").text.text == SENTENCE
    assert html.read(b"\xff\xfe" + body.encode("utf-16-le"), charset="shift_jis").text.text == SENTENCE
    assert html.read(b"\xfe\xff" + body.encode("utf-16-be")).text.text == SENTENCE
    assert html.read(body.encode("cp932"), charset="Shift_JIS").text.text == SENTENCE


@pytest.mark.parametrize("wrong", ["utf-8", "iso-8859-1", "euc-jp", "iso-2022-jp", "no-such-charset", "utf-7", "zip"])
def test_a_charset_that_does_not_fit_the_bytes_loses_to_one_that_does(wrong: str) -> None:
    data = f"<p>{PARAGRAPH}</p>"
    assert html.read(data.encode("cp932"), charset=wrong).text.text == PARAGRAPH
    assert html.read(f'<meta charset="{wrong}">{data}'.encode("cp932")).text.text == PARAGRAPH


@pytest.mark.parametrize("wrong", ["shift_jis", "euc-jp", "iso-8859-1", "iso-2022-jp"])
def test_utf_8_is_recognised_whatever_the_server_calls_it(wrong: str) -> None:
    assert html.read(f"<p>{SENTENCE}</p>".encode(), charset=wrong).text.text == SENTENCE


def test_a_page_that_was_cut_in_the_middle_of_a_character_is_still_read() -> None:
    data = page(f"<p>{PARAGRAPH}")
    assert PARAGRAPH[:-10] in html.read(data[: data.rindex("い".encode()) + 1], charset="utf-8").text.text
