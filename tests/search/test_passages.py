"""How much of a document comes back for its hits: a snippet, the chunk, its section, or all of it."""

from __future__ import annotations

import os
import unicodedata
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.library.library import Library
from bunko.search.passages import EXTRACTS, Passage, extract_passages, render_extract, snippet_terms
from bunko.text.sentences import sentence_ends
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, add_highlights, cut_offset, highlight_ranges, snippet_range
from bunko.types import Hit
from tests.conftest import Opener

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3
GUIDE = f"""---
title: 手引き
---
# 手引き

前書きの文。{FILLER}

## 導入

導入の文。{FILLER}

### 準備

準備の文。{FILLER}

## 運用

運用の文。{FILLER}

# 付録

付録の文。{FILLER}
"""


def write(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text, encoding="utf-8")
    os.utime(docs / name, (1_700_000_000, 1_700_000_000))


def found(library: Library, query: str, *, count: int = 10) -> list[Hit]:
    return library.search(query, top_k=count).hits


def lines(passage: Passage) -> str:
    return passage.citation.rpartition(":")[2]


@pytest.fixture
def guide(docs: Path, open_docs: Opener) -> Library:
    write(docs, "guide.md", GUIDE)
    return open_docs()


def test_a_chunk_is_just_what_was_found(guide: Library) -> None:
    hit = found(guide, "準備")[0]
    [passage] = extract_passages([hit], guide.document_of, "chunk")
    assert passage.text == hit.chunk.text
    assert passage.text.startswith("### 準備")
    assert (passage.first_line, passage.last_line) == (hit.chunk.first_line, hit.chunk.last_line)


def section_of(library: Library, query: str) -> str:
    [passage] = extract_passages(found(library, query)[:1], library.document_of, "section")
    return passage.text


def test_the_section_of_the_first_heading_below_a_chapter_is_not_the_chapter(docs: Path, open_docs: Opener) -> None:
    write(docs, "guide.md", f"# 手引き\n\n## 導入\n\n導入の文。{FILLER}\n\n## 運用\n\n運用の文。{FILLER}\n")
    assert section_of(open_docs(), "導入の文") == f"## 導入\n\n導入の文。{FILLER}"


def test_the_section_below_a_short_introduction_comes_with_it_and_without_the_rest_of_the_chapter(
    docs: Path, open_docs: Opener
) -> None:
    beginning = f"# 手引き\n\n短い前書き。\n\n## 導入\n\n導入の文。{FILLER}"
    write(docs, "guide.md", f"{beginning}\n\n### 準備\n\n{FILLER}\n\n## 運用\n\n運用の文。{FILLER}\n")
    assert section_of(open_docs(), "導入の文") == f"{beginning}\n\n### 準備\n\n{FILLER}"


def test_the_section_of_a_short_section_below_a_chapter_is_not_the_chapter(docs: Path, open_docs: Opener) -> None:
    write(docs, "guide.md", f"# 手引き\n\n## 導入\n\n短い導入。\n\n## 運用\n\n運用の文。{FILLER}\n")
    assert section_of(open_docs(), "短い導入") == "## 導入\n\n短い導入。"


def test_headings_alone_have_the_section_of_the_last_of_them(docs: Path, open_docs: Opener) -> None:
    write(docs, "guide.md", "# 手引き\n\n## 導入\n")
    assert section_of(open_docs(), "手引き") == "## 導入"


def test_a_section_goes_from_its_heading_to_the_next_that_is_not_deeper(guide: Library) -> None:
    hit = next(hit for hit in found(guide, "導入") if hit.chunk.heading == "## 導入")
    [passage] = extract_passages([hit], guide.document_of, "section")
    assert passage.text.startswith("## 導入")
    assert "### 準備" in passage.text
    assert "運用" not in passage.text
    assert passage.text == passage.text.rstrip()


def test_the_last_section_goes_to_the_end_of_the_document(guide: Library) -> None:
    [passage] = extract_passages(found(guide, "付録", count=1), guide.document_of, "section")
    assert passage.text == GUIDE[GUIDE.index("# 付録") :].rstrip()


