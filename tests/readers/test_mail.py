"""Mail is read as people see it: decoded, with its date, its subject and its texts."""

from __future__ import annotations

import io
import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from bunko import chunkers, readers
from bunko.errors import SourceError
from bunko.readers import mail
from bunko.readers.mime import decode_charset
from bunko.types import Text

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"


def messages(name: str) -> list[Text]:
    return [mail.read_message(found.data) for found in mail.split_mailbox(io.BytesIO((FIXTURES / name).read_bytes()))]


def written(body: bytes, *headers: bytes) -> Text:
    """Read a message that was written by hand."""
    return readers.read(b"\r\n".join((b"Subject: x", *headers)) + b"\r\n\r\n" + body, "a.eml")


def test_a_message_of_emacs_in_iso_2022_jp_is_read_with_its_attached_text() -> None:
    text = readers.read((FIXTURES / "notice.eml").read_bytes(), "notice.eml")
    assert (text.title, text.date) == ("観測会の場所が変わりました", "2024-01-15T10:00:00+09:00")
    assert "From: 山田 花子 <hanako@example.jp>\nTo: 佐藤 太郎 <taro@example.jp>" in text.text
    assert "双眼鏡をお持ちください。\n\nAttachment: mochimono.txt\n\n雨具、水筒、図鑑" in text.text


def test_japanese_mail_is_decoded_and_its_signature_removed() -> None:
    first = messages("letters.mbox")[0]
    assert (first.title, first.date) == ("明日の会議について", "2024-01-15T09:30:00+09:00")
    assert first.text == (
        "Subject: 明日の会議について\nFrom: 山田 花子 <hanako@example.org>\nTo: taro@example.org\n"
        "Date: Mon, 15 Jan 2024 09:30:00 +0900\n\n明日の会議は十時からです。\n資料は前の晩に送ります。"
    )


def test_of_two_forms_the_plain_text_is_read_and_attached_texts_follow() -> None:
    reply = messages("letters.mbox")[1]
    assert reply.tags == ("work", "会議")
    body = reply.text.partition("\n\n")[2]
    assert body == (
        "I will bring the café menu.\n\nFrom here it is ten minutes on foot.\n\n> 明日の会議は十時からです。\n\n"
        "Attachment: 部屋.csv\n\nroom,seats\nA,12"
    )


def test_a_message_of_html_is_read_as_a_page_without_styles_and_scripts() -> None:
    sale = messages("letters.mbox")[2]
    assert sale.text.partition("\n\n")[2] == "# Spring sale\n\nGarden chairs are half the price until Sunday."


def test_the_patches_of_git_are_two_messages_although_one_has_a_line_that_begins_with_from() -> None:
    first, second = messages("patches.mbox")
    assert first.title == "[PATCH 1/2] 検索を速くする"
    assert "From: 山田 花子 <hanako@example.org>" in first.text
    assert first.tags == ("patches", "speed")
    assert second.text.partition("\n\n")[2].startswith("From now on the cache is described in the manual.\n---\n")
    assert "2.39.5" not in second.text


def test_messages_are_split_where_the_library_of_python_splits_them() -> None:
    for name in ("letters.mbox", "patches.mbox"):
        found = list(mail.split_mailbox(io.BytesIO((FIXTURES / name).read_bytes())))
        lines = (FIXTURES / name).read_bytes().split(b"\n")
        assert all(lines[message.first_line - 1].startswith(b"From ") for message in found)
        box = mailbox.mbox(FIXTURES / name, create=False)
        subjects = [message["subject"] for message in box if message["subject"]]
        box.close()
        assert len(found) == len(subjects)


def test_a_mailbox_with_windows_line_ends_and_quoted_separators_is_split_alike() -> None:
    data = (
        b"From a@b Mon Jan 15 09:30:00 2024\r\nSubject: one\r\n\r\n>From x\r\n>>From y\r\n\r\n"
        b"From - Tue Jan 16 10:00:00 2024\r\nSubject: two\r\n\r\nz\r\n"
    )
    first, second = mail.split_mailbox(io.BytesIO(data))
    assert (first.first_line, first.last_line, second.first_line, second.last_line) == (1, 6, 7, 10)
    assert mail.read_message(first.data).text == "Subject: one\n\nFrom x\n>From y"


def test_a_long_message_is_read_up_to_a_limit_and_the_next_one_is_whole() -> None:
    separator = b"From a@b Mon Jan 15 09:30:00 2024\n"
    data = separator + b"Subject: one\n\n" + b"word " * 40_000 + b"\n\n" + separator + b"Subject: two\n\nshort\n"
    first, second = mail.split_mailbox(io.BytesIO(data), 1000)
    assert len(first.data) < 1000 + 64 * 1024 + 1
    assert mail.read_message(second.data).text == "Subject: two\n\nshort"


