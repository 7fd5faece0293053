"""The map without scripts is a list; a search can be limited to documents chosen on it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.library.searching.selections import store_selection
from bunko.types.access import Rights
from tests.page.conftest import Visitor


def links(text: str) -> list[str]:
    """Return the addresses of the documents on a page."""
    return re.findall(r'<a href="(/documents/[^"]+)"', text)


def test_without_scripts_the_map_is_a_list_of_documents(browser: TestClient) -> None:
    reply = browser.get("/map")
    assert reply.status_code == 200
    assert len(links(reply.text)) == 4
    assert "Documents: 4" in reply.text
    assert browser.get(links(reply.text)[0]).status_code == 200


def test_a_search_on_the_map_lists_what_it_finds(browser: TestClient) -> None:
    reply = browser.get("/map?q=味噌")
    assert links(reply.text)[0].startswith(f"/documents/kitchen/{quote('味噌')}.md")


def test_the_map_says_what_is_wrong_with_a_search(browser: TestClient) -> None:
    reply = browser.get("/map?cursor=nonsense")
    assert reply.status_code == 400
    assert 'role="alert"' in reply.text


def test_the_map_is_in_both_languages(visit: Visitor) -> None:
    assert "文書：4 件" in visit(language="ja").get("/map").text
    assert 'value="ja"' in visit().get("/map?lang=ja").text


def test_the_map_lists_only_what_somebody_may_read(visit: Visitor) -> None:
    text = visit(Rights(("kitchen",), ())).get("/map").text
    assert [address.split("/")[2] for address in links(text)] == ["kitchen"]
    assert "望遠鏡" not in text


def test_a_search_is_limited_to_what_was_chosen_on_the_map(browser: TestClient, library: Library) -> None:
    selection = store_selection(library.store, {"docs": ["mirror.md"], "kitchen": ["味噌.md"]})
    text = browser.get(f"/?q=telescope+望遠鏡&selection={selection}").text
    names = re.findall(r'<a class="name" href="/documents/(\w+)/([^?]+)', text)
    assert {("docs", "mirror.md")} <= set(names) <= {("docs", "mirror.md"), ("kitchen", f"{quote('味噌')}.md")}
    assert "Searching only the documents chosen on the map: 2" in text
    assert f'name="selection" value="{selection}"' in text
    assert re.search(r'<a href="/\?q=[^"]*telescope[^"&]*">Search everywhere', text)
    listed = browser.get(f"/?selection={selection}").text
    assert listed.count('class="result"') == 2, "without words: the documents that were chosen"


def test_a_selection_that_is_gone_is_said_and_can_be_left(browser: TestClient) -> None:
    reply = browser.get("/?q=telescope&selection=gone")
    assert reply.status_code == 404
    assert "no longer available" in reply.text
    assert 'href="/?q=telescope">Search everywhere' in reply.text


def test_without_scripts_documents_are_listed_by_subject(visit: Visitor, library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "subjects"
    folder.mkdir()
    for number in range(80):
        subject = ("Coral reef", "Income tax")[number % 2]
        text = f"# {subject} {chr(97 + number % 26)}\n\n{subject} and what belongs to it, part {number}.\n"
        (folder / f"{number:02}.md").write_text(text, "utf-8")
    library.add(folder, name="subjects")
    library.import_("subjects")
    browser = visit()
    assert '<a href="/map?area=">' in browser.get("/map").text
    text = browser.get("/map?area=").text
    areas = re.findall(r'<a href="(/map\?area=[^"]+)"><bdi>([^<]+)</bdi>', text)
    assert {"Coral reef", "Income tax"} <= {name for _, name in areas}
    address = next(address for address, name in areas if name == "Coral reef")
    listed = browser.get(address).text
    assert re.search(r"Coral reef: \d+ documents", listed)
    assert 'aria-current="true"><bdi>Coral reef' in listed
    assert links(listed)
    limited = visit(Rights(("kitchen",), ())).get("/map?area=")
    assert "Coral reef" not in limited.text
    assert "Coral reef" not in visit(Rights(("kitchen",), ())).get(address).text