def test_all_of_a_document_begins_after_its_front_matter(guide: Library) -> None:
    [passage] = extract_passages(found(guide, "運用", count=1), guide.document_of, "full")
    assert passage.text == GUIDE[GUIDE.index("# 手引き") :].rstrip()
    assert passage.first_line == 4


@pytest.mark.parametrize("extract", EXTRACTS)
def test_a_passage_names_the_lines_it_really_stands_on(guide: Library, extract: str) -> None:
    for hit in found(guide, "文"):
        [passage] = extract_passages([hit], guide.document_of, extract)  # type: ignore[arg-type]
        stands = GUIDE.split("\n")[passage.first_line - 1 : passage.last_line]
        assert "\n".join(stands).strip() == passage.text.strip()


def test_lines_are_counted_alike_whatever_ends_them(docs: Path, open_docs: Opener) -> None:
    for name, end in (("unix.md", "\n"), ("windows.md", "\r\n"), ("mac.md", "\r")):
        (docs / name).write_bytes(GUIDE.replace("\n", end).encode())
    library = open_docs()
    cited = {
        (hit.uri, lines(extract_passages([hit], library.document_of, "chunk")[0])) for hit in found(library, "準備")
    }
    assert len({place for _, place in cited}) == 1
    assert len(cited) == 3


def test_neighbours_become_one_passage_in_whatever_order_they_were_found(guide: Library) -> None:
    hits = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)[:3]
    whole = GUIDE[hits[0].chunk.start : hits[2].chunk.end]
    for order in permutations(hits):
        [passage] = extract_passages(order, guide.document_of, "chunk")
        assert passage.text == whole
        assert passage.hit == order[0]


def test_what_stands_apart_stays_apart_and_keeps_the_order_of_the_hits(guide: Library) -> None:
    first, _, third, *_ = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)
    assert [one.hit for one in extract_passages([third, first], guide.document_of, "chunk")] == [third, first]


def test_the_same_lines_of_two_documents_are_two_passages(docs: Path, open_docs: Opener) -> None:
    write(docs, "a.md", GUIDE)
    write(docs, "b.md", GUIDE)
    library = open_docs()
    got = extract_passages(found(library, "付録", count=2), library.document_of, "full")
    assert sorted(one.hit.uri for one in got) == ["a.md", "b.md"]


def test_what_an_earlier_page_gave_is_not_given_again(guide: Library) -> None:
    hits = sorted(found(guide, "文"), key=lambda hit: hit.chunk.index)
    assert extract_passages(hits, guide.document_of, "full", already_returned=1) == []
    assert len(extract_passages(hits, guide.document_of, "full")) == 1
    # The introduction holds the preparation; the rest of the guide is new.
    begun = [hit for hit in hits if hit.chunk.heading == "## 導入"]
    rest = [hit for hit in hits if hit.chunk.heading in ("### 準備", "# 付録")]
    assert [
        one.hit.chunk.heading
        for one in extract_passages(begun + rest, guide.document_of, "section", already_returned=1)
    ] == ["# 付録"]


def test_a_document_that_changed_or_went_after_the_search_gives_nothing(docs: Path, guide: Library) -> None:
    hits = found(guide, "文")
    write(docs, "guide.md", "# 別の文書\n\n" + FILLER)
    guide.reindex()
    assert extract_passages(hits, guide.document_of, "chunk") == []
    (docs / "guide.md").unlink()
    write(docs, "other.md", FILLER)
    guide.reindex()
    assert extract_passages(hits, guide.document_of, "chunk") == []


def test_a_row_of_a_table_carries_its_header(docs: Path, open_docs: Opener) -> None:
    rows = "\n".join(f"| 部品{number} | {number}円 | 倉庫の棚{number}に置いてある |" for number in range(60))
    write(docs, "parts.md", f"# 部品表\n\n| 名前 | 値段 | 場所 |\n|---|---|---|\n{rows}\n")
    library = open_docs(BUNKO_CHUNKER_KIND="tables")
    [passage] = extract_passages(found(library, "部品42", count=1), library.document_of, "chunk")
    assert "部品42" in passage.text
    assert "値段" in passage.text


