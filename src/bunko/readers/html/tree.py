"""The text of a page comes in, a tree of what a reader would see of it goes out, boilerplate marked as such."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bunko.readers.html.sanitize import tamed

_MOST_NODES = 1_000_000
_SMALL_FORM = 200  # characters; some sites put the whole page into one form

# Nothing in these is text of the page.
_GONE = frozenset(
    "script style noscript template svg iframe object embed canvas audio video head button select textarea input"
    " datalist rp rtc frame frameset noframes noembed applet map progress meter annotation annotation-xml".split()
)
_NEVER_MAIN = frozenset(("nav", "footer", "aside", "dialog"))
_STRUCTURE = frozenset(("table", "h1", "h2", "h3"))
_RUBY = ("ruby", "rb", "rbc")
_ROLES = frozenset(
    "navigation banner contentinfo complementary search menu menubar dialog alertdialog tooltip toolbar".split()
)
_INVISIBLE = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_HIDDEN_CLASS = re.compile(r"sr-only|visually-?hidden|screen-reader-text")
# Numbers of lines beside a listing; some call the listing itself so, or a column of the page.
_NUMBERS_CLASS = re.compile(r"gutter|lineno|linenos|line-numbers?|hljs-ln-numbers")
_MOST_NUMBERS = 100_000  # characters
_LETTER = re.compile(r"[^\W\d_]")
# A button that shows an answer is the question.
_QUESTION_CLASS = re.compile(r"(?i)accordion|faq|question|collapsible")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary")
_BOILERPLATE_CLASS = re.compile(
    r"(?:bread-?crumbs?|topic-?path|pankuzu)(?:-?(?:list|nav|wrap(?:per)?|container))?"
    r"|(?:sns|social)(?:-?(?:share|sharing|buttons?|links?|icons?|list|box|area))?|share(?:-?(?:buttons?|links?|bar|box|area))?"
    r"|cookies?(?:-?(?:banner|notice|consent|bar|popup|policy-?banner))?|gdpr(?:-?\w+)?|consent-?(?:banner|popup)"
    r"|ads?|adsbygoogle|advert(?:s|ise?ments?|ising)?|ad-?(?:banner|container|slot|unit|wrapper)"
    r"|(?:left-?|right-?|page-?|site-?)?side-?(?:bar|nav|menu)(?:-?(?:left|right))?"
    r"|paginat(?:ion|or)|pager|page-?navi?|post-?navigation|prev-?next"
    r"|toc|table-?of-?contents|skip-?(?:link|nav|to-?content|to-?main)|nav-?bar|(?:global|site|main|g|top|foot|header)-?navi?"
    r"|global-?(?:menu|header|footer)|site-?(?:header|footer)|related-?(?:posts?|articles?|entries|entry|links?|contents?)"
    r"|newsletter(?:-?\w+)?|mw-(?:editsection|jump-link)|cat-?links|nav-?box|site-sub|menu-?bar|headerlink|anchor-?link|back-?to-?top|page-?top"
)
_FRAME_IDS = ("header", "footer")  # of the page; as a class they may be those of an article
_NOTE_CLASS = re.compile(r"(?i)\b(?:note|msg|message|admonition|callout|warning|caution|tip|info|alert|hint)")
_MAIN_NAME = re.compile(
    r"(?:main|content|contents|article|post|entry)(?:-?(?:body|content|contents|text|main|area|inner))?"
    r"|page-?(?:body|content)|markdown-body|mw-content-text|honbun"
)
_PERMALINK = frozenset(("¶", "#", "§", "†", "^", "↑", "🔗", "Permalink", "permalink", "link", "[編集]"))


class Node:
    """An element: its children are elements and strings, its sizes count what is not boilerplate."""

    __slots__ = (
        "attributes", "boilerplate", "chars", "children", "first", "holds_main", "last", "linked", "links",
        "reading", "structured", "tag",
    )  # fmt: skip

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Node | str] = []
        self.chars = 0
        self.linked = 0  # characters in links
        self.links = 0
        self.boilerplate = False
        self.holds_main = False
        self.structured = False  # holds tables or headings: in a cell a sign that the table is there for the layout
        self.reading = ""  # of a ruby
        self.first = self.last = 0  # its number and that of the last element inside, in the order of the page

    def holds(self, node: Node) -> bool:
        """Say whether an element is this one or inside of it."""
        return self.first <= node.first <= self.last

    @property
    def weight(self) -> float:
        """Return how much text it holds; that of links counts little."""
        return self.chars - 0.8 * self.linked


@dataclass(slots=True)
class Tree:
    """The body of a page, and the places in it that may be its main text, in order."""

    body: Node
    articles: list[Node] = field(default_factory=list)  # those that are not inside others
    article_bodies: list[Node] = field(default_factory=list)
    mains: list[Node] = field(default_factory=list)
    named: list[Node] = field(default_factory=list)  # told by their class or id
    headings: list[Node] = field(default_factory=list)  # h1
    times: list[Node] = field(default_factory=list)
    ruby_chars: int = 0


# The parser's node to go on from, the element around, and how many articles, sections and main elements are.
_Above = tuple[Any, Node, int]


def parse(html: str) -> Any:
    """Return the document as the parser knows it."""
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(tamed(html.replace("\0", "")) or " ")


def tree(document: Any) -> Tree:
    """Return what the body of a document shows."""
    body = Node("body", {})
    found = Tree(body)
    start = document.body
    if start is None:
        start = document.root
    node = start.first_child if start is not None else None
    here, left = body, _MOST_NODES
    above: list[_Above] = []
    inside = 0  # articles, sections and main elements around
    while True:
        left -= 1
        if node is None or left < 0:
            # The element is complete.
            here.last = _MOST_NODES - left
            if not above:
                return found
            node, parent, inside = above.pop()
            _complete(here, parent)
            if here.boilerplate:
                _mark(found, here)
            here = parent
            node = node.next
            continue
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            here.children.append(text)
            here.chars += len(text.strip())
        elif tag == "rt":
            if here.tag in _RUBY:
                reading = "".join((node.text(deep=True) or "").split())
                here.reading += reading
                found.ruby_chars += len(reading)
        elif (tag not in _GONE or (tag == "button" and _is_question(node, here))) and tag[0] != "-":
            attributes = node.attributes
            if not attributes or not _is_hidden(attributes):
                child = Node(tag, attributes)
                child.first = _MOST_NODES - left
                above.append((node, here, inside))
                if attributes:
                    child.boilerplate = _is_boilerplate(attributes)
                inside += _enter(child, above, inside, found)
                here, node = child, node.first_child
                continue
        node = node.next


def _mark(found: Tree, boilerplate: Node) -> None:
    """Mark what was found inside of boilerplate as such."""
    for nodes in (found.headings, found.articles, found.article_bodies, found.named):
        for node in reversed(nodes):
            if node.first < boilerplate.first:
                break
            node.boilerplate = True


def _enter(node: Node, above: list[_Above], inside: int, found: Tree) -> bool:
    """Note what an element is for, and say whether it is a part of the main text's structure."""
    tag, attributes = node.tag, node.attributes
    role = attributes.get("role") if attributes else None
    if tag == "nav" or tag == "search" or (tag == "dialog" and "open" not in attributes):
        node.boilerplate = True
    elif tag == "header":
        node.boilerplate = node.boilerplate or not inside
    elif tag == "footer":
        node.boilerplate = not any(parent.tag == "blockquote" for _, parent, _ in above[-3:])
    elif tag == "aside":
        node.boilerplate = not (inside and _NOTE_CLASS.search(attributes.get("class") or ""))
    elif tag == "h1":
        found.headings.append(node)
    elif tag == "time":
        found.times.append(node)
    elif tag == "article" or role == "article":
        if not any(one.tag == "article" for _, one, _ in above[-30:]):
            found.articles.append(node)
        return True
    elif tag == "main" or role == "main":
        node.boilerplate = False
        found.mains.append(node)
        return True
    if attributes:
        if attributes.get("itemprop") == "articleBody":
            found.article_bodies.append(node)
            return True
        if tag in ("div", "section", "td") and _is_named(attributes.get("id") or "", attributes.get("class") or ""):
            found.named.append(node)
    return tag == "section"


