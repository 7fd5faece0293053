"""Build the web pages that the tests read."""

from __future__ import annotations

from bunko.readers import html

SENTENCE = "竜王はラダトームの城の南に城を構え、世界を闇に包もうとしている。"

PARAGRAPH = SENTENCE * 5


def page(body: str, head: str = "") -> bytes:
    return f'<!doctype html><html><head><meta charset="utf-8">{head}</head><body>{body}</body></html>'.encode()


def text(body: str, head: str = "") -> str:
    return html.read(page(body, head)).text.text
