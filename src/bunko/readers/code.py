"""Read source code as text; the extra `code` finds the definitions in it."""

from __future__ import annotations

from typing import NamedTuple

from bunko.readers.encoding import decode
from bunko.readers.reader import Reader
from bunko.types import Text


class Language(NamedTuple):
    """A programming language and the grammar that parses it."""

    name: str
    media_type: str
    suffixes: tuple[str, ...]
    module: str  # of the grammar
    function: str = "language"  # of that module, which returns the grammar


_LANGUAGES = (
    Language("bash", "text/x-shellscript", (".sh", ".bash"), "tree_sitter_bash"),
    Language("c", "text/x-c", (".c", ".h"), "tree_sitter_c"),
    Language("cpp", "text/x-c++", (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "tree_sitter_cpp"),
    Language("csharp", "text/x-csharp", (".cs",), "tree_sitter_c_sharp"),
    Language("go", "text/x-go", (".go",), "tree_sitter_go"),
    Language("java", "text/x-java", (".java",), "tree_sitter_java"),
    Language("javascript", "text/javascript", (".js", ".cjs", ".mjs", ".jsx"), "tree_sitter_javascript"),
    Language("php", "text/x-php", (".php",), "tree_sitter_php", "language_php"),
    Language("python", "text/x-python", (".py", ".pyi"), "tree_sitter_python"),
    Language("ruby", "text/x-ruby", (".rb",), "tree_sitter_ruby"),
    Language("rust", "text/x-rust", (".rs",), "tree_sitter_rust"),
    Language("tsx", "text/x-tsx", (".tsx",), "tree_sitter_typescript", "language_tsx"),
    Language(
        "typescript", "text/x-typescript", (".ts", ".cts", ".mts"), "tree_sitter_typescript", "language_typescript"
    ),
)
LANGUAGES_BY_TYPE = {language.media_type: language for language in _LANGUAGES}


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all files of source code."""
    return tuple(suffix for language in _LANGUAGES for suffix in language.suffixes)


def has_parser() -> bool:
    """Return whether the extra `code`, which finds definitions, is installed and can be used."""
    try:
        import tree_sitter

        tree_sitter.Parser()
    except Exception:  # one of another version, or a damaged one, may raise anything
        return False
    return True


def _build_reader(language: Language) -> Reader:
    def read_file(data: bytes) -> Text:
        text, encoding = decode(data)
        return Text(text=text, media_type=language.media_type, encoding=encoding)

    return Reader(read_file, suffixes=language.suffixes, media_type=language.media_type, label="source code")


# No folder imports source code unless it is asked to: in the notes of a project it would outnumber the notes.
READERS = {language.name: _build_reader(language) for language in _LANGUAGES}
