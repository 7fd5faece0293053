"""Check a page with axe-core: WCAG 2.2, levels A and AA."""

from __future__ import annotations

from functools import cache
from typing import Any

from playwright.sync_api import Page

from tests.browser.npm import package_file

_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
_SHOWN = 3  # elements of each violation


def assert_accessible(page: Page) -> None:
    """Fail with each element of a page that breaks a rule of WCAG."""
    # Evaluated by the debugger, which the policy of the page does not bind; a script element would be blocked.
    page.evaluate(_axe())
    options = {"runOnly": {"type": "tag", "values": _TAGS}, "resultTypes": ["violations"]}
    result: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    assert result["violations"] == [], "".join(map(_describe, result["violations"]))


def _describe(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    text = f"\n{violation['id']}, {len(nodes)} times: {violation['help']}"
    for node in nodes[:_SHOWN]:
        text += f"\n    {node['html'][:200]}\n    {node['failureSummary']}"
    return text


@cache
def _axe() -> str:
    return package_file("axe-core/axe.min.js").read_text("utf-8")
