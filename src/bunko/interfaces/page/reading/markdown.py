"""Render Markdown, and what readers of other formats write as Markdown, with the line that each block comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markupsafe import Markup, escape

from bunko.interfaces.page.reading.markdown_text import MarkdownText, Syntax
from bunko.interfaces.page.reading.marking import Marking
from bunko.interfaces.page.reading.sanitise import author_markup, reopens_much, sanitise
from bunko.readers.places import column_name
from bunko.text.language import JAPANESE_CHARS
from bunko.text.readable import SITE_MARK
from bunko.text.wiki_links import parse_wiki_link

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

    from bunko.interfaces.page.reading.links import Link, Links

# Quotes and lists inside each other; what is deeper is left out.
_MAX_NESTING = 60
_CALLOUT = re.compile(r"(?::{3,}[ \t]*([\w-]*)|/{3,}(?:[ \t]+([\w-]+)(?=[ \t]*(?:\||\Z)))?)[ \t]*\|?[ \t]*(.*)")
_CALLOUT_MARKS = re.compile(r"\{[^{}]*\}|[\[\]]")
_ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\^([^\]\s]{1,40})\](?::[ \t]+)?")
_MAX_WIKI_LINK_CHARS = 1000
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_JAPANESE = re.compile(f"[{JAPANESE_CHARS}。、！？「」（）]")


@dataclass(slots=True)
class _Frame:
    """What the rules for one text need."""

    text: MarkdownText
    marking: Marking
    links: Links
    drops_tags: bool = False
    addresses: set[str] = field(default_factory=set)

    def number(self, line: int) -> int:
        return self.text.numbers[min(line, len(self.text.numbers) - 1)]

    def resolve(self, href: str) -> str | None:
        if href in self.addresses:
            return href
        link = self.links.resolve(href)
        return link.address if link else None


def render_markdown(text: MarkdownText, marking: Marking, links: Links) -> Markup:
    """Return a text as harmless markup."""
    frame = _Frame(text, marking, links)
    environment: dict[str, Any] = {"frame": frame}
    parser = _parser(text.syntax)
    if text.definitions:
        parser.parse(text.definitions, environment)
    tokens = parser.parse("\n".join(text.lines), environment)
    tokens = _without_title(tokens, frame)
    raw = "".join(token.content for token in _walk(tokens) if token.type in ("html_block", "html_inline"))
    frame.drops_tags = bool(raw) and reopens_much(raw, len(tokens))
    _annotate(tokens, frame)
    return sanitise(parser.renderer.render(tokens, parser.options, environment), marking.word, frame.resolve)


@cache
def _parser(syntax: Syntax) -> MarkdownIt:
    options = {"html": syntax.has_html, "breaks": syntax.keeps_line_ends, "maxNesting": _MAX_NESTING}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer).enable(["table", "strikethrough"])
    # Where a link may lead is decided later; one that may not is text.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    if syntax.off:
        parser.disable(list(syntax.off))
    parser.inline.ruler.after("link", "footnote", _footnote)
    if syntax.has_wiki_links:
        parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    if syntax.has_site_marks:
        parser.inline.ruler.before("link", "alert", _alert)
        parser.inline.ruler.after("escape", "site_mark", _site_mark)
        parser.block.ruler.before("fence", "callout", _callout, {"alt": ["paragraph", "blockquote", "list"]})
    return parser


def _site_mark(state: StateInline, silent: bool) -> bool:
    """Leave out anchors, comments and shortcodes of site generators."""
    if state.src[state.pos] != "{" or not (mark := SITE_MARK.match(state.src, state.pos)):
        return False
    state.pos = mark.end()
    return True


def _alert(state: StateInline, silent: bool) -> bool:
    """Write [!NOTE] at the beginning of a quote as its label."""
    if state.pos or not (mark := _ALERT.match(state.src)):
        return False
    if not silent:
        state.push("strong_open", "strong", 1)
        state.push("text", "", 0).content = mark[1].capitalize()
        state.push("strong_close", "strong", -1)
    state.pos = mark.end()
    return True


def _footnote(state: StateInline, silent: bool) -> bool:
    """Write the mark of a footnote, in the text and in front of the footnote, as a raised one."""
    if state.src[state.pos] != "[" or not (mark := _FOOTNOTE.match(state.src, state.pos)):
        return False
    if not silent:
        state.push("footnote_open", "sup", 1)
        state.push("text", "", 0).content = mark[1]
        state.push("footnote_close", "sup", -1)
    state.pos = mark.end()
    return True


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Write [[Note|label]] as a link to the note, if there is one."""
    start, is_embed = state.pos, state.src.startswith("![[", state.pos)
    opening = start + is_embed
    if not state.src.startswith("[[", opening):
        return False
    end = state.src.find("]]", opening, opening + _MAX_WIKI_LINK_CHARS)
    inside = state.src[opening + 2 : end]
    if end < 0 or not inside.strip() or "\n" in inside or "[" in inside:
        return False
    if not silent:
        link = parse_wiki_link(inside)
        label = link.label or " › ".join(part for part in (link.name, link.heading) if part) or inside
        target = state.env["frame"].links.resolve_wiki(link)
        if target is not None:
            _set_link(state.push("link_open", "a", 1), target, state.env["frame"])
        state.push("text", "", 0).content = label
        if target is not None:
            state.push("link_close", "a", -1)
    state.pos = end + 2
    return True


