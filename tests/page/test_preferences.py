"""The colours and the language of the page, as somebody chose them for a browser."""

from __future__ import annotations

import pytest

from tests.page.conftest import Visit, Visitor


def choose(visitor: Visit, page: str = "/", **choices: str) -> str:
    """Send the form at the foot of a page; return where it leads."""
    reply = visitor.post("/preferences", data=choices, headers={"Referer": f"http://testserver{page}"})
    assert reply.status_code == 303
    return reply.headers["location"]


def test_the_chosen_colours_are_in_the_page_from_its_first_byte(visit: Visitor) -> None:
    visitor = visit()
    assert "data-theme" not in visitor.get("/").text
    assert 'content="light dark"' in visitor.get("/").text
    choose(visitor, theme="dark")
    page = visitor.get("/ask").text
    assert '<html lang="en" data-theme="dark">' in page
    assert '<meta name="color-scheme" content="dark">' in page
    assert '<option value="dark" selected>' in page
    choose(visitor, theme="")
    assert "data-theme" not in visitor.get("/").text


def test_the_chosen_language_precedes_that_of_the_browser(visit: Visitor) -> None:
    visitor = visit(language="en")
    choose(visitor, lang="ja")
    assert '<html lang="ja">' in visitor.get("/").text
    assert '<html lang="en">' in visitor.get("/?lang=en").text
    choose(visitor, lang="")
    assert '<html lang="en">' in visitor.get("/").text


def test_what_is_no_choice_is_not_kept(visit: Visitor) -> None:
    visitor = visit()
    choose(visitor, theme="x; path=/", lang="fr")
    assert not visitor.cookies
    visitor.cookies.set("bunko_theme", '"><script>')
    assert "data-theme" not in visitor.get("/").text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("/?q=%E9%8F%A1&lang=ja&tag=a&tag=b", "/?q=%E9%8F%A1&tag=a&tag=b"),
        ("/documents/docs/guide/%E6%9C%9B%23.md?hit=L3", "/documents/docs/guide/%E6%9C%9B%23.md?hit=L3"),
        ("//evil.example/", "/"),
    ],
)
def test_the_form_leads_back_to_its_page_without_a_language_of_its_own(
    visit: Visitor, page: str, expected: str
) -> None:
    assert choose(visit(), page, theme="dark") == expected


def test_the_form_leads_nowhere_else(visit: Visitor) -> None:
    reply = visit().post("/preferences", data={}, headers={"Referer": "http://evil.example/a"})
    assert reply.headers["location"] == "/"


def test_there_is_nothing_to_sign_out_of_under_bunko_ui(visit: Visitor) -> None:
    assert "/logout" not in visit(is_local=True).get("/").text
    assert 'action="/logout"' in visit().get("/").text
