"""No message, however it is made, can hang, explode or crash the reader."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko import readers
from bunko.errors import SourceError
from bunko.readers import mail

HEAD = b"Subject: x\r\n"


def nested_parts(depth: int) -> bytes:
    opening = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(depth))
    return HEAD + opening + b"\r\ninnermost\r\n"


def parts_of_one_boundary(count: int) -> bytes:
    part = b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    return HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + part * count


def nested_messages(depth: int) -> bytes:
    return HEAD + b"Content-Type: message/rfc822\r\n\r\n" * depth + b"Subject: innermost\r\n\r\nx"


HOSTILE = {
    "nested parts": nested_parts(5000),
    "one boundary": parts_of_one_boundary(20_000),
    "nested messages": nested_messages(20_000),
    "many parts": HEAD
    + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    + b"--b\r\nContent-Type: text/plain\r\n\r\nword\r\n" * 100_000,
    "folded header": b"Subject: x\r\n" + b" y\r\n" * 500_000 + b"\r\nbody",
    "many headers": b"".join(b"X-%d: y\r\n" % number for number in range(200_000)) + b"\r\nbody",
    "long header": b"Subject: " + b"x" * 5_000_000 + b"\r\n\r\nbody",
    "encoded words": b"Subject: " + b"=?utf-8?q?x" * 200_000 + b"\r\n\r\nbody",
    "parameters": HEAD + b'Content-Type: text/plain; a=";' + b'";' * 60_000 + b"\r\n\r\nbody",
    "parameters in every part": HEAD
    + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    + (b'--b\r\nContent-Type: text/plain; a=";' + b'";' * 5_000 + b"\r\n\r\nword\r\n") * 100,
    "no line ends": b"Subject: x" + b" " * 3_000_000,
    "base64 of nothing": HEAD + b"Content-Transfer-Encoding: base64\r\n\r\n" + b"=" * 1_000_000,
    "base64 cut off": HEAD + b"Content-Transfer-Encoding: base64\r\n\r\naGVsbG8gd29ybGQ",
    "quoted-printable": HEAD + b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=" * 5_000_000,
    "html": HEAD + b"Content-Type: text/html\r\n\r\n" + b"<div>" * 100_000,
    "boundary of a pattern": HEAD
    + b'Content-Type: multipart/mixed; boundary="(((((a+)+)+)+)"\r\n\r\n'
    + b"--aaaaaaaaaaaaaaaaaaaaa\r\n" * 1000,
    "continued parameters": HEAD
    + b"Content-Type: text/plain; "
    + b"; ".join(b"name*%d=x" % number for number in range(10_000))
    + b"\r\n\r\nbody",
    "charset that is a program": HEAD + b"Content-Type: text/plain; charset=rot13\r\n\r\nbody",
    "charset that compresses": HEAD + b"Content-Type: text/plain; charset=zlib\r\n\r\nbody",
    "escape sequences": HEAD + b"Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n" + b"\x1b$B\x1b(B" * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_takes_no_more_than_a_moment(name: str) -> None:
    # Linear work takes well under a second here, a quadratic step minutes.
    with suppress(SourceError):
        assert len(readers.read(HOSTILE[name], "a.eml").text) <= 6_000_000


def test_text_that_is_cut_off_and_text_beside_a_bomb_are_still_read() -> None:
    assert readers.read(HOSTILE["base64 cut off"], "a.eml").text == "Subject: x\n\nhello world"
    assert readers.read(HOSTILE["folded header"], "a.eml").text.endswith("\n\nbody")
    assert readers.read(HOSTILE["charset that is a program"], "a.eml").text.endswith("\n\nbody")


def test_a_mailbox_of_one_line_and_one_of_separators_take_no_more_than_a_moment() -> None:
    separator = b"From a@b Mon Jan 15 09:30:00 2024\n\n"
    assert len(list(mail.split_mailbox(io.BytesIO(separator * 50_000)))) == 50_000
    assert [
        len(one.data) < 200_000 for one in mail.split_mailbox(io.BytesIO(separator + b"x" * 20_000_000), 100_000)
    ] == [True]
    assert list(mail.split_mailbox(io.BytesIO(b"x" * 5_000_000))) == []


FRAGMENTS = st.sampled_from(
    [
        b"Subject: a\n", b"Content-Type: multipart/alternative; boundary=b\n", b"Content-Type: text/html\n", b"\n",
        b"--b\n", b"--b--\n", b"text", b"Content-Transfer-Encoding: base64\n", b"aGk=", b"=?utf-8?b?x", b"?=",
        b"\x1b$B", b"\xff\x00", b"Content-Type: message/rfc822\n",
        b"Content-Disposition: attachment; filename*=x''%ff\n",
        b"charset=", b" ", b"From ", b"Date: Mon\n", b";", b'"', b"Content-Type: text/plain; charset=idna\n",
    ]
)  # fmt: skip


@given(st.lists(FRAGMENTS | st.binary(max_size=8), max_size=40).map(b"".join))
@settings(deadline=None, max_examples=100)
def test_any_message_is_read_or_refused(data: bytes) -> None:
    with suppress(SourceError):
        readers.read(data, "a.eml")
    with suppress(SourceError):
        readers.read(b"From a@b Mon Jan 15 09:30:00 2024\n" + data, "a.mbox")
