"""Excerpts are text as people read it, not markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.text.readable import excerpt_text, has_markup, readable


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("See [PodSecurityContext](/docs/reference/#security-context) for it.", "See PodSecurityContext for it."),
        ("[電子メール](mailto:a@b.example)で、[手順][steps]のとおりに。", "電子メールで、手順のとおりに。"),
        ('![A diagram](img/a_(1).png) shows [it](<a b.md> "title").', "A diagram shows it."),
        ("## Restart policy {#restart-policy}", "Restart policy"),
        ("### まとめ ###", "まとめ"),
        ("{{< comment >}}not shown?{{< /comment >}} Text", "not shown? Text"),
        ("{% raw %}Text{% endraw %}", "Text"),
        ("Run `kubectl get pods --all` **now**, _please_.", "Run kubectl get pods --all now, please."),
        ("``a ` b`` and `*not em*`", "a ` b and *not em*"),
        ("snake_case_name and 2 * 3 * 4 and a_b", "snake_case_name and 2 * 3 * 4 and a_b"),
        ("*path 関数*には、値を*path デコレータ*で", "path 関数には、値をpath デコレータで"),
        ("a 2*3*4 b", "a 2*3*4 b"),
        ("Use <kbd>Ctrl</kbd>+<kbd>C</kbd><br>or quit", "Use Ctrl+C or quit"),
        ("a < b and b > a, 5 <6", "a < b and b > a, 5 <6"),
        ("AT&amp;T &lt;3, \\*not em\\*", "AT&T <3, *not em*"),
        ("<https://example.com/a>", "https://example.com/a"),
        ("注[^1]です。", "注です。"),
        ("- one\n- [ ] two\n  * three\n1. four", "• one\n• ☐ two\n  • three\n1. four"),
        ("> quoted\n> more", "quoted\nmore"),
        ("| Name | Default |\n|---|:--:|\n| `k1` | 1.2 |\n| b | |", "k1 · Default: 1.2\nb"),
        ("| k1 | 1.2 |\n| b | 0.75 |", "k1 · 1.2\nb · 0.75"),
        ("Title\n=====\ntext\n---\nmore", "Title\ntext\nmore"),
        ("```python\nx = a[1](2)  # **kept**\n```\nafter", "x = a[1](2)  # **kept**\nafter"),
        ("<!-- hidden\nstill --> text", "text"),
        ("<!-- hidden --> text", "text"),
        (":::tip\nUse it.\n:::", "Use it."),
        ("  :::tip Title\nUse it.\n  :::", "Use it."),
        ("/// tip | Title\nUse it.\n///", "Use it."),
        ("{{book.console}}\n{{ name }} {* a.py hl[1] *}", "{{ name }}"),
        ("# Title { #title }", "Title"),
        ("[a](https://example.com/#" + "x" * 2000 + ")", "a"),
        ("取り消し~~しない~~する", "取り消ししないする"),
    ],
)
def test_markup_becomes_what_it_means(markup: str, text: str) -> None:
    assert readable(markup, "a.md").strip() == text


PLAIN = st.characters(blacklist_categories=["Cs"], blacklist_characters="/`[]<>*_~\\{}&#|-+=:>!^\r\ue000")


@given(st.text(PLAIN, max_size=200))
def test_text_without_marks_stays_as_it_is(text: str) -> None:
    assert readable(text, "a.md") == text.strip("\n")


@given(st.text(alphabet="ab `[]()<>*_~\\{}%&#|-+=:!^\n", max_size=300))
def test_nothing_raises(text: str) -> None:
    for uri in ("a.md", "a.org", "a.rst", "a.docx"):
        assert isinstance(readable(text, uri), str)


@pytest.mark.parametrize("uri", ["a.md", "a.org", "a.rst"])
@pytest.mark.parametrize(
    "mark", ["[", "`", "*", "_", "<a", "{%", "[^", "![", "|", "**a", "<!--", "](", ":a", "=", " ~", "::"]
)
def test_marks_that_are_never_closed_take_no_time(mark: str, uri: str) -> None:
    assert isinstance(readable(mark * 5000, uri), str)  # or this test takes minutes


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (
            "* TODO [#A] Mirrors :care:\n:PROPERTIES:\n:ID: 4f-2\n:END:\nClean =lens= and [[file:b.org][the /tube/]].",
            "Mirrors\nClean lens and the tube.",
        ),
        ("#+TITLE: 望遠鏡\n#+STARTUP: overview\n\n*鏡* は ~布~ で磨く。", "望遠鏡\n鏡 は 布 で磨く。"),
        ("#+begin_src python\n# kept\nx = 1\n#+end_src\nafter", "# kept\nx = 1\nafter"),
        ("| Name | Price |\n|------+-------|\n| lens | 12 |", "lens · Price: 12"),
    ],
)
def test_excerpts_of_org_have_no_marks(markup: str, text: str) -> None:
    assert excerpt_text(markup, "a.org") == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("Restart\n=======\n\nSee :ref:`the guide <guide>` and ``x``.", "Restart\nSee the guide and x."),
        (
            ".. note:: Keep it dry.\n   :class: wide\n\n.. _anchor:\n\nA `link <https://a.example>`_::",
            "Keep it dry.\nA link:",
        ),
        ("=====  =====\nName   Price\n=====  =====\nlens   12", "Name Price\nlens 12"),
        ("**Two** months of :class:`~a.B`", "Two months of a.B"),
    ],
)
def test_excerpts_of_restructured_text_have_no_marks(markup: str, text: str) -> None:
    assert excerpt_text(markup, "a.rst") == text


def test_an_excerpt_of_a_mail_keeps_the_lines_of_its_head() -> None:
    text = "Subject: Hello\nFrom: a@example.com\nDate: Mon, 15 Jan 2024\n\nIt\nmoved."
    assert excerpt_text(text, "a.eml") == "Subject: Hello\nFrom: a@example.com\nDate: Mon, 15 Jan 2024\nIt moved."


def test_only_documents_with_markup_are_changed() -> None:
    assert has_markup("guide/a.MD")
    assert has_markup("C#/notes.md")
    assert not has_markup("talks.jsonl#2024/a.md")
    assert has_markup("https://example.com/page")
    assert not has_markup("notes/a.txt")
    assert not has_markup("src/a.py")


def test_an_excerpt_of_an_office_document_or_a_mail_shows_no_markdown() -> None:
    text = (
        "## Slide 3\n\n| Model | Price |\n| --- | --- |\n| A | List<int> |\n\n- one\n- two\n\n"
        "```\nx <b>\ny\n```\nafter\nit"
    )
    expected = "Slide 3\nA · Price: List<int>\n• one\n• two\nx <b>\ny\nafter it"
    assert excerpt_text(text, "a.pptx") == excerpt_text(text, "letters.mbox#2024-04-02") == expected
