"""The search page without scripts: its form, results, filters and addresses."""

from __future__ import annotations

import re
from datetime import datetime
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor


def names(text: str) -> list[str]:
    return re.findall(r'<a class="name" href="[^"]*" data-beside="[^"]*"><bdi>(.*?)</bdi>', text)


def links(text: str, css_class: str) -> list[str]:
    return [unescape(link) for link in re.findall(rf'<a class="{css_class}" (?:rel="\w+" )?href="([^"]*)"', text)]


def test_a_query_in_the_address_is_answered(browser: TestClient) -> None:
    reply = browser.get("/", params={"q": "telescope mirror"})
    assert reply.status_code == 200
    assert names(reply.text)[0] in ("Mirror", "鏡の手入れ")
    assert "<mark>mirror</mark>" in reply.text
    assert 'value="telescope mirror"' in reply.text


def test_a_result_shows_its_headings_its_place_its_date_and_its_tool(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "鏡を磨く", "tag": "天文"}).text
    assert names(text) == ["鏡の手入れ"]
    assert '<p class="trail"><bdi>望遠鏡</bdi></p>' in text
    assert "guide/望遠鏡.md:L" in text
    assert "<time>2024-05-01</time>" in text
    assert '<span class="tool">docs</span>' in text


def test_a_result_leads_to_its_document_with_the_hit_in_place(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "鏡を磨く", "tag": "天文"}).text
    address = unescape(re.findall(r'<a class="name" href="([^"]*)" data-beside', text)[0])
    assert address.startswith(f"/documents/docs/guide/{quote('望遠鏡')}.md?hit=L")
    document = browser.get(address)
    assert document.status_code == 200
    assert re.search(r'<p class="hit" id="L9">.*<mark>磨く</mark>', document.text)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tool": "kitchen"}, {"味噌汁"}),
        ({"tag": "天文"}, {"望遠鏡", "鏡の手入れ", "組み立て"}),
        ({"path": "guide/**"}, {"望遠鏡", "鏡の手入れ", "組み立て"}),
        ({"since": "2024-04", "until": "2024-06"}, {"望遠鏡", "鏡の手入れ", "組み立て"}),
    ],
)
def test_filters_are_in_the_address_and_in_the_form(
    browser: TestClient, filters: dict[str, str], expected: set[str]
) -> None:
    reply = browser.get("/", params={"q": "鏡 味噌 mirror", **filters})
    assert names(reply.text)
    assert set(names(reply.text)) <= expected
    for name, value in filters.items():
        assert re.search(rf'name="{name}" value="{re.escape(value)}"|value="{re.escape(value)}" selected', reply.text)


def test_other_wordings_are_in_the_address_and_in_the_form(browser: TestClient) -> None:
    alone = browser.get("/", params={"q": "telescope"}).text
    assert re.findall(r'name="(?:also|passage)" value="([^"]*)"', alone) == ["", "", ""]
    wordings = {"also": ["鏡の手入れ", "鏡を磨く"], "passage": "鏡は布で磨く。"}
    text = browser.get("/", params={"q": "telescope", **wordings, "why": "1"}).text
    fields = re.findall(r'name="(?:also|passage)" value="([^"]*)"', text)
    assert fields == ["鏡の手入れ", "鏡を磨く", "", "鏡は布で磨く。"]
    assert names(text) != names(alone)
    assert "What each wording adds" in text
    beside = unescape(re.findall(r'data-beside="([^"]*)"', text)[0])
    assert quote("鏡を磨く") in beside
    many = browser.get("/", params={"q": "telescope", "also": list("abcdef")}).text
    assert re.findall(r'name="also" value="([^"]*)"', many) == list("abcdef")


def test_fields_that_a_form_sends_empty_say_nothing(browser: TestClient) -> None:
    reply = browser.get("/?q=mirror&tool=&mode=&tag=&since=&until=&path=&also=&also=&passage=")
    assert reply.status_code == 200
    assert "Mirror" in names(reply.text)


def test_without_a_query_the_newest_documents_are_shown(browser: TestClient) -> None:
    text = browser.get("/").text
    assert "Newest documents" in text
    assert "/documents/kitchen/" in text


def test_nothing_found_says_what_to_try(visit: Visitor) -> None:
    text = visit(language="ja").get("/", params={"q": "xyzzy", "mode": "bm25"}).text
    assert "見つかりませんでした。" in text
    assert "絞り込み" in text


def test_an_error_is_shown_beside_the_form_in_the_language_of_the_page(visit: Visitor) -> None:
    reply = visit(language="ja").get("/", params={"q": "鏡", "since": "whenever"})
    assert reply.status_code == 400
    assert 'name="q"' in reply.text
    assert re.search(r'role="alert"><h2>[^<]*日付', reply.text)


def test_an_unknown_parameter_is_an_error_page(browser: TestClient) -> None:
    reply = browser.get("/?q=a&colour=red")
    assert reply.status_code == 400
    assert "There is no parameter" in reply.text


def test_the_next_results_have_an_address_of_their_own(browser: TestClient, docs: Path, library: Library) -> None:
    for number in range(14):
        (docs / f"rain{number}.md").write_text(f"# Rain {number}\n\nRain gauge number {number}.\n", "utf-8")
    library.reindex()
    first = browser.get("/", params={"q": "rain gauge", "path": "rain*"}).text
    (address,) = links(first, "next")
    second = browser.get(address).text
    assert len(names(first)) == 10
    assert len(names(second)) == 4
    assert not set(names(first)) & set(names(second))
    assert '<ol class="results" start="11">' in second


def test_scripts_get_only_the_results(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "mirror", "part": "results"}).text
    assert text.lstrip().startswith('<section id="results"')
    assert "<html" not in text
    assert "part=results" not in text


