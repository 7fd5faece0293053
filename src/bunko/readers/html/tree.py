"""Build a tree of the visible content of a page, with boilerplate marked, and find the main text in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bunko.errors import SourceError
from bunko.runtime.package_errors import package_errors

MAX_TAGS = 400_000  # with attributes; articles of 2 MB have 60,000
_SMALL_FORM_CHARS = 200  # characters; some sites wrap the whole page in one form

# Elements without text of the page.
_IGNORED_TAGS = frozenset(
    "script style noscript template svg iframe object embed canvas audio video head button select textarea input"
    " datalist rp rtc frame frameset noframes noembed applet map progress meter annotation annotation-xml".split()
)
_NEVER_MAIN_TAGS = frozenset(("nav", "footer", "aside", "dialog"))
_STRUCTURE_TAGS = frozenset(("table", "h1", "h2", "h3"))
_RUBY_TAGS = ("ruby", "rb", "rbc")
_BOILERPLATE_ROLES = frozenset(
    "navigation banner contentinfo complementary search menu menubar dialog alertdialog tooltip toolbar".split()
)
_HIDDEN_STYLE = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_HIDDEN_CLASS = re.compile(r"sr-only|visually-?hidden|screen-reader-text")
# Line numbers beside a listing; some sites use these names for the listing itself or for a page column.
_LINE_NUMBERS_CLASS = re.compile(r"gutter|lineno|linenos|line-numbers?|hljs-ln-numbers")
_MAX_LINE_NUMBERS_CHARS = 100_000  # characters
_LETTER = re.compile(r"[^\W\d_]")
# A button that expands an answer is the question.
_QUESTION_CLASS = re.compile(r"(?i)accordion|faq|question|collapsible")
_HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary")
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
_FRAME_IDS = ("header", "footer")  # of the page; as classes they may belong to an article
_NOTE_CLASS = re.compile(r"(?i)\b(?:note|msg|message|admonition|callout|warning|caution|tip|info|alert|hint)")
_MAIN_NAME = re.compile(
    r"(?:main|content|contents|article|post|entry)(?:-?(?:body|content|contents|text|main|area|inner))?"
    r"|page-?(?:body|content)|markdown-body|mw-content-text|honbun"
)
_PERMALINK_TEXTS = frozenset(("¶", "#", "§", "†", "^", "↑", "🔗", "Permalink", "permalink", "link", "[編集]"))


class Node:
    """An element with its child elements and strings; its counts exclude boilerplate."""

    __slots__ = (
        "attributes",
        "chars",
        "children",
        "first_index",
        "has_structure",
        "holds_main",
        "is_boilerplate",
        "last_index",
        "link_chars",
        "link_count",
        "reading",
        "tag",
    )  # fmt: skip

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Node | str] = []
        self.chars = 0
        self.link_chars = 0  # characters in links
        self.link_count = 0
        self.is_boilerplate = False
        self.holds_main = False
        self.has_structure = False  # contains tables or headings, which mark a layout table
        self.reading = ""  # of a ruby
        # Positions of this element and of the last one inside it, in document order.
        self.first_index = self.last_index = 0

    def contains(self, node: Node) -> bool:
        """Return whether a node is this element or inside it."""
        return self.first_index <= node.first_index <= self.last_index

    @property
    def text_weight(self) -> float:
        """Return the amount of text; link text counts little."""
        return self.chars - 0.8 * self.link_chars


@dataclass(slots=True)
class PageTree:
    """The body of a page, and the elements that may hold its main text, in order."""

    body: Node
    articles: list[Node] = field(default_factory=list)  # outermost articles
    article_bodies: list[Node] = field(default_factory=list)
    mains: list[Node] = field(default_factory=list)
    named_as_main: list[Node] = field(default_factory=list)  # by class or id
    headings: list[Node] = field(default_factory=list)  # h1
    times: list[Node] = field(default_factory=list)
    ruby_chars: int = 0


# The parser node to continue after, the parent element, and the number of articles, sections and mains around it.
_Ancestor = tuple[Any, Node, int]


def parse_html(html: str) -> Any:
    """Parse HTML into a document of the parser; raise SourceError if it has more tags than any page of text."""
    if len(html) > 2 * MAX_TAGS and count_tags(html) > MAX_TAGS:  # each has two characters at least
        raise SourceError(f"The page has more than {MAX_TAGS:,} tags and attributes", hint="Split it, or exclude it.")
    source = sanitize_html(html.replace("\0", "")) or " "
    with package_errors("selectolax"):
        from selectolax.lexbor import LexborHTMLParser

        return LexborHTMLParser(source)


def build_tree(document: Any) -> PageTree:
    """Return the visible content of a document."""
    body = Node("body", {})
    page_tree = PageTree(body)
    start = document.body
    if start is None:
        start = document.root
    node = start.first_child if start is not None else None
    element, index = body, 0
    ancestors: list[_Ancestor] = []
    section_depth = 0  # enclosing articles, sections and main elements
    while True:
        index += 1
        if node is None:
            # The element is complete.
            element.last_index = index
            if not ancestors:
                return page_tree
            node, parent, section_depth = ancestors.pop()
            _complete_element(element, parent)
            if element.is_boilerplate:
                _mark_boilerplate(page_tree, element)
            element = parent
            node = node.next
            continue
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            element.children.append(text)
            element.chars += len(text.strip())
        elif tag == "rt":
            if element.tag in _RUBY_TAGS:
                reading = "".join((node.text(deep=True) or "").split())
                element.reading += reading
                page_tree.ruby_chars += len(reading)
        elif (tag not in _IGNORED_TAGS or (tag == "button" and _is_question(node, element))) and tag[0] != "-":
            attributes = node.attributes
            if not attributes or not _is_hidden(attributes):
                child = Node(tag, attributes)
                child.first_index = index
                ancestors.append((node, element, section_depth))
                if attributes:
                    child.is_boilerplate = _is_boilerplate(attributes)
                section_depth += _enter_element(child, ancestors, section_depth, page_tree)
                element, node = child, node.first_child
                continue
        node = node.next


def _mark_boilerplate(page_tree: PageTree, boilerplate: Node) -> None:
    """Mark the candidates inside a boilerplate element as boilerplate."""
    for nodes in (page_tree.headings, page_tree.articles, page_tree.article_bodies, page_tree.named_as_main):
        for node in reversed(nodes):
            if node.first_index < boilerplate.first_index:
                break
            node.is_boilerplate = True


def _enter_element(node: Node, ancestors: list[_Ancestor], section_depth: int, page_tree: PageTree) -> bool:
    """Classify an element, and return whether it is an article, a section or a main element."""
    tag, attributes = node.tag, node.attributes
    role = attributes.get("role") if attributes else None
    if tag == "nav" or tag == "search" or (tag == "dialog" and "open" not in attributes):
        node.is_boilerplate = True
    elif tag == "header":
        node.is_boilerplate = node.is_boilerplate or not section_depth
    elif tag == "footer":
        node.is_boilerplate = not any(parent.tag == "blockquote" for _, parent, _ in ancestors[-3:])
    elif tag == "aside":
        node.is_boilerplate = not (section_depth and _NOTE_CLASS.search(attributes.get("class") or ""))
    elif tag == "h1":
        page_tree.headings.append(node)
    elif tag == "time":
        page_tree.times.append(node)
    elif tag == "article" or role == "article":
        if not any(ancestor.tag == "article" for _, ancestor, _ in ancestors[-30:]):
            page_tree.articles.append(node)
        return True
    elif tag == "main" or role == "main":
        node.is_boilerplate = False
        page_tree.mains.append(node)
        return True
    if attributes:
        if attributes.get("itemprop") == "articleBody":
            page_tree.article_bodies.append(node)
            return True
        if tag in ("div", "section", "td") and _is_main_name(attributes.get("id") or "", attributes.get("class") or ""):
            page_tree.named_as_main.append(node)
    return tag == "section"


def _complete_element(node: Node, parent: Node) -> None:
    """Add a complete element to its parent."""
    if node.attributes and _is_line_numbers(node):
        return
    tag = node.tag
    if tag == "a":
        node.link_count += 1
        node.link_chars = node.chars
        if node.chars <= 9 and (node.attributes.get("href") or "#").startswith("#"):
            inner = inner_text(node).strip()
            # The permalink after a heading, and the number of a footnote.
            node.is_boilerplate = (
                node.is_boilerplate or inner in _PERMALINK_TEXTS or (parent.tag == "sup" and bool(inner))
            )
    elif tag == "form":
        node.is_boilerplate = node.is_boilerplate or node.chars < _SMALL_FORM_CHARS
    elif tag in _RUBY_TAGS and parent.tag in _RUBY_TAGS:
        parent.reading += node.reading
    holds_main = node.holds_main or tag in ("main", "article")
    if holds_main and tag not in _NEVER_MAIN_TAGS:
        node.is_boilerplate = False  # in spite of its name, it holds the main text
    if not node.is_boilerplate:
        parent.chars += node.chars
        parent.link_chars += node.link_chars
        parent.link_count += node.link_count
        parent.holds_main = parent.holds_main or holds_main
        if (node.has_structure or tag in _STRUCTURE_TAGS) and tag not in ("th", "caption"):
            parent.has_structure = True
    parent.children.append(node)


def inner_text(node: Node) -> str:
    """Return all text inside an element except boilerplate, unchanged."""
    parts: list[str] = []
    pending: list[Node | str] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            parts.append(current)
        elif not current.is_boilerplate or current is node:
            pending.extend(reversed(current.children))
    return "".join(parts)


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    if attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    if style and _HIDDEN_STYLE.search(style):
        return True
    class_names = attributes.get("class")
    return bool(class_names) and _has_hidden_class(class_names or "")


def _is_line_numbers(node: Node) -> bool:
    class_names = node.attributes.get("class")
    if not class_names or not _has_line_numbers_class(class_names) or node.chars > _MAX_LINE_NUMBERS_CHARS:
        return False
    return _LETTER.search(inner_text(node)) is None


def _is_question(button: Any, parent: Node) -> bool:
    return parent.tag in _HEADING_TAGS or bool(_QUESTION_CLASS.search(button.attributes.get("class") or ""))


@lru_cache(4096)
def _has_line_numbers_class(class_names: str) -> bool:
    return any(_LINE_NUMBERS_CLASS.fullmatch(name) for name in class_names.split())


@lru_cache(4096)
def _has_hidden_class(class_names: str) -> bool:
    return any(_HIDDEN_CLASS.fullmatch(name) for name in class_names.split())


def _is_boilerplate(attributes: dict[str, str | None]) -> bool:
    role = attributes.get("role")
    if role in _BOILERPLATE_ROLES:
        return True
    class_names, element_id = attributes.get("class"), attributes.get("id")
    return bool(class_names or element_id) and _has_boilerplate_class(class_names or "", element_id or "")


@lru_cache(4096)
def _has_boilerplate_class(class_names: str, element_id: str) -> bool:
    return element_id in _FRAME_IDS or any(
        _BOILERPLATE_CLASS.fullmatch(_kebab_name(name)) for name in (*class_names.split(), element_id)
    )


@lru_cache(4096)
def _is_main_name(element_id: str, class_names: str) -> bool:
    return any(_MAIN_NAME.fullmatch(_kebab_name(name)) for name in (element_id, *class_names.split()))


def _kebab_name(name: str) -> str:
    """Return a class name in kebab case: main_content and mainContent become main-content."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()


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
        articles = [node for node in candidates if not node.is_boilerplate]
        best, *rivals = [*sorted(articles, key=_text_weight, reverse=True), None]
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


