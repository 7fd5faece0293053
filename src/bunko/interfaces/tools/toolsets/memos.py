"""Dated memos: find them by words, meaning, tag and time, list their tags, show the latest."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bunko.interfaces import serialize
from bunko.interfaces.tools.answers import UNTRUSTED
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import NUMBER, TEXT, TRUTH, WHOLE, Call, Reply, Tool, listed
from bunko.interfaces.tools.toolsets import search_tool
from bunko.library.catalog import MEMO_KINDS
from bunko.records import Filter
from bunko.search.paging import Cursor, Piece, page, read_cursor
from bunko.search.passages import MEMO_EXTRACTS, Passage, looked_for, quoted, shown
from bunko.text.dates import moment
from bunko.text.hidden_chars import clean
from bunko.text.snippets import SIZE, Looked, window
from bunko.text.tags import tags
from bunko.text.token_count import tokens
from bunko.types import Hit

if TYPE_CHECKING:
    from bunko.search.summaries import Summary

_PAGED = ("query", "top_k", "tag_filter", "search_mode", "enable_rewrite", "extract", "max_chars", "since", "until")
_MOST_TAGS = 20  # of one memo
_NONE = "No memos for this query. Try other words."
_NONE_SO = (
    "No memos for this query with these tags and dates. Try other words, or leave out tag_filter, since and until."
)
# What the names and figures of a memo cost beside what it says, and a tag with its count.
_FRAME, _TAG = 90, 12
_MEMO = listed(
    {
        "id": TEXT,
        "title": TEXT,
        "date": TEXT,
        "tags": {"type": "array", "items": TEXT},
        "snippet": TEXT,
        "score": NUMBER,
    },
    "id", "title", "date", "tags", "snippet",
)  # fmt: skip
_TAGS = {"type": "array", "items": listed({"tag": TEXT, "count": WHOLE}, "tag", "count")}
_MEMOS = {"results": {"type": "array", "items": _MEMO}, "total": WHOLE}


def tools(top_k: int) -> list[Tool]:
    """Return the tools over all memos of the library."""
    return [
        Tool(
            "query_memos",
            "Search memos",
            "Search the user's dated memos, in Japanese and English, by words and meaning, narrowed by tag and date. "
            "Answers with snippets and ids.",
            (
                search_tool.QUERY,
                search_tool.top_k(top_k),
                Param("tag_filter", "string", "Tags that must all be there, with commas between"),
                Param("search_mode", "string", choices=("bm25", "semantic", "hybrid")),
                Param("enable_rewrite", "boolean", "Let a chat model improve the query"),
                Param("extract", "string", "How much of each memo", default="snippet", choices=MEMO_EXTRACTS),
                Param("max_chars", "integer", "Longest text of each memo", least=20, most=100_000),
                Param("summary", "boolean", "Also say what they have in common", default=False),
                Param("since", "string", "Date or 2w"),
                Param("until", "string"),
                Param("cursor", "string", "next_cursor of the last page"),
            ),
            listed(_MEMOS | {"rewritten": TEXT, "truncated": TRUTH, "next_cursor": TEXT}, "results", "total"),
            _query,
        ),
        Tool(
            "list_tags",
            "List tags",
            "List the tags of the user's memos with how many memos have each, the most used first.",
            (),
            listed({"tags": _TAGS, "total": WHOLE}, "tags", "total"),
            _list,
        ),
        Tool(
            "get_recent_memos",
            "Show the latest memos",
            "Show the user's latest memos by date, each with its beginning.",
            (Param("limit", "integer", default=10, least=1, most=search_tool.MOST_RESULTS),),
            listed(_MEMOS, "results", "total"),
            _recent,
        ),
    ]


def _query(call: Call) -> Reply:
    from bunko.search.summaries import written

    given, library = call.arguments, call.library
    query, count, extract = given["query"], given["top_k"], given["extract"]
    now = library.now()
    answer = library.search(
        query,
        kinds=MEMO_KINDS,
        mode=given.get("search_mode"),
        top_k=count,
        where=Filter(
            tags=tags(f"{given['tag_filter']},") if given.get("tag_filter") else (),
            since=moment(given["since"], now) if given.get("since") else "",
            until=moment(given["until"], now) if given.get("until") else "",
        ),
        rewrite=given.get("enable_rewrite"),
    )
    # A model may find other words for the same query, and then a further page would be one of another list.
    question = json.dumps([*(given.get(name) for name in _PAGED), answer.rewritten])
    begin = read_cursor(given["cursor"], question) if given.get("cursor") else Cursor()
    if not given.get("cursor"):
        library.remember(query)
    generation = answer.freshness.generation
    if begin.generation not in (0, generation):
        answer.notices.append("The memos changed since the last page; results may repeat or be missing.")
    hits = _each_once(answer.hits)
    passages = library.passages(hits, extract, query=answer.searched, max_chars=given.get("max_chars"))
    common = library.summary(answer) if given["summary"] and hits and not given.get("cursor") else None
    pieces, rest = page(
        passages,
        Cursor(0, begin.passage, begin.character, generation),
        # A summary costs twice, in words and in names of fields, and never crowds out what it is about.
        budget=max(
            library.settings.serve.max_result_tokens - (2 * tokens(written(common)) if common else 0),
            library.settings.serve.max_result_tokens // 2,
        ),
        per_passage=None,
        frame=_frame,
    )
    looked = looked_for(answer.searched)
    several = len({hit.tool for hit in hits}) > 1
    results = [_result(piece, extract, looked, several=several) for piece in pieces]
    structured: dict[str, Any] = {"results": results, "total": len(passages), "note": UNTRUSTED}
    if answer.rewritten:
        structured["rewritten"] = answer.rewritten
    structured["truncated"] = rest is not None
    if rest is not None:
        structured["next_cursor"] = rest.written(question)
    if common:
        structured["summary"] = _cleaned(common)
    if answer.notices:
        structured["notices"] = answer.notices
    mark = secrets.token_hex(3)
    narrowed = any(given.get(name) for name in ("tag_filter", "since", "until"))
    blocks = [f"{_counted(len(passages), 'memo')}. {UNTRUSTED}"] if passages else [_NONE_SO if narrowed else _NONE]
    if answer.rewritten:
        blocks.append(f"Searched for\n{_between(mark, answer.rewritten)}")
    if common:
        blocks.append(f"Summary\n{_between(mark, clean(written(common)))}")
    blocks += [_block(mark, number, one) for number, one in enumerate(results, begin.passage + 1)]
    if rest is not None:
        blocks.append(f"More: repeat the call with cursor {structured['next_cursor']}")
    return Reply("\n\n".join([*blocks, *answer.notices]), structured)


def _list(call: Call) -> Reply:
    found = call.library.tags(kinds=MEMO_KINDS)
    left = call.library.settings.serve.max_result_tokens
    rows: list[dict[str, Any]] = []
    for tag, count in found:
        rows.append({"tag": shown(tag), "count": count})
        left -= _TAG + 2 * tokens(rows[-1]["tag"])
        if left < 0:
            break
    structured = {"tags": rows, "total": len(found), "note": UNTRUSTED}
    lines = [f"{row['tag']}: {row['count']}" for row in rows]
    blocks = [f"{_counted(len(found), 'tag')}. {UNTRUSTED}" if found else "No memo has a tag."]
    if found:
        blocks.append(_between(secrets.token_hex(3), "\n".join(lines)))
    if len(rows) < len(found):
        structured["truncated"] = True
        blocks.append(f"{len(found) - len(rows)} rarer tags are left out.")
    return Reply("\n\n".join(blocks), structured)


def _recent(call: Call) -> Reply:
    found = call.library.recent(limit=call.arguments["limit"], kinds=MEMO_KINDS)
    several = len({tool.name for tool, _ in found}) > 1
    results = []
    for tool, one in found:
        beginning = clean(one.beginning)
        start, end = window(beginning, Looked({}), SIZE)
        result = _memo(one.uri, one.title, one.date, one.tags)
        result["snippet"] = beginning[start:end] + ("…" if end < len(beginning.rstrip()) else "")
        results.append(result | ({"tool": tool.name} if several else {}))
    structured = {"results": results, "total": len(results), "note": UNTRUSTED}
    mark = secrets.token_hex(3)
    head = f"{_counted(len(results), 'memo')}, the latest first. {UNTRUSTED}" if results else "There are no memos yet."
    return Reply("\n\n".join([head, *(_block(mark, number, one) for number, one in enumerate(results, 1))]), structured)


def _each_once(hits: Sequence[Hit]) -> list[Hit]:
    # A long memo may answer with several chunks; the best one speaks for it.
    return list({(hit.tool, hit.uri): hit for hit in reversed(hits)}.values())[::-1]


def _frame(passage: Passage) -> int:
    hit = passage.hit
    said = [passage.citation, hit.uri, hit.title, *hit.tags[:_MOST_TAGS]]
    return _FRAME + 2 * tokens(" ".join(said))


def _result(piece: Piece, extract: Any, looked: Looked, *, several: bool) -> dict[str, Any]:
    passage, hit = piece.passage, piece.passage.hit
    found = _memo(hit.uri, hit.title, hit.date, hit.tags)
    after = passage.after if piece.ends else 0  # the next page goes on with it
    found["snippet"] = quoted(piece.text, extract, looked, before=passage.before if piece.begins else 0, after=after)
    found["score"] = round(hit.score, 4)
    found |= {"citation": _line(passage.citation), "hash": passage.hash}
    if passage.before or passage.after:
        found["left_out"] = {"before": passage.before, "after": passage.after}
    if not (piece.begins and piece.ends):
        found["truncated"] = True
    return found | ({"tool": hit.tool} if several else {})


def _memo(uri: str, title: str, date: str, own: Sequence[str]) -> dict[str, Any]:
    return {"id": _line(uri), "title": shown(title), "date": date, "tags": [shown(tag) for tag in own[:_MOST_TAGS]]}


def _cleaned(common: Summary) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(clean(json.dumps(serialize.summarised(common), ensure_ascii=False)))
    return found


def _block(mark: str, number: int, one: dict[str, Any]) -> str:
    facts = [f"date {one['date']}"] if one["date"] else []
    facts += [f"score {one['score']}", f"hash {one['hash']}"] if "score" in one else []
    facts += [f"tool {one['tool']}"] if "tool" in one else []
    facts += ["cut: goes on with the cursor"] if one.get("truncated") else []
    # Whatever a memo says stands between the marks: its title and tags too, and its id, which is made of them.
    place = one.get("citation", one["id"])
    said = " ".join(part for part in (place, one["title"], *(f"#{tag}" for tag in one["tags"])) if part)
    return f"## {number}. {', '.join(facts)}\n{_between(mark, one['snippet'], said)}"


def _between(mark: str, text: str, opening: str = "") -> str:
    return f"<excerpt-{mark}>{' ' if opening else ''}{opening}\n{text}\n</excerpt-{mark}>"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(text: str) -> str:
    # A name may hold a line end, and what follows it would stand outside the marks.
    return " ".join(clean(text).splitlines())
