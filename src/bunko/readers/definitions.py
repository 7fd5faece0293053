"""Find the definitions of source code with tree-sitter, as headings with qualified names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bunko.readers.code import Language
from bunko.readers.helper_process import HelperProcess, memory_limit
from bunko.readers.outline import Heading, Verbatim

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

    from bunko.readers.outlines import Scanner

# Longer files are generated or minified, and are cut like any other text.
_MAX_CHARS = 1_000_000
# Parsers need long for text that is no code of their language, and much memory: the one of bash 47 s for 96 kB, the one
# of Java 3 GB for 40 kB; and the one of bash can crash. So they run in another process, which can be ended.
_MAX_SECONDS = 5.0
# The tree is only searched as deep and as far as people write definitions.
_MAX_DEPTH = 50
_MAX_NODES = 300_000
_MAX_NAME_CHARS = 300

# Nodes that contain definitions, and nodes that are not searched for them, by language.
_SCRIPT_GROUPS = "class_declaration"
_SCRIPT_LEAVES = "function_declaration generator_function_declaration method_definition lexical_declaration"
_TYPED_GROUPS = f"{_SCRIPT_GROUPS} abstract_class_declaration internal_module"
_TYPED_LEAVES = f"{_SCRIPT_LEAVES} interface_declaration type_alias_declaration enum_declaration"
_NODE_TYPES = {
    "bash": ("", "function_definition"),
    "c": ("struct_specifier", "function_definition union_specifier enum_specifier"),
    "cpp": (
        "struct_specifier class_specifier namespace_definition",
        "function_definition union_specifier enum_specifier",
    ),
    "csharp": (
        "namespace_declaration class_declaration struct_declaration record_declaration interface_declaration",
        "enum_declaration method_declaration constructor_declaration",
    ),
    "go": ("", "function_declaration method_declaration type_declaration"),
    "java": (
        "class_declaration interface_declaration enum_declaration record_declaration",
        "method_declaration constructor_declaration",
    ),
    "javascript": (_SCRIPT_GROUPS, _SCRIPT_LEAVES),
    "php": (
        "class_declaration interface_declaration trait_declaration enum_declaration",
        "function_definition method_declaration",
    ),
    "python": ("class_definition", "function_definition"),
    "ruby": ("module class", "method singleton_method"),
    "rust": (
        "trait_item mod_item impl_item",
        "function_item struct_item enum_item union_item macro_definition",
    ),
    "tsx": (_TYPED_GROUPS, _TYPED_LEAVES),
    "typescript": (_TYPED_GROUPS, _TYPED_LEAVES),
}
# Where these have no body, they only use a type that is defined elsewhere.
_NEED_BODY = frozenset(("struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "mod_item"))
# Nodes that stand around a definition and begin before it.
_WRAPPERS = frozenset(("decorated_definition", "export_statement", "template_declaration", "ambient_declaration"))
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function"))

_ATTACHED_LINE = re.compile(
    r"[ \t]*(?:#(?![ \t]*(?:include|define|undef|if|ifdef|ifndef|el|endif|pragma)\b)|//|/\*|\*|--|@\w"
    r"|\[\w[^\n]*\][ \t]*\Z)"
)
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*,?\s*\)\Z")
_GENERICS = re.compile(r"<.*|\[.*", re.DOTALL)
_NAME_SEPARATOR = re.compile(r"::|\.|\\")
# What is more than the end of a block.
_CODE = re.compile(r"\b(?!(?:end|fi|done|esac)\b)\w")


parser_process = HelperProcess(Path(__file__).with_name("definitions_process.py"))


class _Definition(NamedTuple):
    first_row: int
    last_row: int
    name_row: int
    names: tuple[str, ...]  # of the definition, and before it those that its own syntax names: Stack.push
    is_group: bool


class _Grammar(NamedTuple):
    parser: Parser
    is_group_by_type: Mapping[str, bool]


def scanner(language: Language) -> Scanner:
    """Return the function that yields the definitions of a language; without the extra `code` it finds none."""

    def scan_outline(lines: str, start: int = 0, end: int | None = None) -> Iterator[Heading | Verbatim]:
        fragment = lines[start:end]
        position = 0
        for heading in _headings(fragment, _find_definitions(fragment, language)):
            yield from _paragraphs(fragment, position, heading.start, start)
            yield heading._replace(start=heading.start + start, end=heading.end + start)
            position = heading.end
        yield from _paragraphs(fragment, position, len(fragment), start)

    return scan_outline


@cache
def _load_grammar(language: Language) -> _Grammar | None:
    try:
        import tree_sitter

        grammar = tree_sitter.Language(getattr(import_module(language.module), language.function)())
    except Exception:  # also a grammar of another version
        return None
    groups, leaves = _NODE_TYPES[language.name]
    return _Grammar(
        tree_sitter.Parser(grammar), dict.fromkeys(leaves.split(), False) | dict.fromkeys(groups.split(), True)
    )


@lru_cache(maxsize=2)  # the outline of a text is asked for several times in a row
def _find_definitions(text: str, language: Language) -> tuple[_Definition, ...]:
    """Return the definitions in the order of the text; none if it is too long, or its parser fails."""
    if len(text) > _MAX_CHARS or _load_grammar(language) is None:
        return ()
    data = text.encode("utf-8", "replace")
    try:
        answer = parser_process.ask(
            b"%b\n%b" % (language.media_type.encode(), data), _MAX_SECONDS, (str(memory_limit()),)
        )
    except (EOFError, OSError):
        return ()
    return tuple(
        _Definition(first_row, last_row, name_row, tuple(names), is_group)
        for first_row, last_row, name_row, names, is_group in answer[-1]["end"]
    )


def parse_definitions(data: bytes, language: Language) -> Iterator[_Definition]:
    """Yield the definitions of a text in UTF-8, without any limit; none without the grammar of its language."""
    grammar = _load_grammar(language)
    if grammar is not None:
        yield from _walk_tree(grammar.parser.parse(data), data, grammar.is_group_by_type)


def _walk_tree(tree: Tree, data: bytes, is_group_by_type: Mapping[str, bool]) -> Iterator[_Definition]:
    """Yield the definitions in order, the outer ones first.

    A query of the library would be shorter, but the time it takes grows with the square of the depth of a tree.
    """
    cursor = tree.walk()
    wrapper_rows = [-1]  # for each node on the way from the root: the row of the wrapper around it, if it has one
    for _ in range(_MAX_NODES):
        node = cursor.node
        if node is None:
            return
        first_row = node.start_point[0] if wrapper_rows[-1] < 0 else wrapper_rows[-1]
        is_group = is_group_by_type.get(node.type)
        definition = None if is_group is None else _definition(node, data, first_row, is_group=is_group)
        if definition:
            yield definition
        may_descend = len(wrapper_rows) <= _MAX_DEPTH and (definition is None or definition.is_group)
        if may_descend and cursor.goto_first_child():
            wrapper_rows.append(first_row if node.type in _WRAPPERS else -1)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            wrapper_rows.pop()


def _definition(node: Node, data: bytes, first_row: int, *, is_group: bool) -> _Definition | None:
    """Return the definition that a node makes, or None if it makes none."""
    if node.type in _NEED_BODY and node.child_by_field_name("body") is None:
        return None
    name = _name_node(node)
    if name is None:
        return None
    text = _node_text(name, data)
    plain = "".join(_GENERICS.sub("", text).replace("*", "").split())
    labels = [plain or "".join(text.split())]
    if (receiver := node.child_by_field_name("receiver")) is not None:
        match = _RECEIVER.search(_node_text(receiver, data))
        labels.insert(0, match[1] if match else "")
    names = tuple(part for label in labels for part in _NAME_SEPARATOR.split(label) if part)
    last_row = node.end_point[0] - (node.end_point[1] == 0 and node.end_point[0] > node.start_point[0])
    return _Definition(first_row, last_row, name.start_point[0], names, is_group)


def _name_node(node: Node) -> Node | None:
    """Return the node of the name that a definition defines."""
    match node.type:
        case "impl_item":
            return node.child_by_field_name("type")
        case "type_declaration":
            specs = (child for child in node.named_children if child.type in ("type_spec", "type_alias"))
            spec = next(specs, None)
            return spec.child_by_field_name("name") if spec else None
        case "lexical_declaration":
            for child in node.named_children[:20]:
                value = child.child_by_field_name("value")
                if value is not None and value.type in _FUNCTION_VALUES:
                    return child.child_by_field_name("name")
            return None
    inner = node
    for _ in range(10):  # in C, what is declared stands inside of the pointers and parameters that it is declared with
        declarator = inner.child_by_field_name("declarator") or (
            next((child for child in inner.named_children if child.type == "function_declarator"), None)
            if inner.type == "reference_declarator"
            else None
        )
        if declarator is None:
            break
        inner = declarator
    return inner if inner is not node else node.child_by_field_name("name")


def _node_text(node: Node, data: bytes) -> str:
    return data[node.start_byte : min(node.end_byte, node.start_byte + _MAX_NAME_CHARS)].decode("utf-8", "replace")


def _headings(text: str, definitions: Sequence[_Definition]) -> list[Heading]:
    """Return a heading for each definition, and one without a title where the code around it goes on."""
    if not definitions:
        return []
    line_starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
    headings: list[Heading] = []
    enclosing: list[tuple[_Definition, int]] = []  # with the level of the heading
    covered_end = 0  # of the last heading or definition

    def close_definitions(row: int) -> None:
        """Leave the definitions that end above a row."""
        nonlocal covered_end
        while enclosing and enclosing[-1][0].last_row < row:
            ended, level = enclosing.pop()
            level -= len(ended.names[:-1])
            end = line_starts[ended.last_row + 1] - 1
            next_row = min(row, enclosing[-1][0].last_row + 1) if enclosing else row
            if end >= covered_end and _CODE.search(text, end, line_starts[next_row]):
                headings.append(Heading(end, end, level, "", ""))
            covered_end = max(covered_end, end)

    for definition in definitions:
        first_row = definition.first_row
        while first_row > 0 and line_starts[first_row - 1] >= covered_end:
            line = text[line_starts[first_row - 1] : line_starts[first_row] - 1]
            if not _ATTACHED_LINE.match(line[:_MAX_NAME_CHARS]):
                break
            first_row -= 1
        close_definitions(first_row)
        start, end = line_starts[first_row], line_starts[first_row + 1] - 1
        if start < covered_end:
            continue  # a second definition on one line
        level = enclosing[-1][1] + 1 if enclosing else 1
        # The parts of a name such as Stack.push are the levels above it.
        for part in definition.names[:-1]:
            headings.append(Heading(start, start, level, "", part))
            level += 1
        source = text[line_starts[definition.name_row] : line_starts[definition.name_row + 1] - 1]
        name = definition.names[-1] if definition.names else ""
        headings.append(Heading(start, end, level, " ".join(source[:_MAX_NAME_CHARS].split()), name))
        enclosing.append((definition, level))
        covered_end = end
    close_definitions(len(line_starts) - 1)
    return headings


def _paragraphs(text: str, start: int, end: int, offset: int) -> Iterator[Verbatim]:
    """Yield the runs of lines that are not blank: code is cut between them, else between lines."""
    position, run_start, run_end = start, -1, start
    for line in text[start:end].split("\n"):
        if line and not line.isspace():
            run_start = position if run_start < 0 else run_start
            run_end = position + len(line)
        elif run_start >= 0:
            yield Verbatim(run_start + offset, run_end + offset)
            run_start = -1
        position += len(line) + 1
    if run_start >= 0:
        yield Verbatim(run_start + offset, run_end + offset)
