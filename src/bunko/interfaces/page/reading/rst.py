"""Render reStructuredText: docutils parses it, with everything off that reads files or passes markup through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.utils import new_document
from markupsafe import Markup, escape

from bunko.interfaces.page.reading.links import Link, Links
from bunko.interfaces.page.reading.marking import Marking
from bunko.interfaces.page.reading.parts import DocumentHeading
from bunko.interfaces.page.reading.sanitise import sanitise

_MAX_LINE_CHARS = 21_000
_MAX_NAMES = 500  # of directives and roles that docutils does not know, in a part
_MAX_SUBSTITUTION_CHARS = 200
_DIRECTIVE = re.compile(r"(?m)^[ \t]*\.\.[ \t]+(?:\|[^|\n]{1,100}\|[ \t]+)?([\w.:+-]{1,60}?)::(?=\s|\Z)")
_ROLE = re.compile(r":([\w.:+-]{1,60}):`|`:([\w.:+-]{1,60}):")
_DEFINITION = re.compile(
    r"(?m)^\.\.[ \t]+(?:_(?:`[^`\n]{1,200}`|[^:\n]{1,200}):[ \t]+\S|\|[^|\n]{1,100}\|[ \t]+replace::).*$"
)
_MAX_DEFINITIONS = 1000
_LABELLED = re.compile(r"(?s)(.*?)\s*<([^<>]*)>\Z")
# Roles of Sphinx that name something of a program.
_CODE_ROLES = frozenset(
    "class func meth mod attr obj data exc const type macro member var envvar option program command file samp kbd"
    " keyword token makevar mimetype dfn regexp confval setting".split()
)
_TAGS = {
    "paragraph": "p", "bullet_list": "ul", "enumerated_list": "ol", "list_item": "li", "block_quote": "blockquote",
    "definition_list": "dl", "term": "dt", "definition": "dd", "field_list": "dl", "field_name": "dt",
    "field_body": "dd", "option_list": "dl", "option_group": "dt", "description": "dd", "emphasis": "em",
    "strong": "strong", "literal": "code", "math": "code", "subscript": "sub", "superscript": "sup",
    "title_reference": "cite", "attribution": "p", "entry": "td", "row": "tr", "thead": "thead",
    "tbody": "tbody", "caption": "p",
    "footnote_reference": "sup", "citation_reference": "sup", "line": "div", "rubric": "p",
}  # fmt: skip
_DROPPED = (nodes.comment, nodes.substitution_definition, nodes.target, nodes.system_message, nodes.pending, nodes.raw,
            nodes.meta, nodes.colspec, nodes.decoration, nodes.docinfo)  # fmt: skip
_CODE = (nodes.literal_block, nodes.doctest_block, nodes.math_block)


@dataclass(slots=True)
class _Writer:
    """Writes what docutils found as markup."""

    marking: Marking
    links: Links
    table_label: str
    numbers: Sequence[int] = ()
    addresses: set[str] = field(default_factory=set)
    targets: dict[str, str] = field(default_factory=dict)
    substitutions: dict[str, str] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)

    def note_names(self, document: nodes.document) -> None:
        """Remember where names lead, and what they stand for."""
        for target in document.findall(nodes.target):
            if "refuri" in target:
                for name in target["names"]:
                    self.targets[name] = target["refuri"]
        for substitution in document.findall(nodes.substitution_definition):
            for name in substitution["names"]:
                self.substitutions[name.lower()] = " ".join(substitution.astext()[:_MAX_SUBSTITUTION_CHARS].split())

    def heading(self, heading: DocumentHeading) -> None:
        """Write a heading."""
        is_hit = self.marking.is_hit(heading.line, heading.last)
        tag = f"h{min(heading.level + 1, 6)}"
        self._open(tag, heading.line, is_hit=is_hit)
        self.parts += [str(self.marking.text(heading.title, is_hit=is_hit)), f"</{tag}>\n"]

    def write(self, node: nodes.Node, line: int = -1, *, in_header: bool = False) -> None:
        """Write a node and what is in it; `line` is that of the block around it."""
        line = self._line(node, line)
        name = node.__class__.__name__
        if isinstance(node, nodes.Text):
            self._text(str(node), line)
        elif isinstance(node, _DROPPED):
            return
        elif isinstance(node, _CODE):
            lines = node.astext().split("\n")
            self.parts.append(self.marking.code(lines, [self._number(line + index) for index in range(len(lines))]))
        elif isinstance(node, nodes.substitution_reference):
            name = str(node.get("refname", node.astext())).lower()
            self._text(self.substitutions.get(name, node.astext()), line)
        elif isinstance(node, nodes.reference):
            self._reference(node, line)
        elif not self._write_block(node, line):
            if tag := "th" if in_header and isinstance(node, nodes.entry) else _TAGS.get(name):
                self._wrap(tag, node, line)
            else:
                self._children(node, line, in_header=in_header)

    def _write_block(self, node: nodes.Node, line: int) -> bool:
        """Write a node that is more than its content in a tag, and return whether it is one."""
        name = node.__class__.__name__
        if isinstance(node, nodes.image):
            if alt := str(node.get("alt", "")):
                self.parts.append(f"{self.marking.tag('span', css='image')}{escape(alt)}</span>")
        elif isinstance(node, nodes.transition):
            self.parts.append("<hr>\n")
        elif isinstance(node, nodes.table):
            self.parts.append(self.marking.table(self.table_label))
            self._children(node, line)
            self.parts.append("</table></div>\n")
        elif isinstance(node, nodes.title | nodes.subtitle):
            self._wrap("h6" if isinstance(node.parent, nodes.section) else "p", node, line, "callout-title")
        elif isinstance(node, nodes.Admonition | _Unknown):
            self.parts.append(self.marking.tag("div", css="callout"))
            if not isinstance(node, nodes.admonition | _Unknown):
                self.parts.append(f"{self.marking.tag('p', css='callout-title')}{name.capitalize()}</p>")
            self._children(node, line)
            self.parts.append("</div>\n")
        elif isinstance(node, nodes.option_group):
            self.parts.append(f"<dt><code>{escape(', '.join(child.astext() for child in node.children))}</code></dt>")
        elif isinstance(node, nodes.label):
            self.parts.append(f"<sup>{escape(node.astext())}</sup> ")
        else:
            return False
        return True

    def _wrap(self, tag: str, node: nodes.Node, line: int, css: str = "") -> None:
        is_block = isinstance(node, nodes.paragraph | nodes.term | nodes.line | nodes.caption)
        if is_block and node.children:
            number = self._number(line)
            is_hit = self.marking.is_hit(number, self._number(line + str(node.rawsource or "").count("\n")))
            self._open(tag, number, is_hit=is_hit)
        else:
            self.parts.append(self.marking.tag(tag, css=css))
        self._children(node, line, in_header=tag == "thead" or (tag == "tr" and isinstance(node.parent, nodes.thead)))
        self.parts.append(f"</{tag}>\n" if isinstance(node, nodes.Body | nodes.Part) else f"</{tag}>")

    def _children(self, node: nodes.Node, line: int, *, in_header: bool = False) -> None:
        for child in node.children:
            self.write(child, line, in_header=in_header)
            if isinstance(node, nodes.TextElement):
                line += child.astext().count("\n")

    def _open(self, tag: str, number: int, *, is_hit: bool) -> None:
        self.parts.append(self.marking.tag(tag, id=self.marking.name(number), css="hit" if is_hit else ""))

    def _text(self, text: str, line: int) -> None:
        for index, part in enumerate(text.split("\n")):
            number = self._number(line + index)
            if index:
                self.parts += ["\n", self.marking.anchor(number)]
            self.parts.append(str(self.marking.text(part, is_hit=self.marking.is_hit(number))))

    def _reference(self, node: nodes.reference, line: int) -> None:
        href = node.get("refuri") or self.targets.get(str(node.get("refname", "")), "")
        link = self.links.resolve(str(href)) if href else self._section(str(node.get("refname", "")))
        if link is not None:
            self.addresses.add(link.address)
            number = str(self.marking.span.file_line(link.line + 1)) if link.line >= 0 else ""
            tag = self.marking.tag("a", target="_blank" if link.is_external else "", data_line=number)
            self.parts += [tag.removesuffix(">"), ' href="', str(escape(link.address)), '">']
        self._children(node, line)
        self.parts.append("</a>" if link is not None else "")

    def _section(self, name: str) -> Link | None:
        return self.links.resolve(f"#{name}") if name else None

    def _line(self, node: nodes.Node, line: int) -> int:
        """Return the line of a node in the text that was parsed, counted from 0."""
        own = getattr(node, "line", None)
        return (
            own - 1
            if isinstance(own, int) and isinstance(node, nodes.Element) and not isinstance(node, nodes.Inline)
            else line
        )

    def _number(self, line: int) -> int:
        return self.numbers[line] if 0 <= line < len(self.numbers) else -1

    def resolve(self, href: str) -> str | None:
        return href if href in self.addresses else None


def render_rst(
    lines: Sequence[str],
    numbers: Sequence[int],
    headings: Mapping[int, DocumentHeading],
    definitions: str,
    marking: Marking,
    links: Links,
    *,
    title: str,
    table_label: str,
) -> Markup:
    """Return a part as harmless markup; `headings` are those of the document by their lines."""
    writer = _Writer(marking, links, table_label)
    writer.note_names(_parse(definitions))
    for heading, block, block_numbers in _sections(lines, numbers, headings):
        if heading is not None and (heading.title != title or marking.is_hit(heading.line, heading.last)):
            writer.heading(heading)
        document = _parse("\n".join(block))
        writer.note_names(document)
        writer.numbers = block_numbers
        writer.write(document)
    return sanitise("".join(writer.parts), marking.word, writer.resolve)


def find_definitions(text: str) -> str:
    """Return the lines of a document that say where names lead and what they stand for."""
    return "\n".join([match[0] for match in _DEFINITION.finditer(text)][:_MAX_DEFINITIONS])


def _sections(
    lines: Sequence[str], numbers: Sequence[int], headings: Mapping[int, DocumentHeading]
) -> Iterator[tuple[DocumentHeading | None, list[str], list[int]]]:
    """Yield each heading with the lines up to the next one, so that a part may begin at any level."""
    heading, block, block_numbers, end = None, list[str](), list[int](), -1
    for line, number in zip(lines, numbers, strict=True):
        if number in headings:
            yield heading, block, block_numbers
            heading, block, block_numbers = headings[number], [], []
            end = headings[number].last
        elif number > end or number < 0:
            block.append(line)
            block_numbers.append(number)
    yield heading, block, block_numbers


def _parse(text: str) -> nodes.document:
    _known_directives()
    for name in list(dict.fromkeys(match.lower() for match in _DIRECTIVE.findall(text)))[:_MAX_NAMES]:
        if name not in _known_directives():
            directives.register_directive(name, _UnknownDirective)
    for name in list(dict.fromkeys((one or two).lower() for one, two in _ROLE.findall(text)))[:_MAX_NAMES]:
        if name not in _known_roles():
            roles.register_local_role(name, _unknown_role)
    document = new_document("document", _settings())
    Parser().parse(text, document)
    return document


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser)
    for name, value in {
        "file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5,
        "syntax_highlight": "none", "line_length_limit": _MAX_LINE_CHARS, "pep_references": False,
        "rfc_references": False, "warning_stream": False,
    }.items():  # fmt: skip
        setattr(settings, name, value)
    return settings


@cache
def _known_directives() -> frozenset[str]:
    """Return the directives that docutils may run; all others are shown with what they contain."""
    for name in ("code", "code-block", "sourcecode", "parsed-literal"):
        directives.register_directive(name, _Code)
    for name in ("role", "default-role", "include", "raw", "contents", "sectnum", "title", "class", "header", "footer"):
        directives.register_directive(name, _Nothing)  # they would change what comes after, or show nothing
    return frozenset(
        "code code-block sourcecode parsed-literal role default-role include raw contents sectnum title class header"
        " footer note tip hint important warning caution danger attention error admonition image figure table csv-table"
        " list-table math rubric topic sidebar epigraph highlights pull-quote compound container replace unicode date"
        " meta".split()
    )


@cache
def _known_roles() -> frozenset[str]:
    return frozenset("emphasis strong literal subscript sub superscript sup title-reference title code math".split())


class _Unknown(nodes.General, nodes.Element):
    """A directive that docutils does not know."""


class _AnyOption(dict[str, Callable[[str], str]]):
    """Takes any option."""

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[[str], str]:
        return str


class _UnknownDirective(Directive):
    """Shows the name, the arguments and the content of a directive."""

    has_content, optional_arguments, final_argument_whitespace, option_spec = True, 1, True, _AnyOption()

    def run(self) -> list[nodes.Node]:
        if self.name == "toctree":
            return self._entries()
        box = _Unknown()
        box.line = self.lineno
        arguments, _ = self.state.inline_text(" ".join(self.arguments), self.lineno)
        title = nodes.paragraph("", "", nodes.strong("", self.name), nodes.Text(" "), *arguments)
        title.line = self.lineno
        box += title
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]

    def _entries(self) -> list[nodes.Node]:
        entries = nodes.bullet_list()
        for offset, line in enumerate(self.content):
            if line.strip():
                text, target = _split_label(line.strip())
                paragraph = nodes.paragraph("", "", nodes.reference("", text, refuri=target))
                paragraph.line = self.content_offset + offset + 1
                entries += nodes.list_item("", paragraph)
        return [entries]


class _Code(Directive):
    """Shows code as it is, whatever its options are."""

    has_content, optional_arguments, final_argument_whitespace, option_spec = True, 1, True, _AnyOption()

    def run(self) -> list[nodes.Node]:
        code = nodes.literal_block("", "\n".join(self.content))
        code.line = self.content_offset + 1
        return [code]


class _Nothing(Directive):
    """Shows nothing, and does nothing."""

    has_content, optional_arguments, final_argument_whitespace, option_spec = True, 1, True, _AnyOption()

    def run(self) -> list[nodes.Node]:
        return []


def _unknown_role(
    role: str, rawtext: str, text: str, lineno: int, inliner: object, options: object = None, content: object = None
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Show the text of a role of Sphinx: of a link its label, of a name the name."""
    label, target = _split_label(text)
    name = role.rpartition(":")[2]
    if name == "doc" or (name == "download" and target):
        return [nodes.reference(rawtext, label, refuri=target)], []
    if name in ("ref", "any", "numref"):
        return [nodes.reference(rawtext, label, refname=target.lower())], []
    if name in _CODE_ROLES or ":" in role:
        shown = label.rpartition(".")[2] if label.startswith("~") else label.lstrip("!")
        return [nodes.literal(rawtext, shown)], []
    return [nodes.inline(rawtext, label)], []


def _split_label(text: str) -> tuple[str, str]:
    match = _LABELLED.fullmatch(text)
    return (match[1], match[2]) if match and match[1] else (text, text)
