"""Title, date, language and links of web pages are read."""

from __future__ import annotations

import pytest

from bunko import readers
from bunko.readers import html
from tests.readers.html_pages import PARAGRAPH, SENTENCE, page
from tests.readers.zip_files import fixture


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title>竜王 - 攻略の館</title>", "<main><h1>竜王の倒し方</h1><p>本文</p></main>", "竜王の倒し方"),
        ("<title>竜王 | 攻略の館</title>", "<p>本文</p>", "竜王"),
        ("<title>竜王 - 攻略の館</title><meta property=og:site_name content=攻略の館>", "<p>本文</p>", "竜王"),
        ("<title>攻略の館 - 竜王</title><meta property=og:site_name content=攻略の館>", "<p>本文</p>", "竜王"),
        ("<title>React - A library</title>", "<p>text</p>", "React - A library"),
        ("<title>竜王 - 攻略の館</title>", "<h1>攻略の館</h1><p>本文</p>", "竜王"),
        ("<title>竜王</title>", "<header><h1>攻略の館</h1></header><main><p>本文</p></main>", "竜王"),
        ("<title>竜王</title>", "<header><h1>竜王</h1></header><p>本文</p>", "竜王"),
        ("", "<header><h1>竜王</h1></header><p>本文</p>", "竜王"),
        ("<title>竜王</title>", "<header><h1>竜王</h1></header><h1>準備</h1><p>本文</p><h1>倒し方</h1>", "竜王"),
        ("<meta property=og:title content='竜王'>", "<p>本文</p>", "竜王"),
        ("", "<h1>  竜\n王 </h1><p>本文</p>", "竜王"),
        ("", "<svg><title>絵</title></svg><p>本文</p>", ""),
    ],
)
def test_the_title_is_that_of_the_text_not_of_the_site(head: str, body: str, title: str) -> None:
    assert html.read(page(body, head)).text.title == title


def test_a_page_of_pandoc_has_the_title_of_its_document_its_notes_and_its_tables() -> None:
    text = readers.read(fixture("handbook.html"), "handbook.html")
    assert (text.title, text.date) == ("請求業務の手引き", "2024-04-01")
    assert text.text.startswith("# 請求業務の手引き\n\n# 請求の流れ\n\n請求書は毎月末に締め、")
    assert "| 食品 | 8% | 軽減税率 |" in text.text
    assert "締め日が休日なら前の営業日に締める。" in text.text


def test_a_page_of_libreoffice_is_read() -> None:
    text = readers.read(fixture("report.html"), "report.html").text
    assert "# 観測の結果\n\n雲雀の初鳴きは二月二十八日に記録された。\n\n| 月 | 平均気温 | 降水量 |" in text
    assert "- 雨量計を確かめる\n  - 漏斗の掃除" in text


@pytest.mark.parametrize(
    ("head", "body", "date"),
    [
        ("<meta property='article:published_time' content='2024-01-15T09:30:00Z'>", "", "2024-01-15T09:30:00+00:00"),
        ('<script type="application/ld+json">{"datePublished": "2024-01-15"}</script>', "", "2024-01-15"),
        ("<meta name=date content='令和6年1月15日'>", "", "2024-01-15"),
        ("", "<article><time datetime=2024-01-15>先週</time></article>", "2024-01-15"),
        ("", "<article><time>2024年1月15日</time></article>", "2024-01-15"),
        ("", "<time class=post-date datetime=2024-01-15></time><time datetime=1999-01-01></time>", "2024-01-15"),
        ("<meta name=date content='いつか'>", "", ""),
    ],
)  # fmt: skip
def test_the_date_is_when_the_page_says_it_was_published(head: str, body: str, date: str) -> None:
    assert html.read(page(f"<p>{SENTENCE}</p>{body}", head)).text.date == date


def test_the_language_is_the_stated_one_unless_the_text_is_plainly_another() -> None:
    assert html.read(f"<html lang='ja-JP'><p>{SENTENCE}".encode()).language == "ja"
    assert html.read(f"<html lang=en><p>{SENTENCE}".encode()).language == "ja"
    assert html.read(b"<html lang=fr><p>Bonjour tout le monde").language == "fr"
    assert html.read(b"<p>Plain English text").language == "en"


def test_links_come_from_the_whole_page_absolute_in_order_and_each_once() -> None:
    got = html.read(
        page(
            "<nav><a href='/a#top'>一</a></nav><main><p><a href='b.html'>二</a><a rel=nofollow href='/a'>三</a>"
            "<a href='//other.example/x'>四</a><a href='#here'>五</a><a href='javascript:x()'>六</a>"
            "<a href='mailto:a@b.c'>七</a><a href='ftp://x/y'>八</a><a href='http://[bad'>九</a><a>十</a></p></main>",
            "<base href='/docs/'><link rel=canonical href='/canon?x=1#y'>",
        ),
        url="https://site.example/p/q.html",
    )
    assert got.links == (
        "https://site.example/a",
        "https://site.example/docs/b.html",
        "https://other.example/x",
    )
    assert got.canonical_url == "https://site.example/canon?x=1"
    assert html.read(page("<a href='x'>一</a><a href='https://a.example/'>二</a>")).links == ("https://a.example/",)


def test_a_page_can_ask_not_to_be_indexed() -> None:
    assert html.read(page("<p>x</p>", "<meta name=ROBOTS content='NOINDEX, follow'>")).noindex
    assert html.read(page("<p>x</p>", "<meta name=robots content=none>")).noindex
    assert not html.read(page("<p>x</p>", "<meta name=robots content='index,follow'>")).noindex


def test_of_a_title_without_end_only_the_beginning_is_looked_at() -> None:
    from bunko.readers.html import metadata, tree

    head_html = "<title>" + "甲 | " * 100_000 + "</title><meta property='og:site_name' content='乙'>"
    head = metadata.PageHead(tree.parse_html(page("", head_html).decode()))
    assert len(head.title) == 2000
    assert html.read(page(f"<p>{SENTENCE}</p>", head_html)).text.title.startswith("甲 | 甲")


def test_wishes_to_robots_add_up() -> None:
    head_html = '<meta name="robots" content="max-image-preview:large"><meta name="Robots" content="NOINDEX, follow">'
    assert html.read(page("<p>a</p>", head_html)).noindex
    assert not html.read(page("<p>a</p>", head_html.replace("NOINDEX", "index"))).noindex


def test_the_frame_of_an_old_wiki_is_left_out() -> None:
    got = html.read(
        page(
            "<div id='header'><h1>攻略Wiki</h1></div><table><tr><td><div id='menubar'><a>トップ</a></div></td>"
            f"<td><h2>一覧 <a class='anchor_super' href='#i'>†</a></h2><p>{SENTENCE}</p></td></tr></table>"
            "<div id='footer'>Founded by</div>",
            "<title>一覧 - 攻略Wiki</title>",
        )
    ).text
    assert (got.title, got.text) == ("一覧", f"## 一覧\n\n{SENTENCE}")


def test_a_heading_in_the_middle_of_the_windows_title_is_the_title() -> None:
    head = "<title>python - How to reverse a list? - Overflow</title>"
    got = html.read(
        page(f"<div id='c'><h1>How to reverse a list?</h1><div role='main'><p>{PARAGRAPH}</p></div></div>", head)
    )
    assert got.text.title == "How to reverse a list?"
    assert got.text.text.startswith("# How to reverse a list?\n")
