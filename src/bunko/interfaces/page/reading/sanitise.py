"""Let only harmless markup through: what readers write about a text, and what its author may write in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from types import ModuleType

from markupsafe import Markup, escape

from bunko.runtime.package_errors import package_errors
from bunko.text.labels import remove_hidden_chars

_TAGS = frozenset(
    "a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure h2 h3 h4"
    " h5 h6 hr i ins kbd li mark ol p pre q rp rt ruby s samp small span strong sub summary sup table tbody td tfoot th"
    " thead time tr u ul var wbr".split()
)
# Their content is no text either.
_DROPPED_TAGS = frozenset(
    "script style template noscript noembed noframes iframe object embed svg math title textarea select xmp"
    " plaintext".split()
)
# What only our own markup has: its values begin with a word that no author can know.
_OWN_ATTRIBUTES = {"aria-label", "class", "id", "role", "tabindex", "data-line", "scope"}
_ATTRIBUTES = {
    "*": _OWN_ATTRIBUTES, "a": {"href", "target"}, "ol": {"start"}, "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"}, "details": {"open"},
}  # fmt: skip
_MAX_SPAN = 50
_SMALL_NUMBER = re.compile(r"[0-9]{1,6}")
# Left open, they are opened again in every block that follows: the product of both is the size of what is built.
_FORMATTING = re.compile(r"(?i)<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)(?=[\s/>])")
_MAX_REOPENED = 200_000
_MAX_IMAGE_CHARS = 20_000


def sanitise(html: str, word: str, resolve: Callable[[str], str | None]) -> Markup:
    """Return markup without anything that acts, loads or names; attributes with the word in front are our own.

    `resolve` returns the address that a link may lead to, or None.
    """

    def choose(tag: str, attribute: str, value: str) -> str | None:
        if value.startswith(word):
            return value.removeprefix(word)
        if attribute == "href":
            return resolve(value)
        if attribute == "rel":  # of every link
            return value
        if attribute in ("colspan", "rowspan"):
            return value if _SMALL_NUMBER.fullmatch(value) and int(value) <= _MAX_SPAN else None
        if attribute == "start":
            return value if _SMALL_NUMBER.fullmatch(value) else None
        return "" if attribute == "open" else None

    clean = _load_nh3().clean(
        html,
        tags=set(_TAGS),
        clean_content_tags=set(_DROPPED_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=choose,
        url_schemes={"http", "https", "mailto"},
        link_rel="noreferrer noopener",
    )
    # An entity may have stood for one.
    return Markup(remove_hidden_chars(clean))


def author_markup(html: str) -> str:
    """Return raw HTML of a document with images as their descriptions."""
    if "<img" not in html.lower() or len(html) > _MAX_IMAGE_CHARS:
        return html
    parser = _ImageTexts()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


def reopens_much(raw: str, blocks: int) -> bool:
    """Return whether raw HTML would grow by formatting that is left open."""
    return len(_FORMATTING.findall(raw)) * (raw.count("<") + blocks) > _MAX_REOPENED


class _ImageTexts(HTMLParser):
    """Writes markup as it is, but for images."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.parts.append(str(escape(dict(attrs).get("alt") or "")))
        else:
            self.parts.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")


@cache
def _load_nh3() -> ModuleType:
    with package_errors("nh3"):
        import nh3

        nh3.clean("")  # what cannot work fails here
    return nh3
