"""Generated texts in, what vectors cost out: the bundled embedder's work, and how long a remote one takes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import corpus, queries, service
from bench.clock import Spent, child, cpu, spent
from bench.libraries import open_docs
from bench.table import Check, Result, Table, check, number

if TYPE_CHECKING:
    from bunko.records import PreparedDocument

SIZE, TEXTS, LEAST = 400, 2000, 5000
# A remote service: how late it answers, how many chunks go through it, in requests of how many, how many at once.
LATENCY, CHUNKS, REQUEST, PARALLEL = 50, 10_000, 100, 4
FILES = 100
ROUNDS = 5

# In a process of its own, since a model is loaded once; with one thread, as the command line sets it.
_LOADING = """
import json, time, numpy, psutil, bunko.library
before = psutil.Process().memory_info().rss
start = time.process_time()
from bunko.embedders import build
build("static").embed(["x"])
spent = time.process_time() - start
print(json.dumps([spent, psutil.Process().memory_info().rss - before]))
"""


def run(_: object) -> Result:
    """Embed stretches of generated pages, Japanese and English mixed, and short queries."""
    from bunko.embedders import build

    embedder = build("static")
    assert embedder is not None
    whole = "\n".join(text for _, text in corpus.pages(400))
    texts = [whole[at : at + SIZE] for at in range(0, TEXTS * SIZE, SIZE) if len(whole) >= at + SIZE]
    asked = [one for kind in (queries.one_word() | queries.questions()).values() for one in kind]
    batch = cpu(lambda: [embedder.embed(texts[at : at + 100]) for at in range(0, len(texts), 100)], rounds=3)
    query = cpu(lambda: [embedder.embed([one], query=True) for one in asked], rounds=3)
    loads = [json.loads(child(["-c", _LOADING], OPENBLAS_NUM_THREADS="1").output) for _ in range(5)]
    load, room = min(one[0] for one in loads), max(one[1] for one in loads)
    speed = len(texts) / batch
    table = Table(("static", ""))
    table.rows += [
        ("texts of 400 characters a CPU-second", number(speed)),
        ("µs CPU a query", number(query / len(asked) * 1e6)),
        ("ms CPU to load", number(load * 1e3)),
        ("MB it takes", number(room / 1e6)),
    ]
    enough = Check("texts embedded a CPU-second", number(speed), f"≥ {number(LEAST)}", speed >= LEAST)
    remote, remote_checks = _remote()
    return Result(
        {"embedding": table, "embedding-remote": remote},
        [
            enough,
            check("embedding a query", query / len(asked) * 1e6, 200, "µs"),
            check("loading the embedder", load * 1e3, 60, "ms CPU"),
            check("room of the embedder", room / 1e6, 40, "MB"),
            *remote_checks,
        ],
    )


def _remote() -> tuple[Table, list[Check]]:
    """Let a service on loopback, in a process of its own, make the vectors of chunks, and count what it is asked."""
    with service.serving(LATENCY) as server, tempfile.TemporaryDirectory() as place:
        _through(server, Path(place) / "warm", 4 * REQUEST)  # the SDK is loaded, the answers are made
        server.calls()
        rounds = [_through(server, Path(place) / str(number), CHUNKS) for number in range(ROUNDS)]
        calls = len(server.calls()) / ROUNDS
        best = min(rounds, key=lambda one: one.wall)
        ideal = calls / PARALLEL * LATENCY / 1000
        docs = Path(place) / "docs"
        for number_of_page, (name, text) in enumerate(corpus.pages(FILES)):
            path = docs / f"{number_of_page}-{Path(name).name}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        environ = {
            "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "none",
            "BUNKO_EMBEDDING_MODEL_ONLINE": "nomic-embed-text",
        }  # fmt: skip
        with open_docs(docs, environ) as library, spent() as imported:
            chunks = library.reindex().total_chunks
        asked = server.calls()
    most = -(-chunks // REQUEST) + 1
    table = Table(("a service that answers after 50 ms", "chunks", "calls", "wall s", "ideal s", "CPU s", "× ideal"))
    table.rows.append(
        ("vectors asked for and stored", number(CHUNKS), number(calls), number(best.wall), number(ideal),
         number(best.cpu), number(best.wall / ideal))
    )  # fmt: skip
    table.rows.append(
        (f"import of {FILES} files", number(chunks), number(len(asked)), number(imported.wall),
         number(len(asked) / PARALLEL * LATENCY / 1000), number(imported.cpu), "")
    )  # fmt: skip
    return table, [
        check(f"{CHUNKS:,} chunks through a service, against calls ÷ {PARALLEL} × 50 ms", best.wall / ideal, 1.5, "×"),
        check(f"calls for an import of {FILES} files with {chunks} chunks", len(asked), most, "calls"),
    ]


def _through(server: service.Service, folder: Path, chunks: int) -> Spent:
    """Store documents that are cut already, with vectors of a remote embedder, as an import does."""
    from bunko.embedders import build
    from bunko.ingest.embed import embed_batches
    from bunko.stores import sqlite
    from bunko.types import Tool

    embedder = build("openai", base_url=server.address, api_key="none", model="nomic-embed-text", batch=REQUEST)
    assert embedder is not None
    store = sqlite.build(folder / "library.db")
    tool = store.put_tool(Tool("chunks"))
    batches = _batches(chunks)
    with spent() as found:
        for one in embed_batches(store, embedder, batches, list, owner_id=tool.id):
            store.write(tool.id, upsert=one.documents, vectors=one.vectors, usage=one.usage)
    store.close()
    return found


def _batches(chunks: int) -> list[list[PreparedDocument]]:
    """Return documents of eight chunks, a hundred at a time; they are not looked for, so that they have no terms."""
    from bunko.records import PreparedDocument
    from bunko.types import Chunk, Document, SourceEntry, Text

    whole = "\n".join(text for _, text in corpus.pages(400))
    prepared = []
    for place in range(chunks // 8):
        at = place * 97 % (len(whole) - 8 * SIZE)
        text = whole[at : at + 8 * SIZE]
        pieces = [
            Chunk(index, index * SIZE, (index + 1) * SIZE, 1, 1, text[index * SIZE : (index + 1) * SIZE], "", ())
            for index in range(8)
        ]
        document = Document(
            SourceEntry(f"{place}.txt", len(text), 1), Text(text, "text/plain", "utf-8", f"{place}"), ""
        )
        prepared.append(PreparedDocument(document, pieces, b""))
    return [prepared[at : at + 100] for at in range(0, len(prepared), 100)]