def _text_weight(node: Node) -> float:
    return node.text_weight


_FEW_TAGS = 1000  # tags
_SMALL_PAGE_CHARS = 50_000  # characters; less than this cannot hold enough to matter
_MAX_DEPTH = 400  # nested elements; browsers stop at 512
_MAX_REOPENED_ELEMENTS = 300_000  # unclosed formatting elements times tags
_MAX_TAG_CHARS = 4000  # characters

_TAG_START = re.compile(r"<(?:(?P<comment>!--)|(?P<close>/?)(?P<name>[a-zA-Z][^\s/>]*+))")
_TAG_END_OR_VALUE = re.compile(r">|=\s*+(?:\"[^\"]*+\"|'[^']*+')")
_VOID_TAGS = frozenset("area base br col embed hr img input link meta source track wbr param".split())
_RAW_TEXT_TAGS = frozenset("script style textarea title xmp iframe noembed noframes".split())
_ATTRIBUTE = re.compile(r"[^\s/>=\"'][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?")
_FORMATTING_TAGS = frozenset("b big code em font i s small strike strong tt u nobr".split())
_FORMATTING_TAG = re.compile(rf"(?i)</?(?:{'|'.join(sorted(_FORMATTING_TAGS))})(?:[\s/][^>]*+)?>")
# Such an element ends the one before it, since their end tags are optional.
_OPTIONAL_END_TAGS = frozenset("p li dt dd tr td th option optgroup thead tbody tfoot colgroup".split())