def test_headings_are_shown_without_hidden_characters_and_no_longer_than_headings_are(
    docs: Path, open_docs: Opener
) -> None:
    write(docs, "a.md", f"# 設\u200b定\n\n## {'長い' * 120}\n\n索引の文。{FILLER}")
    library = open_docs()
    [passage] = extract_passages(found(library, "索引", count=1), library.document_of, "chunk")
    assert passage.headings[0] == "設定"
    assert len(passage.headings[1]) <= 101


# Snippets

BEFORE, AFTER = "これは前に置いた文です。" * 20, "あとに続く文がここにある。" * 20


def seen(text: str, query: str) -> str:
    return add_highlights(text, highlight_ranges(text, snippet_terms(query)))


def snippet(text: str, query: str, size: int = SNIPPET_CHARS) -> str:
    start, end = snippet_range(text, snippet_terms(query), size)
    return text[start:end]


def test_a_word_is_marked_as_it_is_written_with_its_ending() -> None:
    assert seen("昨日は川沿いを走ったので疲れた。", "走る") == "昨日は川沿いを**走った**ので疲れた。"
    assert seen("走らなかった日もある。", "走った") == "**走らなかった**日もある。"
    assert seen("The servers restarted.", "server restart") == "The **servers** **restarted**."
    assert seen("機械学習の応用", "機械学習") == "**機械学習**の応用"


def test_what_means_the_same_in_the_other_language_is_marked_too() -> None:
    assert "**server**" in seen("The server is down.", "サーバー")
    assert "**サーバー**" in seen("サーバーが止まった。", "server")


def test_marks_stand_right_whatever_the_width_and_composition() -> None:
    assert seen("ｻｰﾊﾞｰを見た。ＡＰＩを呼ぶ。", "サーバー API") == "**ｻｰﾊﾞｰ**を見た。**ＡＰＩ**を呼ぶ。"
    apart = unicodedata.normalize("NFD", "かばんが届いた。")
    assert seen(apart, "届く") == unicodedata.normalize("NFD", "かばんが**届いた**。")


def test_what_is_no_word_is_marked_as_the_query_spells_it() -> None:
    # Not a word that the dictionary knows, and the text goes on where the query ends.
    assert seen("型番はzqx9983bです。", "qx99") == "型番はz**qx99**83bです。"


def test_a_snippet_is_what_stands_around_the_match_and_begins_with_its_sentence() -> None:
    text = f"{BEFORE}毎朝ひとりで川沿いの道を走った。気分がよい。{AFTER}"
    found = snippet(text, "走る")
    assert found.startswith("毎朝ひとりで川沿いの道を走った。")
    assert found.endswith("。")
    assert SNIPPET_CHARS * 0.6 <= len(found) <= SNIPPET_CHARS


def test_a_snippet_goes_where_most_of_what_was_asked_for_stands() -> None:
    text = f"予算の話。{BEFORE}広告の予算を減らしてサーバーに回した。{AFTER}"
    assert "広告の予算を減らしてサーバーに回した" in snippet(text, "サーバーの予算")
    assert "予算の話" in snippet(text, "予算の話")


def test_inside_a_long_sentence_a_snippet_is_cut_between_words() -> None:
    text = "one word follows another " * 20 + "until the server restarted " + "and nothing ended here " * 20
    found = snippet(text, "server")
    assert "server restarted" in found
    assert set(found.split()) <= set(text.split())
    assert len(found) <= SNIPPET_CHARS


def test_without_a_match_a_snippet_is_the_beginning() -> None:
    assert (BEFORE + AFTER).startswith(snippet(BEFORE + AFTER, "量子"))
    assert snippet("  短い文。\n", "量子") == "短い文。"


def test_a_word_longer_than_the_snippet_is_cut_anywhere() -> None:
    assert len(snippet("あ。" + "x" * 5000, "y")) <= SNIPPET_CHARS
    assert len(snippet("z" + "x" * 5000 + " 終わり", "z" + "x" * 5000)) <= SNIPPET_CHARS


def test_a_snippet_at_the_end_of_a_text_shows_sentences_before_its_words() -> None:
    before = "庭の手入れをした。" * 40
    shown = snippet(f"{before}水族館に行った。", "水族館")
    assert shown == "庭の手入れをした。" * 15 + "水族館に行った。"
    assert len(shown) <= SNIPPET_CHARS
    enough = "そのあとで駅前の店に寄り、頼まれていた本と切手を買ってから、川沿いの道を歩いて帰った。" * 3
    assert snippet(f"{before}水族館に行った。{enough}", "水族館").startswith("水族館に行った。")