def _callout(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Write ::: tip Title and :::, or /// tip | Title and ///, as the borders of a box."""
    start = state.bMarks[first] + state.tShift[first]
    if state.is_code_block(first) or not state.src.startswith((":::", "///"), start):
        return False
    match = _CALLOUT.fullmatch(state.src[start : state.eMarks[first]].rstrip())
    if match is None or (state.src[start] == "/" and match[3] and not match[2]):
        return False
    if silent:
        return True
    name, rest = match[1] or match[2] or "", match[3]
    title = _CALLOUT_MARKS.sub("", rest).strip() or name.capitalize()
    state.push("callout", "div", 0).meta = {"opens": bool(title)}
    if title:
        opening = state.push("paragraph_open", "p", 1)
        opening.map, opening.meta = [first, first + 1], {"class": "callout-title"}
        inline = state.push("inline", "", 0)
        inline.content, inline.map, inline.children = title, [first, first + 1], []
        state.push("paragraph_close", "p", -1)
    state.line = first + 1
    return True


def _walk(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or () if child.type in ("text", "code_inline")).strip()


def _without_title(tokens: list[Token], frame: _Frame) -> list[Token]:
    """Leave out a first heading that says what stands above the text already, unless it is all that was found."""
    if frame.text.title and len(tokens) > 2 and tokens[0].map and _plain(tokens[1]) == frame.text.title:
        first, last = frame.number(tokens[0].map[0]), frame.number(tokens[0].map[1] - 1)
        hit = frame.marking.hit
        if tokens[0].type == "heading_open" and not (hit and first <= hit[0] and hit[1] <= last):
            return tokens[3:]
    return tokens


def _annotate(tokens: list[Token], frame: _Frame) -> None:
    """Give tokens the names of their lines, and note what was found."""
    for index, token in enumerate(tokens):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"  # the page has a heading of its own
        if token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", "")):
            token.attrSet("class", f"{frame.marking.word}{str(style).rpartition(':')[2]}")  # the policy forbids styles
        if not token.map:
            continue
        first, last = frame.number(token.map[0]), frame.number(max(token.map[1] - 1, token.map[0]))
        if token.type in ("heading_open", "paragraph_open", "tr_open"):
            classes = [token.meta.get("class", "")] if token.meta else []
            if frame.marking.is_hit(first, last):
                classes.append("hit")
                if token.hidden:  # of a tight list
                    token.hidden = tokens[index + 2].hidden = False
                    classes.append("tight")
            if any(classes):
                token.attrSet("class", frame.marking.word + " ".join(filter(None, classes)))
        if token.type in ("heading_open", "paragraph_open", "tr_open", "list_item_open", "blockquote_open") and (
            not token.hidden and (name := frame.marking.name(first))
        ):
            token.attrSet("id", frame.marking.word + name)
        if token.type == "inline":
            _annotate_inline(token, first, frame)
            opening, closing = tokens[index - 1], tokens[index + 1] if index + 1 < len(tokens) else None
            if closing and opening.type == "paragraph_open" and token.content and not _is_visible(token):
                opening.hidden = closing.hidden = True
            if index > 1 and tokens[index - 2].type == "list_item_open" and token.children:
                text = token.children[0]
                text.content = _BOXES.get(text.content[:4], text.content[:4]) + text.content[4:]


def _is_visible(token: Token) -> bool:
    return any(child.type not in ("softbreak", "text") or child.content.strip() for child in token.children or ())


def _annotate_inline(token: Token, line: int, frame: _Frame) -> None:
    children = token.children or []
    open_links: list[Token] = []
    flat, position = token.content.replace("\n", " "), 0
    for index, child in enumerate(children):
        if child.type in ("softbreak", "hardbreak"):
            line += 1
            before, after = (
                children[index - 1].content[-1:],
                "".join(c.content for c in children[index + 1 : index + 3])[:1],
            )
            child.meta = {"line": line, "joins": bool(_JAPANESE.match(before) and _JAPANESE.match(after))}
        elif child.type in ("text", "code_inline"):
            child.meta = {"hit": frame.marking.is_hit(line)}
            if child.type == "code_inline" and (start := flat.find(child.content, position)) >= 0:
                position = start + len(child.content)
                line += token.content.count("\n", start, position)  # where it is a blank
        elif child.type in ("html_inline", "image"):
            line += child.content.count("\n")
        elif child.type == "link_open":
            open_links.append(child)
            if not child.meta:
                link = frame.links.resolve(str(child.attrGet("href") or ""))
                if link is not None:
                    _set_link(child, link, frame)
                child.hidden = link is None
        elif child.type == "link_close" and open_links:
            child.hidden = open_links.pop().hidden


def _set_link(token: Token, link: Link, frame: _Frame) -> None:
    frame.addresses.add(link.address)
    token.attrs = {"href": link.address}
    token.meta = {"resolved": True}
    if link.is_external:
        token.attrs["target"] = f"{frame.marking.word}_blank"
    if link.line >= 0:
        token.attrs["data-line"] = f"{frame.marking.word}{frame.marking.span.file_line(link.line + 1)}"


def _first_cell(row: Token, frame: _Frame) -> tuple[int, int] | None:
    """Return row and column of the first cell of a row, if it is one of a sheet."""
    number = frame.number(row.map[0]) if row.map and frame.text.cells else 0
    return frame.text.cells.get(number if number >= 0 else -number - 1)


class _Renderer(RendererHTML):
    """Writes tokens; what an author wrote as HTML passes through, because the whole is cleaned afterwards."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return str(env["frame"].marking.text(tokens[idx].content, is_hit=bool(tokens[idx].meta.get("hit"))))

    def tr_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        """Return the beginning of a row; in a sheet with its number."""
        row = self.renderToken(tokens, idx, options, env)
        if cell := _first_cell(tokens[idx], env["frame"]):
            is_header = tokens[idx - 1].type == "thead_open"
            element, scope = ("td", "") if is_header else ("th", "row")
            row += f"{env['frame'].marking.tag(element, css='cell', scope=scope)}{cell[0]}</{element}>"
        return row

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        """Return the beginning of a header; in a sheet with the letters of its column."""
        header = self.renderToken(tokens, idx, options, env)
        if not env["frame"].text.cells:
            return header
        start = max(index for index in range(idx) if tokens[index].type == "tr_open")
        if cell := _first_cell(tokens[start], env["frame"]):
            place = sum(token.type == "th_open" for token in tokens[start:idx])
            header += f"{env['frame'].marking.tag('span', css='cell')}{column_name(cell[1] + place)}</span> "
        return header

    def code_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return f"<code>{self.text(tokens, idx, options, env)}</code>"

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        meta = tokens[idx].meta
        end = "<br>\n" if options["breaks"] else "" if meta.get("joins") else "\n"
        return end + env["frame"].marking.anchor(meta["line"]) if meta else end

    def hardbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        meta = tokens[idx].meta
        return "<br>\n" + env["frame"].marking.anchor(meta["line"]) if meta else "<br>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        description = self.renderInlineAsText(tokens[idx].children, options, env).strip()
        return f"{env['frame'].marking.tag('span', css='image')}{escape(description)}</span>" if description else ""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return self.renderToken(tokens, idx, options, env)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return self._code(tokens[idx], 1, env["frame"])

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return self._code(tokens[idx], 0, env["frame"])

    def _code(self, token: Token, offset: int, frame: _Frame) -> str:
        lines = token.content.removesuffix("\n").split("\n")
        first = (token.map or [0])[0] + offset
        return frame.marking.code(lines, [frame.number(first + index) for index in range(len(lines))])

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        token, frame = tokens[idx], env["frame"]
        html = self.html_inline(tokens, idx, options, env)
        first, last = (frame.number(line) for line in (token.map[0], token.map[1] - 1)) if token.map else (0, 0)
        is_comment = token.content.lstrip().startswith("<!--") and token.content.rstrip().endswith("-->")
        if is_comment or not token.map:
            return html
        if frame.marking.is_hit(first, last):
            return f"{frame.marking.tag('span', id=frame.marking.name(first), css='hit')}</span>{html}"
        return f"{frame.marking.anchor(first)}{html}"

    def html_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        frame = env["frame"]
        html = SITE_MARK.sub("", tokens[idx].content) if frame.text.syntax.has_site_marks else tokens[idx].content
        return "" if frame.drops_tags else author_markup(html)

    def callout(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return env["frame"].marking.tag("div", css="callout") if tokens[idx].meta["opens"] else "</div>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return str(env["frame"].marking.table(env["frame"].text.table_label))

    def table_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return "</table></div>\n"
