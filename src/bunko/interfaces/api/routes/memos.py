"""Show the latest memos and their tags."""

from __future__ import annotations

from pydantic import Field

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.serialize import TagCount, readable_address
from bunko.sources import kinds_of_section
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

_MAX_MEMOS = 1000


class MemosQuery(Shape):
    """Which memos."""

    tag: list[Name] = Field([], max_length=100, description="Only with these tags; may be repeated")
    since: Name = Field("", description="Only from this date on: 2024-01-15, 2024-01, today, 2w")
    until: Name = Field("", description="Only up to this date")

    def filter(self) -> Filter:
        """Return what the library is asked for."""
        return Filter("", tuple(map(normalise_tag, self.tag)), self.since, self.until)


class RecentQuery(MemosQuery):
    """Which memos, and how many."""

    limit: int = Field(10, ge=1, le=_MAX_MEMOS, description="Number of memos")


class MemoFields(Fields):
    """A memo with its beginning."""

    tool: str
    path: str = of("uri")
    title: str
    date: str
    tags: list[str]
    beginning: str
    uri: str


class RecentReply(Fields):
    """The latest memos."""

    memos: list[MemoFields]


class TagsReply(Fields):
    """All tags, the most used first."""

    tags: list[TagCount]


def list_recent_memos(call: Call, query: RecentQuery) -> dict[str, object]:
    """Show the latest memos by date, each with its beginning."""
    if not _has_memos(call):
        return {"memos": []}
    names = call.library.assistant_names()
    documents = call.library.readable.recent_documents(
        limit=query.limit, kinds=kinds_of_section("memos"), where=query.filter()
    )
    return {
        "memos": [
            MemoFields.fill(document, tool=tool.name, uri=readable_address(names[tool.name], document.uri))
            for tool, document in documents
        ]
    }


def list_memo_tags(call: Call, query: MemosQuery) -> dict[str, object]:
    """List the tags of memos with how many memos have each, the most used first."""
    if not _has_memos(call):
        return {"tags": []}
    tags = call.library.readable.tags(kinds=kinds_of_section("memos"), where=query.filter())
    return {"tags": [TagCount.fill(tag) for tag in tags]}


def _has_memos(call: Call) -> bool:
    return any(tool.active and tool.kind in kinds_of_section("memos") for tool in call.library.tools())


ENDPOINTS = [
    Endpoint("GET", "/memos/recent", list_recent_memos, RecentReply, right="read", has_etag=True),
    Endpoint("GET", "/memos/tags", list_memo_tags, TagsReply, right="read", has_etag=True),
]
