"""Say messages in the language of the user, by a catalogue; what has no entry stays English."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Literal, NamedTuple

Language = Literal["en", "ja"]

# Where a system says which language its messages are in; the first that is set counts.
_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_PLACEHOLDER = re.compile(r"\{[nwt]?\}")
_SIMPLE_VALUE = re.compile(r"\{(\d+)\}")
# What the values of a message may be: anything, a number, a word, or a message of the catalogue.
_KINDS: dict[str, Callable[[str], object]] = {
    "{}": lambda value: True,
    "{n}": re.compile(r"[\d,.]+%?").fullmatch,
    "{w}": re.compile(r"\S+").fullmatch,
    "{t}": lambda value: _translate(value),
}
# Where a message may be cut into lines, sentences and clauses, and what stands there in a translation.
_PARTS = ((re.compile(r"\n"), "\n"), (re.compile(r"(?<=[.?!]) +(?=\S)"), ""), (re.compile("; "), "。"))
_ITEMS = (re.compile(", "), "、")
# A command is copied, so that no full stop and no sentence comes right after it.
_COMMAND_END = re.compile(r"[:：] (?:bunko|pip|uv|pipx|hf|chmod|export) [^。]*$")
_NO_WORDS = " …"
_NAME_END = re.compile(", | and | or ")
_language: Language = "en"


class _Template(NamedTuple):
    parts: tuple[str, ...]  # the English text around its values
    kinds: tuple[str, ...]  # of its values
    translation: str  # with {0}, {1} … for the values
    longest_part: str  # which tells most texts apart, and quickly


class _Catalogue(NamedTuple):
    exact: dict[str, str]
    templates: list[_Template]


def set_language(language: str | None) -> None:
    """Choose the language of messages; None is that of the system, as its locale variables say."""
    global _language
    _language = "ja" if (language or _language_of_system()) == "ja" else "en"


def language() -> Language:
    """Return the language of messages."""
    return _language


def _language_of_system() -> str:
    locale = next((value for name in _LOCALE_VARIABLES if (value := os.environ.get(name))), "")
    return re.split(r"[_.@-]", locale, maxsplit=1)[0].lower()


def translate(text: str) -> str:
    """Return a message in the user's language; unchanged if the catalogue does not have it.

    A message may be several lines or sentences that the catalogue has one by one.
    """
    return translate_into(text, _language)


def translate_into(text: str, language: Language) -> str:
    """Return a message in a language that need not be the one of the terminal."""
    if language == "en" or not text:
        return text
    translation = _translate(text)
    if translation is None and "\n" in text:
        return "\n".join(_translate(line) or line for line in text.split("\n"))
    return translation or text


def translate_reason(reason: str) -> str:
    """Return why a document has a problem, which may be a message and a hint on lines of their own, on one line."""
    return translate_reason_into(reason, _language)


def translate_reason_into(reason: str, language: Language) -> str:
    """Return why a document has a problem in a language that need not be the one of the terminal."""
    if language == "en":
        return join_sentences(reason)
    text = ""
    for line in (translate_into(line, language) for line in reason.splitlines()):
        if text and not text.endswith(("。", "？", "！")):
            text += " " if text.endswith((".", ":", "?", "!")) else "。"
        text += line
    return text


def join_sentences(text: str) -> str:
    """Return a message and its hint, which are on lines of their own, as sentences on one line."""
    lines = text.splitlines()
    return " ".join(
        [*(line if line.endswith((".", "?", "!", ":")) else f"{line}." for line in lines[:-1]), *lines[-1:]]
    )


class _Value(str):
    """A value in a message.

    In a translation, `{0:t}` is the value in that language, `{0:list}` a list of names, `{0:words}` one of words.
    """

    __slots__ = ()

    def __format__(self, form: str) -> str:
        if form in ("list", "words"):
            names = _NAME_END.split(self)
            return "、".join(names if form == "list" else (_translate(name) or name for name in names))
        if form != "t":
            return str(self)
        # Its full stop may have been taken for the one of the message around it.
        return _translate(self) or (_translate(f"{self}.") or self).removesuffix("。")


def _translate(text: str) -> str | None:
    stripped = text.strip()
    translated = _find_entry(stripped)
    if translated is None and stripped.endswith("."):  # a message or a remedy, written as a sentence
        message = stripped[:-1]
        translated = _find_entry(message) or _find_entry(f"{message[:1].lower()}{message[1:]}")
        translated = None if translated is None else _end_sentence(translated)
    if translated is None:
        return None
    indent = len(text) - len(text.lstrip())
    return text[:indent] + translated + text[indent + len(stripped) :]


def _end_sentence(text: str) -> str:
    return text if _COMMAND_END.search(text) else f"{text}。"


def _find_entry(text: str) -> str | None:
    catalogue = load_catalogue()
    if (translated := catalogue.exact.get(text)) is not None:
        return translated
    # Lines and sentences come before templates, whose value could be the whole rest of the text; lists come after them.
    for pattern, joint in _PARTS:
        if (translated := _translate_parts(text, pattern, joint)) is not None:
            return translated
    is_sentence = text.endswith(".") and text[-2:-1] not in (" ", ".", "/")  # as in: bunko add .
    for template in catalogue.templates:
        if template.longest_part not in text:
            continue
        # The full stop is not part of the value at the end.
        message = text[:-1] if is_sentence and not template.parts[-1] else text
        if (values := match_template(template, message)) is not None:
            translated = template.translation.format(*map(_Value, values))
            return translated if message is text else _end_sentence(translated)
    return _translate_parts(text, *_ITEMS)


def _translate_parts(text: str, pattern: re.Pattern[str], joint: str) -> str | None:
    """Return the parts of a text in the user's language if there are several and the catalogue has all of them."""
    parts = pattern.split(text)
    if len(parts) == 1:
        return None
    translated = ""
    for part in parts:
        if (translation := _translate(part) if part.strip(_NO_WORDS) else part) is None:
            return None
        is_after_command = not joint and _COMMAND_END.search(translated)
        translated += f"{(' ' if is_after_command else joint) if translated else ''}{translation}"
    return translated


