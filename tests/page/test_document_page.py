"""The page of a document: the hit in place, the outline, and parts of large documents."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor


def line_numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r' id="L(\d+)"', text)]


def test_the_source_of_a_document_has_its_title_its_lines_and_its_outline(browser: TestClient) -> None:
    reply = browser.get("/documents/docs/guide/望遠鏡.md?view=source")
    assert reply.status_code == 200
    assert "<title>望遠鏡 · bunko</title>" in reply.text
    assert line_numbers(reply.text) == list(range(1, 14))
    assert re.findall(r'<li class="level(\d)"><a [^>]*><bdi>(.*?)</bdi>', reply.text) == [
        ("1", "望遠鏡"), ("2", "鏡の手入れ"), ("2", "組み立て"),
    ]  # fmt: skip
    assert 'class="line heading level2" id="L7"' in reply.text


def test_the_lines_of_an_entry_are_counted_as_those_of_its_file(
    browser: TestClient, library: Library, tmp_path: Path
) -> None:
    (tmp_path / "memos").mkdir()
    (tmp_path / "memos/days.md").write_text("# 2024-02-01\n\nFerns.\n\n# 2024-02-02\n\nMoss.\nRain.\n", "utf-8")
    library.add(tmp_path / "memos", name="memos", description="Days.", kind="memos")
    library.import_("memos")
    text = browser.get("/documents/memos/days.md%232024-02-02?view=source").text
    assert re.findall("Lines .* of .*(?=</p>)", text) == ["Lines 5 to 8 of 8"]


@pytest.mark.slow
def test_a_large_document_is_shown_in_parts_that_lead_to_each_other(
    browser: TestClient, docs: Path, library: Library
) -> None:
    (docs / "large.txt").write_text("\n".join(f"line {number}" for number in range(1, 5001)), "utf-8")
    library.reindex()
    around = browser.get("/documents/docs/large.txt?hit=L3000&view=source").text
    numbers = line_numbers(around)
    assert len(numbers) == 300
    assert 3000 in numbers
    before = unescape(re.findall(r'class="before" rel="prev" href="([^"]*)"', around)[0])
    after = unescape(re.findall(r'class="after" rel="next" href="([^"]*)"', around)[0])
    assert line_numbers(browser.get(before).text)[-1] == numbers[0] - 1
    assert line_numbers(browser.get(after).text)[0] == numbers[-1] + 1
    end = browser.get("/documents/docs/large.txt?lines=4900-6000&view=source").text
    assert line_numbers(end)[-1] == 5000
    assert 'rel="next"' not in end


@pytest.mark.slow
def test_a_line_of_megabytes_is_shown_around_what_was_found_in_it(
    browser: TestClient, docs: Path, library: Library
) -> None:
    text = "x " * 500_000 + "telescopic needle " + "y " * 500_000
    (docs / "line.txt").write_text(text, "utf-8")
    library.reindex()
    results = browser.get("/", params={"q": "telescopic needle", "path": "line.txt"}).text
    address = unescape(re.findall(r'<a class="name" href="([^"]*)" data-beside', results)[0])
    reply = browser.get(address)
    assert re.search(r"<mark>telescopic.*needle</mark>", reply.text)
    assert "shown in part" in reply.text
    assert len(reply.text) < 60_000


def test_what_a_document_contains_is_only_text(browser: TestClient, docs: Path, library: Library) -> None:
    name = '"><img src=x onerror=alert(1)>.md'
    (docs / name).write_text(
        "---\ntags: ['<script>alert(2)</script>']\n---\n# <script>alert(3)</script> hostile\n\n"
        "hostile </div></article><script>alert(4)</script> \u202egnp.exe [a](javascript:alert(5))\n",
        "utf-8",
    )
    library.reindex()
    results = browser.get("/", params={"q": "hostile", "why": "1"})
    address = unescape(re.findall(r'<a class="name" href="([^"]*)" data-beside', results.text)[0])
    document = browser.get(address)
    assert document.status_code == 200
    for text in (results.text, document.text):
        scripts = re.findall(r"<script[^>]*>", text)
        assert all('type="application/json"' in script or "src=" in script for script in scripts)
        assert "<img" not in text
        assert "\u202e" not in text
        assert 'href="javascript' not in text


def test_an_unknown_document_is_not_found_in_both_languages(visit: Visitor) -> None:
    reply = visit(language="ja").get("/documents/docs/gone.md")
    assert reply.status_code == 404
    assert "文書も引用箇所も見つかりません" in reply.text
    assert "検索へ" in reply.text


def test_the_server_opens_documents_only_for_whoever_started_it(visit: Visitor) -> None:
    assert "data-open-editor" in visit(is_local=True).get("/documents/docs/mirror.md").text
    writer = visit().get("/documents/docs/mirror.md").text
    assert "data-open-editor" not in writer
    assert 'href="vscode://file/' in writer
    reader = visit(Rights(read=("docs",))).get("/documents/docs/mirror.md").text
    assert "vscode:" not in reader


def test_a_web_page_has_an_address_of_one_part(browser: TestClient) -> None:
    from bunko.interfaces.page.query import document_address

    assert (
        document_address("web", "https://example.com/a?b=c") == "/documents/web/https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc"
    )
    assert browser.get(document_address("web", "https://example.com/a")).status_code == 404