def _complete(node: Node, parent: Node) -> None:
    """Add a finished element to the one around it."""
    if node.attributes and _is_numbers(node):
        return
    tag = node.tag
    if tag == "a":
        node.links += 1
        node.linked = node.chars
        if node.chars <= 9 and (node.attributes.get("href") or "#").startswith("#"):
            inner = text_of(node).strip()
            # The mark behind a heading that leads to itself, and the number of a footnote.
            node.boilerplate = node.boilerplate or inner in _PERMALINK or (parent.tag == "sup" and bool(inner))
    elif tag == "form":
        node.boilerplate = node.boilerplate or node.chars < _SMALL_FORM
    elif tag in _RUBY and parent.tag in _RUBY:
        parent.reading += node.reading
    holds_main = node.holds_main or tag in ("main", "article")
    if holds_main and tag not in _NEVER_MAIN:
        node.boilerplate = False  # whatever it calls itself, it holds the main text
    if not node.boilerplate:
        parent.chars += node.chars
        parent.linked += node.linked
        parent.links += node.links
        parent.holds_main = parent.holds_main or holds_main
        if (node.structured or tag in _STRUCTURE) and tag not in ("th", "caption"):
            parent.structured = True
    parent.children.append(node)


def text_of(node: Node) -> str:
    """Return all text inside, as it stands."""
    parts: list[str] = []
    waiting: list[Node | str] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
        elif not one.boilerplate or one is node:
            waiting.extend(reversed(one.children))
    return "".join(parts)


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    if attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    if style and _INVISIBLE.search(style):
        return True
    names = attributes.get("class")
    return bool(names) and _has_hidden_class(names or "")


def _is_numbers(node: Node) -> bool:
    names = node.attributes.get("class")
    if not names or not _has_numbers_class(names) or node.chars > _MOST_NUMBERS:
        return False
    return _LETTER.search(text_of(node)) is None


def _is_question(button: Any, around: Node) -> bool:
    return around.tag in _HEADINGS or bool(_QUESTION_CLASS.search(button.attributes.get("class") or ""))


@lru_cache(4096)
def _has_numbers_class(names: str) -> bool:
    return any(_NUMBERS_CLASS.fullmatch(name) for name in names.split())


@lru_cache(4096)
def _has_hidden_class(names: str) -> bool:
    return any(_HIDDEN_CLASS.fullmatch(name) for name in names.split())


def _is_boilerplate(attributes: dict[str, str | None]) -> bool:
    role = attributes.get("role")
    if role in _ROLES:
        return True
    names, name = attributes.get("class"), attributes.get("id")
    return bool(names or name) and _has_boilerplate_class(names or "", name or "")


@lru_cache(4096)
def _has_boilerplate_class(names: str, name: str) -> bool:
    return name in _FRAME_IDS or any(_BOILERPLATE_CLASS.fullmatch(_plain(one)) for one in (*names.split(), name))


@lru_cache(4096)
def _is_named(name: str, names: str) -> bool:
    return any(_MAIN_NAME.fullmatch(_plain(one)) for one in (name, *names.split()))


def _plain(name: str) -> str:
    """Return a class as it is compared: main_content and mainContent are main-content."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()