@pytest.mark.parametrize(
    ("charset", "body", "expected"),
    [
        ("iso-2022-jp", b"\x1b$B-!\x1b(B \x1b$B-j\x1b(B\x1b$BF|K\\\x1b(B", "① ㈱日本"),
        ("ISO-2022-JP", b"\x1b(I\x36\x45\x1b(B ok", "ｶﾅ ok"),
        ("iso-2022-jp", b"\x1b$B4A;z\x1b(B", "漢字"),
        ("shift_jis", "髙橋①".encode("cp932"), "髙橋①"),
        ("us-ascii", "ほぼ".encode(), "ほぼ"),
        ("iso-8859-1", "“quoted”".encode("cp1252"), "“quoted”"),
        ("gb2312", "镕基".encode("gb18030"), "镕基"),
        ("unknown-8bit", "日本語の本文です".encode("euc_jp"), "日本語の本文です"),
        ("utf-8", b"caf\xe9 du Nord, th\xe9", "café du Nord, thé"),
        ("base64", b"plain", "plain"),
        ("idna", b"plain", "plain"),
        ("utf-7", b"Hi +ZeVnLIqe-", "Hi 日本語"),
    ],
)
def test_a_charset_is_read_as_it_is_used(charset: str, body: bytes, expected: str) -> None:
    assert decode_charset(body, charset) == expected
    text = written(body, f"Content-Type: text/plain; charset={charset}".encode())
    assert text.text.partition("\n\n")[2] == expected


def test_headers_with_encoded_words_of_every_kind_are_decoded() -> None:
    subject = (
        b"Subject: =?UTF-8?B?5pel?=\r\n =?utf-8?Q?=E6=9C=AC?= and =?ISO-2022-JP?B?GyRCMnE1RBsoQg==?="
        b" =?bad?x?zz?= =?utf-8?b?!!!?="
    )
    text = readers.read(subject + b"\r\n\r\nx", "a.eml")
    assert text.title.startswith("日本 and 会議")
    raw = readers.read("Subject: 生の日本語 =?utf-8?b?5pel?=\n\nx".encode(), "a.eml")
    assert raw.title == "生の日本語 日"


def test_dates_of_every_kind_are_read_or_left_out() -> None:
    dates = {
        b"Mon, 15 Jan 2024 09:30:00 +0900 (JST)": "2024-01-15T09:30:00+09:00",
        b"15 Jan 2024 09:30 GMT": "2024-01-15T09:30:00+00:00",
        b"Mon, 15 Jan 2024 09:30:00 -0000": "2024-01-15T09:30:00+00:00",
        b"Mon, 99 Foo 2024": "",
        b"Mon, 15 Jan 2024 09:30:00 +9999": "",
        b"9" * 5000: "",
    }
    assert {date: written(b"x", b"Date: " + date).date for date in dates} == dates


def test_flowed_text_is_joined_and_replies_stay_quoted() -> None:
    body = b"A paragraph \r\nthat goes on.\r\n\r\n> quoted \r\n> words\r\nanswer\r\n-- \r\nme\r\n"
    text = written(body, b"Content-Type: text/plain; format=flowed")
    assert text.text.partition("\n\n")[2] == "A paragraph that goes on.\n\n> quoted words\nanswer"


def test_only_a_short_end_of_a_message_is_a_signature() -> None:
    long_end = b"text\n-- \n" + b"line\n" * 30
    assert written(long_end).text.count("line") == 30
    assert "only this" in written(b"-- \nonly this\n").text
    assert written(b"a\n--\nb\n").text.endswith("a\n--\nb")


def test_a_forwarded_message_and_a_digest_are_read() -> None:
    inner = EmailMessage()
    inner["Subject"], inner["From"] = "内側", "inner@example.org"
    inner.set_content("The inner text.")
    outer = EmailMessage()
    outer["Subject"] = "Fwd"
    outer.set_content("See below.")
    outer.add_attachment(inner)
    text = readers.read(outer.as_bytes(), "a.eml").text
    assert text.endswith("See below.\n\nSubject: 内側\nFrom: inner@example.org\n\nThe inner text.")
    digest = b"--b\r\n\r\nSubject: one\r\n\r\nfirst\r\n--b\r\n\r\nSubject: two\r\n\r\nsecond\r\n--b--\r\n"
    assert written(digest, b'Content-Type: multipart/digest; boundary="b"').text.count("Subject: ") == 3


def test_a_message_is_one_chunk_unless_it_is_long() -> None:
    text = written(b"First paragraph.\n\n# no heading\n\n---\n\nSecond paragraph.\n")
    assert len(chunkers.build("auto", min_chars=0).chunks(text)) == 1
    assert len(chunkers.build("auto").chunks(written(b"A paragraph of words.\n\n" * 1000))) > 5


def test_a_mailbox_that_is_read_as_a_file_is_one_text() -> None:
    text = readers.read((FIXTURES / "letters.mbox").read_bytes(), "letters.mbox")
    assert "café menu" in text.text
    assert "Garden chairs" in text.text


@pytest.mark.parametrize("data", [b"just text\n\nand more", b"", b"\n\n\n", b"From nobody\n\nx", b"\x00\x01\x02"])
def test_a_file_without_headers_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        readers.read(data, "a.eml")
    assert caught.value.hint
