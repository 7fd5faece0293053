"""Say what a folder or a file is and what it holds, before it is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.interfaces.text import format_count
from bunko.sources import section_of
from bunko.sources.walk import vault_program

if TYPE_CHECKING:
    from bunko.library.add import Addition

_MAX_FORMATS = 6
_VOWELS = tuple("AEIOUH")  # the first sound of HTML is one too


def describe_addition(addition: Addition) -> str:
    """Return what a source is and what it holds, as a phrase."""
    source, contents, tool = addition.source, addition.contents, addition.tool
    if addition.is_part:
        return f"part of {tool.name}"
    formats = ", ".join(f"{count:,} {label}" for label, count in list(contents.formats.items())[:_MAX_FORMATS])
    formats += ", …" if len(contents.formats) > _MAX_FORMATS else ""
    if len(source.files) == 1:
        label = next(iter(contents.formats), "")
        return f"{'an' if label[:1] in _VOWELS else 'a'} {label} document" if label else "a document"
    count = format_count(contents.documents, "document", number_format=",")
    if section_of(tool.kind) == "memos":
        entries = format_count(contents.documents, "entry", "entries", number_format=",")
        first, last = contents.first_date[:4], contents.last_date[:4]
        years = f" from {first}" + (f" to {last}" if last != first else "") if first else ""
        return f"{_entry_file_shape(addition)} with {entries}{years}"
    if source.files:
        return f"{count}: {formats}"
    program = vault_program(source.path)
    shape = {"Obsidian": "an Obsidian vault", "Logseq": "a Logseq graph"}.get(program, "a folder")
    return f"{shape} with {count}" + (f": {formats}" if formats else "")


def _entry_file_shape(addition: Addition) -> str:
    path = addition.source.path
    if path.is_dir():
        return "a folder of memos"
    if addition.tool.kind == "jsonl":
        return "a JSON-lines file"
    is_changelog = path.name.casefold().replace("_", "").startswith(("changelog", "clmemo"))
    return "a ChangeLog memo file" if is_changelog else "a memo file"