@given(st.text(alphabet="走った川。、 \nserver.か\u3099ﾊﾞ㍿é…", max_size=400), st.integers(20, 200))
def test_a_snippet_is_never_longer_than_asked_and_marks_lie_inside(text: str, size: int) -> None:
    looked = snippet_terms("走る server 川")
    start, end = snippet_range(text, looked, size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= size
    assert text.strip() == "" or end > start
    ranges = highlight_ranges(text, looked)
    assert all(0 <= low < high <= len(text) for low, high in ranges)
    assert all(left[1] < right[0] for left, right in pairwise(ranges))
    assert add_highlights(text, ranges).replace("**", "") == text.replace("**", "")


@given(st.text(alphabet="走った。 server.\n", max_size=600), st.integers(1, 500))
def test_a_text_is_cut_within_its_limit_and_after_a_sentence_where_one_ends_late_enough(text: str, most: int) -> None:
    at = cut_offset(text, most)
    assert (at == len(text)) if len(text) <= most else (0 < at <= most)
    late = [end for end in sentence_ends(text[: most + 1]) if 0.6 * most <= end <= most]
    assert len(text) <= most or not late or at == late[-1]


def test_a_snippet_names_its_lines_and_what_was_left_out(docs: Path, open_docs: Opener) -> None:
    write(docs, "a.md", f"# 題\n\n{BEFORE}\n毎朝ひとりで走った。\n{AFTER}\n")
    library = open_docs()
    [passage] = library.passages(found(library, "走る", count=1), "snippet", query="走る")
    assert passage.first_line == 4
    assert passage.chars_before == len(f"# 題\n\n{BEFORE}")
    assert passage.text.startswith("毎朝")
    assert passage.chars_after > len(AFTER) - SNIPPET_CHARS
    shown = render_extract(
        passage.text,
        "snippet",
        snippet_terms("走る"),
        chars_before=passage.chars_before,
        chars_after=passage.chars_after,
    )
    assert shown.startswith("…毎朝ひとりで**走った**。")
    assert shown.endswith("…")


def test_an_entry_has_its_heading_and_is_cut_after_a_sentence_saying_how_much_is_left(
    docs: Path, open_docs: Opener
) -> None:
    write(docs, "guide.md", GUIDE)
    library = open_docs()
    hits = found(library, "運用", count=1)
    [whole] = library.passages(hits, "entry")
    assert (whole.text, whole.chars_before, whole.chars_after) == (GUIDE.rstrip(), 0, 0)
    [cut] = library.passages(hits, "full", max_chars=60)
    assert cut.text == GUIDE[GUIDE.index("# 手引き") :][: len(cut.text)]
    assert cut.text.endswith("。")
    assert len(cut.text) <= 60
    shown = render_extract(
        cut.text, "full", SnippetTerms({}), chars_before=cut.chars_before, chars_after=cut.chars_after
    )
    assert shown == f"{cut.text}… [{cut.chars_after:,} more characters]"
    assert len(cut.text) + cut.chars_after == pytest.approx(len(GUIDE[GUIDE.index("# 手引き") :].strip()), abs=2)


def test_a_word_cut_by_a_line_end_is_found_and_shown_where_it_is(docs: Path, open_docs: Opener) -> None:
    write(docs, "log.md", f"# 記録\n\n{FILLER}\n\n\t* 社内の回線を見直し、古いネットワー\n\t  クを止めた。\n")
    write(docs, "other.md", f"# 別の記録\n\n{FILLER}")
    library = open_docs()
    [hit] = library.search("ネットワーク", mode="bm25", top_k=1).hits
    assert hit.uri == "log.md"
    assert hit.explanation is None or hit.explanation.lane == "word"
    terms = snippet_terms("ネットワーク")
    [passage] = extract_passages([hit], library.document_of, "snippet", query="ネットワーク", max_chars=60)
    assert passage.citation == "log.md:L5-L6"
    shown = render_extract(passage.text, "snippet", terms, chars_before=1, chars_after=0)
    assert shown.endswith("古い**ネットワー\n\t  ク**を止めた。")
