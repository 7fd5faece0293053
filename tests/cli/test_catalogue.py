"""The catalogue has everything that people read, and nothing else."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from itertools import chain, islice, product
from typing import Any

import pytest

from bunko import messages as language
from bunko.messages import set_language, translate
from tests.cli.catalogue_exceptions import (
    FOREIGN_SECTIONS,
    FORMS,
    LEFT_OUT_MODULES,
    LEFT_OUT_TEXTS,
    NOT_SENTENCES,
)
from tests.cli.source_texts import (
    ROOT,
    SourceText,
    collect_column_names,
    collect_provider_summaries,
    collect_texts,
)

_FILLS = ("値", "3", "")
_MAX_FILLED = 81
# What stays in English: commands, options, settings, names in quotation marks, and addresses.
_NAMES = re.compile(
    r"`[^`]*`|\b(?:bunko|pip|uv|pipx|hf|chmod|export)(?: (?!or |and )[^\s。、)]+)*|https?://\S*|--?[a-z][a-z-]*"
    r"|[A-Za-z_]+[._][A-Za-z_.]+"
)
_ENGLISH = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}|値,? [a-z]{2,}|[a-z]{2,}:? 値")


@pytest.fixture(autouse=True)
def japanese() -> None:
    set_language("ja")


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The entries of the catalogue that translations have used so far."""
    texts: set[str] = set()
    catalogue, match = language.load_catalogue(), language.match_template

    class Exact(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            texts.add(key)
            return super().get(key, default)

    def match_and_record(template: Any, text: str) -> list[str] | None:
        values = match(template, text)
        if values is not None:
            texts.add("".join(map("".join, zip(template.parts, (*template.kinds, ""), strict=True))))
        return values

    monkeypatch.setattr(language, "load_catalogue", lambda: catalogue._replace(exact=Exact(catalogue.exact)))
    monkeypatch.setattr(language, "match_template", match_and_record)
    return texts


@cache
def _source_texts() -> tuple[SourceText, ...]:
    paths = [path for path in sorted(ROOT.rglob("*.py")) if not _is_left_out(path.relative_to(ROOT).as_posix())]
    texts = [*collect_texts(paths), *collect_column_names(paths)]
    texts += collect_provider_summaries(sorted((ROOT / "embedders").glob("*.py")))
    forms = [SourceText(form, text.file, text.line) for text in texts for form in FORMS.get(text.text, ())]
    return tuple(dict.fromkeys([*texts, *forms]))


def test_every_module_that_is_left_out_exists() -> None:
    missing = [pattern for pattern in LEFT_OUT_MODULES if not any(ROOT.glob(pattern))]
    assert missing == []


def _is_left_out(file: str) -> bool:
    return any(fnmatch(file, pattern) for pattern in LEFT_OUT_MODULES)


def _is_message(text: SourceText) -> bool:
    is_left_out = text.text in LEFT_OUT_TEXTS or text.text in FORMS
    return text.is_prose and not is_left_out and not NOT_SENTENCES.search(text.text)


def _is_translated(text: str) -> bool:
    """Return whether a text with some values is in Japanese as a whole."""
    first, *rest = text.split("{}")
    same = ((fill,) * len(rest) for fill in _FILLS)
    for values in chain(same, islice(product(_FILLS, repeat=len(rest)), _MAX_FILLED)):
        message = first + "".join(value + part for value, part in zip(values, rest, strict=True))
        translated = translate(message)
        if translated != message and not _ENGLISH.search(_NAMES.sub("", translated)):
            return True
    return False


@pytest.mark.slow
def test_the_catalogue_has_everything_that_people_read_and_nothing_else(used: set[str]) -> None:
    messages = {text.text: text for text in _source_texts() if _is_message(text)}
    assert len(messages) > 900
    missing = [str(text) for text in messages.values() if not _is_translated(text.text)]
    assert not missing, "Add these to src/bunko/messages/japanese:\n" + "\n".join(missing)
    texts = {text.text for text in _source_texts()}
    for english in set(_own_entries()) - used:
        text = re.sub(r"\{[nwt]\}", "{}", english)
        noun = text.removeprefix("{} ")
        if not texts.isdisjoint((text, f"{text}.", noun, noun.removesuffix("s"))):
            translate(text.replace("{}", "3"))
    unused = [english for english in _own_entries() if english not in used]
    assert not unused, "No text of the source code matches:\n" + "\n".join(unused)


def test_the_headings_of_tables_are_in_the_catalogue() -> None:
    paths = [
        path
        for path in sorted((ROOT / "interfaces/cli").rglob("*.py"))
        if not _is_left_out(path.relative_to(ROOT).as_posix())
    ]
    assert [str(text) for text in collect_column_names(paths) if translate(text.text) == text.text] == []


def _own_entries() -> Iterator[str]:
    """Yield the English texts of the catalogue of messages."""
    for path in sorted((ROOT / "messages/japanese").glob("*.toml")):
        for section, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if path.name != "help.toml" and section not in FOREIGN_SECTIONS:
                yield from (english.replace("(s)", "s") for english in entries)


@pytest.mark.slow
def test_exceptions_are_texts_of_the_source_code() -> None:
    texts = {text.text for text in _source_texts()}
    assert {*LEFT_OUT_TEXTS, *FORMS} <= texts
