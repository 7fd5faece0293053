"""A library with rows in every table, for the tests of moving it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import LibraryPaths, locate_library
from bunko.protocols import Digest, Store
from bunko.types import Tool
from bunko.types.access import AuditEntry, Rights, Token
from bunko.types.records import DomainRule, EmbeddingUsage, OutboxEntry, ToolStatistics, WebPage

TEXTS = {
    "京都.md": "# 京都の寺\n\n秋の京都で寺の庭を巡りました。紅葉にはまだ早い時期でした。\n\n"
    "## 宿\n\n静かな宿に泊まり、翌朝は港まで歩きました。\n",
    "setup.md": "# Setup\n\nInstall the server first. The recovery signal of the engine is green.\n\n"
    "## Index\n\nThe index of the garden follows the library.\n",
    "料理.md": "# 玉葱の料理\n\n玉葱を薄く切ります。\n\n弱火で三十分炒めると甘くなります。塩は最後に入れます。\n",
    "patent.txt": "The patent was filed in spring. A second application follows in autumn, with the same method.\n",
    "gone.md": "# Gone\n\nThis one will be removed before the library moves.\n",
}


def place(folder: Path) -> LibraryPaths:
    """Return the paths of a library folder, as the flag --library names it."""
    return locate_library(library=folder, environ={})


def make_library(folder: Path, docs: Path) -> None:
    """Fill a library so that no table is empty."""
    docs.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        (docs / name).write_text(text, encoding="utf-8")
    with open_library(place(folder), environ={}) as library:
        library.add(docs, name="notes", description="旅と運用の記録")
        library.import_("notes")
        (docs / "gone.md").unlink()
        os.utime(docs / sorted(name for name in TEXTS if name != "gone.md")[0], (10**9, 10**9))
        (docs / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
        library.import_("notes")
        add_rare_rows(library)


def add_rare_rows(library: Library) -> None:
    """Write the rows that an import of a folder does not write."""
    store = library.store
    notes = library.resolve_tool("notes")
    vector = np.array([1.0, 2.0], np.float32)
    store.vectors.pin(notes.id, "other:2", {b"pinned": vector}, usage={"other:2": EmbeddingUsage(texts=3)})
    pages = store.tools.put(Tool("pages", kind="web"))
    url = "https://example.org/寺"
    store.pages.write(pages.id, upsert=[WebPage(url, "held", etag="e")], contents={url: b"<p>temple</p>"})
    statistics = ToolStatistics(store.generation(), 3, 40, b"moments")
    store.index_statistics.replace(notes.id, "copy", statistics, [(-5, 2), (7, 1)])
    store.changes.set_index_note(notes.id, "milvus", "0123456789abcdef")
    store.cache.log_search("京都 の\0寺", "notes", "2026-01-01T00:00:00", limit=10)
    store.cache.cache_answer("rewrite", b"key", "答え", now=0.0, expires_at=2e10, limit=10)
    store.tokens.add(Token("alice", "0f" * 32, Rights(("notes",), ("pages",)), "2026-01-01T00:00:00"))
    store.audit.begin(AuditEntry("2026-01-01T00:00:00", "alice", "cli", "import", ("notes",)), limit=10)
    store.outbox.add(OutboxEntry("k", "slack/T1/UBOT", "C1/1.0", "1.0", {"text": "質問"}, 1.5))
    store.domains.put(DomainRule("example.com", True, "U1", "2026-01-01T00:00:00"))
    dropped = store.tools.put(Tool("dropped"))
    store.tools.drop(dropped.id)


def digests(store: Store) -> dict[tuple[str, int], Digest]:
    """Return the digest of every table of a store, by table and tool."""
    found: dict[tuple[str, int], Digest] = {}
    for table in store.rows.tables:
        for page in store.rows.pages(table):
            for tool_id, digest in store.rows.digests(table, page).items():
                found[table, tool_id] = found.get((table, tool_id), Digest()) + digest
    return found


def answers(library: Library) -> list[tuple[str, int, float]]:
    """Return what some searches find."""
    return [
        (hit.uri, hit.chunk.index, round(hit.score, 6))
        for query in ("京都の寺", "recovery signal", "玉葱", "patent method")
        for hit in library.search(query, top_k=20, refresh=False).hits
    ]