def match_template(template: _Template, text: str) -> list[str] | None:
    """Return the values between the parts of a template, or None if it does not match."""
    first, *middle, last = template.parts
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return None
    values, position, end = [], len(first), len(text) - len(last)
    for part in middle:
        part_start = text.find(part, position, end)
        if part_start < 0:
            return None
        values.append(text[position:part_start])
        position = part_start + len(part)
    values.append(text[position:end])
    is_match = all(_KINDS[kind](value) for kind, value in zip(template.kinds, values, strict=True))
    return values if is_match else None


@cache
def load_catalogue() -> _Catalogue:
    """Return the translations of whole messages, and those of messages with values, the most specific first."""
    exact, templates = {}, []
    for english, translation in read_catalogue():
        if _PLACEHOLDER.search(english):
            parts, kinds = _PLACEHOLDER.split(english), _PLACEHOLDER.findall(english)
            templates.append(_Template(tuple(parts), tuple(kinds), translation, max(parts, key=len)))
        else:
            exact[english] = translation
    templates.sort(key=lambda template: -sum(map(len, template.parts)))
    return _Catalogue(exact, templates)


def read_catalogue() -> Iterator[tuple[str, str]]:
    """Yield the English messages, with {}, {n}, {w} or {t} for values, and their translations.

    A noun that ends in (s) stands for the two messages with one and with several of it.
    """
    import tomllib  # few users need it

    for file in sorted(files("bunko.messages").joinpath("japanese").iterdir(), key=lambda file: file.name):
        for section in tomllib.loads(file.read_text(encoding="utf-8")).values():
            for english, translation in section.items():
                if file.name == "help.toml":  # its values are the words of click, never those of a user
                    translation = _SIMPLE_VALUE.sub(r"{\1:t}", translation)
                start, *rest = english.split("(s)")
                for forms in product(("", "s"), repeat=len(rest)):
                    yield start + "".join(map("".join, zip(forms, rest, strict=True))), translation
