"""Parse the links between notes that Obsidian, Logseq and Org write in double brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINK = re.compile(r"(!)?\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{0,1000})\])?\]|(!)?\(\(([0-9a-fA-F-]{36})\)\)")
_ESCAPED_BAR = re.compile(r"\\?\|")


class WikiLink(NamedTuple):
    """A link to a note, or to a heading or a block of it."""

    name: str  # of the note, with or without folders and suffix; empty: the note that contains the link
    heading: str = ""
    block: str = ""  # the id of a block
    label: str = ""  # what is shown instead of the name
    is_embed: bool = False  # the text of the note is shown instead of the link


def find_wiki_links(text: str) -> Iterator[WikiLink]:
    """Yield the links of a text in order."""
    for match in _LINK.finditer(text):
        is_embed = bool(match[1] or match[4]) or text[max(0, match.start() - 8) : match.start()].endswith("{{embed ")
        if match[5]:
            yield WikiLink("", block=match[5].casefold(), is_embed=is_embed)
        else:
            yield parse_wiki_link(match[2])._replace(is_embed=is_embed, **({"label": match[3]} if match[3] else {}))


def parse_wiki_link(link: str) -> WikiLink:
    """Return the parts of a link, with or without brackets: [[Note#Heading|label]], ((id)), file:a.org::*Heading."""
    link = link.strip()
    if _LINK.fullmatch(link):
        return next(find_wiki_links(link))
    target, *labels = _ESCAPED_BAR.split(link, maxsplit=1)
    label = labels[0].strip() if labels else ""
    if target.startswith("id:"):
        return WikiLink("", block=target[3:].strip().casefold(), label=label)
    if target.startswith("file:") or "::" in target:
        name, _, place = target.removeprefix("file:").partition("::")
        return WikiLink(name.strip(), heading=place.lstrip("*").strip(), label=label)
    name, _, place = target.partition("#")
    place = place.rpartition("#")[2].strip()  # of a path of headings, the last one
    if place.startswith("^"):
        return WikiLink(name.strip(), block=place[1:].casefold(), label=label)
    return WikiLink(name.strip(), heading=place, label=label)
