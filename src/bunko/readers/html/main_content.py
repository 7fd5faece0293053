"""Find the element that holds the main text of a page."""

from __future__ import annotations

from collections.abc import Iterable

from bunko.readers.html.tree import Node, PageTree

_MIN_MAIN_CHARS = 200  # characters: a main element with so many is trusted, however large the rest of the page is
_MIN_MAIN_SHARE = 0.3  # of the page; less means a frame that was named main
_MIN_CANDIDATE_SHARE = 0.5  # of the text around it; less means a teaser
_MAX_RIVAL_SHARE = 0.6  # of the best candidate; more means a list of articles, not a comment or a teaser


def main_element(page: PageTree) -> Node:
    """Return the article that holds most of the text, else the main element, else the body."""
    body = page.body
    main = max(page.mains, key=_text_weight, default=None)
    scope = (
        main
        if main and (main.chars >= _MIN_MAIN_CHARS or main.text_weight >= _MIN_MAIN_SHARE * body.text_weight)
        else body
    )
    for candidates in (page.article_bodies, page.articles):
        best, *rivals = [*sorted(_without_boilerplate(candidates), key=_text_weight, reverse=True), None]
        # Two articles of similar size are a list of articles, not the main text.
        rival_weight = rivals[0].text_weight if rivals and rivals[0] else 0.0
        if (
            best
            and best.chars
            and best.text_weight >= _MIN_CANDIDATE_SHARE * scope.text_weight
            and rival_weight < _MAX_RIVAL_SHARE * best.text_weight
        ):
            return best
    if scope is body:
        # The innermost element comes last.
        for node in reversed(page.named_as_main):
            if not node.is_boilerplate and node.chars and node.text_weight >= _MIN_CANDIDATE_SHARE * body.text_weight:
                return node
    return scope


def _without_boilerplate(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if not node.is_boilerplate]


def _text_weight(node: Node) -> float:
    return node.text_weight