def count_tags(html: str) -> int:
    """Return the number of tags and attributes: a tree takes about 500 bytes and 5 µs for each."""
    count = position = 0
    while match := _TAG_START.search(html, position):
        count += 1
        position = match.end()
        if match["name"] and not html.startswith(">", position):
            position = _find_tag_end(html, position)
            count += len(_ATTRIBUTE.findall(html, match.end(), position))
    return count


def sanitize_html(html: str) -> str:
    """Return the page without the tags beyond the limits."""
    if len(html) < _SMALL_PAGE_CHARS and html.count("<") < _FEW_TAGS:
        return html
    parts: list[str] = []
    start = position = 0
    open_tags: list[str] = []
    unclosed: dict[str, int] = {}
    tag_count = max_unclosed = 0
    while match := _TAG_START.search(html, position):
        position = match.end()
        if match["comment"]:
            end = html.find("-->", position)
            if end < 0:
                break
            position = end + 3
            continue
        position = _find_tag_end(html, position)
        name = match["name"].lower()
        if match["close"]:
            if unclosed.get(name):
                unclosed[name] -= 1
            _close_tag(open_tags, name)
            continue
        replacement = None
        tag_count += 1
        if name in _FORMATTING_TAGS:
            unclosed[name] = unclosed.get(name, 0) + 1
            max_unclosed = max(max_unclosed, sum(unclosed.values()))
        elif name not in _VOID_TAGS and name not in _RAW_TEXT_TAGS and not _open_tag(open_tags, name):
            replacement = " "
        if replacement is None and position - match.start() > _MAX_TAG_CHARS:
            replacement = f"<{name}>"
        if replacement is not None:
            parts += (html[start : match.start()], replacement)
            start = position
        if name in _RAW_TEXT_TAGS:
            position = _find_end_tag(html, name, position)
            if position < 0:
                break
    if parts:
        html = "".join((*parts, html[start:]))
    return _FORMATTING_TAG.sub("", html) if max_unclosed * tag_count > _MAX_REOPENED_ELEMENTS else html


def _find_tag_end(html: str, position: int) -> int:
    """Return the end of the tag whose name ends at `position`: a > in the value of an attribute does not end it."""
    while match := _TAG_END_OR_VALUE.search(html, position):
        position = match.end()
        if html[position - 1] == ">":
            return position
    return len(html)


def _find_end_tag(html: str, name: str, position: int) -> int:
    """Return the start of the end tag of an element with raw text; -1 if there is none."""
    end = html.find("</", position)
    closing = re.compile(rf"(?i)</{re.escape(name)}").search(html, end) if end >= 0 else None
    return closing.start() if closing else -1


def _open_tag(open_tags: list[str], name: str) -> bool:
    """Add an element to the open ones; return False if it is nested too deeply."""
    if open_tags and open_tags[-1] == name and name in _OPTIONAL_END_TAGS:
        open_tags.pop()
    if len(open_tags) >= _MAX_DEPTH:
        return False
    open_tags.append(name)
    return True


def _close_tag(open_tags: list[str], name: str) -> None:
    # Searching only the innermost 30 keeps the pass linear; tags left open by that only reach the limit sooner.
    for index in range(len(open_tags) - 1, max(-1, len(open_tags) - 30), -1):
        if open_tags[index] == name:
            del open_tags[index:]
            return
