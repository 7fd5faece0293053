"""The tree of a page comes in, the element that holds its main text goes out."""

from __future__ import annotations

from collections.abc import Iterable

from bunko.readers.html.tree import Node, Tree

_ENOUGH = 200  # characters: a main element with so many is believed, however much stands around it
_SHARE = 0.3  # of the page, else it is some frame that was called main
_MOST = 0.5  # of the text around: one that has less is a teaser among others
_RIVAL = 0.6  # of the best: one that has as much is no comment or teaser beside it


def main_text(page: Tree) -> Node:
    """Return the article that holds most of the main element, else that element, else the body."""
    body = page.body
    main = max(page.mains, key=_weight, default=None)
    scope = main if main and (main.chars >= _ENOUGH or main.weight >= _SHARE * body.weight) else body
    for candidates in (page.article_bodies, page.articles):
        best, *others = [*sorted(_shown(candidates), key=_weight, reverse=True), None]
        # Two of about one size are a list of them, however few there are.
        rival = others[0].weight if others and others[0] else 0.0
        if best and best.chars and best.weight >= _MOST * scope.weight and rival < _RIVAL * best.weight:
            return best
    if scope is body:
        # The innermost comes last.
        for node in reversed(page.named):
            if not node.boilerplate and node.chars and node.weight >= _MOST * body.weight:
                return node
    return scope


def _shown(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if not node.boilerplate]


def _weight(node: Node) -> float:
    return node.weight