def test_the_document_beside_the_results_is_in_the_address(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "mirror", "open": "docs/mirror.md", "hit": "L3"}).text
    assert '<div class="columns split">' in text
    assert re.search(r'class="hit" id="L3"', text)
    gone = browser.get("/", params={"q": "mirror", "open": "docs/gone.md"})
    assert gone.status_code == 200
    assert '<div class="columns">' in gone.text


def test_a_tool_that_somebody_may_not_read_does_not_exist(visit: Visitor) -> None:
    limited = visit(Rights(read=("docs",)))
    text = limited.get("/", params={"q": "味噌汁"}).text
    assert "味噌汁</bdi>" not in text
    assert "kitchen" not in text
    assert limited.get("/documents/kitchen/味噌.md").status_code == 404


def test_both_languages_have_the_same_page(visit: Visitor) -> None:
    english = visit().get("/", params={"q": "mirror", "why": "1", "tuning": "true"}).text
    japanese = visit(language="ja-JP,ja;q=0.9").get("/", params={"q": "mirror", "why": "1", "tuning": "true"}).text
    assert '<html lang="ja">' in japanese
    assert "見つかった理由" in japanese
    assert names(english) == names(japanese)
    assert english.count("<tr") == japanese.count("<tr")


def test_an_address_without_a_page_says_so_in_the_language_of_the_browser(visit: Visitor) -> None:
    reply = visit(language="ja").get("/nothing/here")
    assert reply.status_code == 404
    assert "<h1>このアドレスにページはありません</h1>" in reply.text
    assert '<a href="/">' in reply.text


def test_a_memo_is_named_by_its_title_and_its_author_is_a_fact_about_it(
    library: Library, visit: Visitor, tmp_path: Path
) -> None:
    log = tmp_path / "ChangeLog"
    log.write_text("2024-01-15  山田 太郎  <taro@example.com>\n\n\t* 庭の手入れ: 苔を植えた。\n", "utf-8")
    library.add(log, name="diary", kind="memos")
    library.import_("diary")
    text = unescape(visit().get("/", params={"q": "苔"}).text)
    assert "<bdi>庭の手入れ</bdi></a>" in text
    assert '<bdi class="author">山田 太郎 <taro@example.com></bdi>' in text
    assert text.count("taro@example.com") == 1


def test_a_memo_is_named_by_its_title_wherever_it_was_found_and_without_one_by_its_day(
    library: Library, visit: Visitor, tmp_path: Path
) -> None:
    memos = tmp_path / "memos"
    memos.mkdir()
    long_text = "".join(f"## Part {n}\n\n{f'Nothing happened on floor {n}. ' * 40}\n\n" for n in range(4))
    memo = f"---\ntitle: Outage in September\n---\n\n{long_text}## Cause\n\n{'A switch of moss failed. ' * 30}\n"
    (memos / "outage.md").write_text(memo, "utf-8")
    notes = tmp_path / "notes.md"
    notes.write_text("# 2024-03-01\n\nThe moss is green.\n\n# 2024-03-02\n\nIt rained.\n", "utf-8")
    for name, path in (("memos", memos), ("notes", notes)):
        library.add(path, name=name, kind="memos")
    library.import_("memos", "notes")
    text = visit().get("/", params={"q": "moss", "mode": "bm25"}).text
    assert set(names(text)) == {"2024-03-01", "Outage in September"}
    assert '<p class="trail"><bdi>Cause</bdi></p>' in text


def test_a_period_can_be_chosen_without_typing_it(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "mirror", "until": "2020"}).text
    assert [unescape(link) for link in re.findall(r'<a href="([^"]*)" data-since', text)] == [
        "/?q=mirror&since=30d", f"/?q=mirror&since={datetime.now().year}",
    ]  # fmt: skip


def test_code_in_an_excerpt_looks_like_code(visit: Visitor, library: Library, docs: Path) -> None:
    (docs / "code.md").write_text(
        "# Trowels\n\nRun `trowel --sharpen <edge>` twice.\n\n```\ntrowel dig\n```\n", "utf-8"
    )
    library.import_("docs")
    text = visit().get("/", params={"q": "sharpen trowel twice", "mode": "bm25"}).text
    assert (
        "<code><mark>trowel</mark></code><code> --</code><code><mark>sharpen</mark></code><code> &lt;edge&gt;</code>"
        in text
    )
    assert "<code><mark>trowel</mark></code><code> dig</code>" in text
    assert "</code> <mark>twice</mark>." in text


def test_an_excerpt_is_text_with_a_line_for_each_item_row_and_line_of_code(
    browser: TestClient, library: Library, docs: Path
) -> None:
    text = (
        "# Pod security {#pod-security}\n\n## Fields\n\nSee the [`PodSecurityContext`](/docs/reference/#context).\n"
        "- **fsGroup** of volumes\n- {{< glossary >}}runAsUser{{< /glossary >}}\n\n"
        "| Field | Default |\n|---|---|\n| seccompProfile | `Unconfined` |\n\n"
        "```python\nfor pod in pods:\n    print(pod)\n```\n"
    )
    (docs / "pods.md").write_text(text, encoding="utf-8")
    library.import_("docs")
    page = browser.get("/", params={"q": "PodSecurityContext fsGroup seccompProfile"}).text
    excerpt = re.sub("<.*?>", "", re.findall(r'<p class="excerpt">(.*?)</p>', page, re.DOTALL)[0])
    assert unescape(excerpt).split("\n") == [
        "See the PodSecurityContext.",
        "• fsGroup of volumes",
        "• runAsUser",
        "seccompProfile · Default: Unconfined",
        "for pod in pods:",
        "print(pod)",
    ]
