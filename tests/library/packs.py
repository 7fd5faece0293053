"""Documents, queries and helpers that the tests of packs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bunko.library.library import Library
from bunko.library.packs.pack import open_pack
from bunko.types import MODES, Tool

QUERIES = ("京都の寺", "サーバーの設定", "how to validate a form", "庭園", "GitHubActions")
TEXTS = {
    "kyoto.md": "# 京都\n\n## 寺\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n" * 3,
    "guide/server.md": "---\ntitle: サーバーの手引き\ndate: 2024-01-15\ntags: [運用]\n---\n# 設定\n\nサーバー\n",
    "guide/form.txt": "How to validate a form: check every field, and say what is wrong beside it.\n",
    "表.md": "# 表\n\n| 名前 | 値 |\n|---|---|\n| GitHubActions | on |\n| 京都 | 庭園 |\n",
}
OpenNamed = Callable[..., Library]


def answers(library: Library, tool: str) -> dict[tuple[str, str], list[Any]]:
    return {
        (query, mode): [
            (hit.uri, hit.chunk, hit.title, hit.date, hit.tags, hit.content_hash, round(hit.score, 9))
            for hit in library.search(query, tool=tool, mode=mode).hits
        ]
        for query in QUERIES
        for mode in MODES
    }


def import_pack_file(library: Library, path: Path, **options: Any) -> tuple[Tool, Any]:
    with open_pack(path) as pack:
        return library.packs.import_pack(pack, **options)


def library_contents(library: Library) -> tuple[Any, ...]:
    """Return all a library holds, but for its own ids."""
    tools = library.store.tools.all()
    return tools, [library.store.documents.export(tool.id, library.store.documents.uris(tool.id)) for tool in tools]
