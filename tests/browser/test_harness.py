"""What the fixtures of this folder promise to the other tests."""

from __future__ import annotations

import pytest

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import PageOpener


def test_errors_violations_and_requests_to_other_machines_are_noted(open_page: PageOpener) -> None:
    page = open_page("/")
    assert open_page.problems == []
    page.evaluate("console.error('a word from a script')")
    page.evaluate("setTimeout(() => { throw new Error('nobody caught this') })")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.evaluate("fetch('http://192.0.2.1/').catch(() => {})")
    page.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'http://192.0.2.1/'}))")
    page.evaluate("location.href = 'http://192.0.2.1/elsewhere'")
    open_page.settle(page)
    problems = "\n".join(open_page.problems)
    open_page.problems.clear()
    assert "a word from a script" in problems
    assert "nobody caught this" in problems
    assert "leaves this server: http://192.0.2.1/elsewhere" in problems
    assert problems.count("Content Security Policy") >= 2


def test_an_element_without_a_name_is_not_accessible(open_page: PageOpener) -> None:
    page = open_page("/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    with pytest.raises(AssertionError, match="button-name"):
        assert_accessible(page)


def test_a_library_of_its_own_can_be_changed(open_own_page: PageOpener) -> None:
    open_own_page("/")
    open_own_page.library.delete_tool("travel")
    assert "travel" not in [tool.name for tool in open_own_page.library.tools()]
