"""Measure the bundled embedder, and how long a remote one takes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import corpus, queries, service
from bench.clock import Cost, cpu, measure, run_child
from bench.libraries import open_docs
from bench.table import Check, Result, Table, check, number

if TYPE_CHECKING:
    from bunko.types.records import PreparedDocument

SIZE, TEXTS, LEAST = 400, 2000, 5000
# A remote service: its latency in ms, the number of chunks, chunks per request, and parallel requests.
LATENCY, CHUNKS, REQUEST, PARALLEL = 50, 10_000, 100, 4
FILES = 100
ROUNDS = 5

# In a separate process, since a model is loaded once; with one thread, as the command line sets it.
_LOADING = """
import json, time, numpy, psutil, bunko.library.library
before = psutil.Process().memory_info().rss
start = time.process_time()
from bunko.embedders import build
build("static").embed(["x"])
spent = time.process_time() - start
print(json.dumps([spent, psutil.Process().memory_info().rss - before]))
"""


def run(_: object) -> Result:
    """Embed parts of generated pages, Japanese and English mixed, and short queries."""
    from bunko.embedders import build

    embedder = build("static")
    assert embedder is not None
    corpus_text = "\n".join(text for _, text in corpus.pages(400))
    texts = [
        corpus_text[start : start + SIZE] for start in range(0, TEXTS * SIZE, SIZE) if len(corpus_text) >= start + SIZE
    ]
    all_queries = queries.all_queries()
    batch_seconds = cpu(
        lambda: [embedder.embed(texts[start : start + 100]) for start in range(0, len(texts), 100)], rounds=3
    )
    query_seconds = cpu(lambda: [embedder.embed([query], query=True) for query in all_queries], rounds=3)
    loads = [json.loads(run_child(["-c", _LOADING], OPENBLAS_NUM_THREADS="1").output) for _ in range(5)]
    load, memory = min(seconds for seconds, _ in loads), max(size for _, size in loads)
    speed = len(texts) / batch_seconds
    table = Table(("static", ""))
    table.rows += [
        ("texts of 400 characters a CPU-second", number(speed)),
        ("µs CPU a query", number(query_seconds / len(all_queries) * 1e6)),
        ("ms CPU to load", number(load * 1e3)),
        ("MB it takes", number(memory / 1e6)),
    ]
    speed_check = Check("texts embedded a CPU-second", number(speed), f"≥ {number(LEAST)}", speed >= LEAST)
    remote, remote_checks = _measure_remote()
    return Result(
        {"embedding": table, "embedding-remote": remote},
        [
            speed_check,
            check("embedding a query", query_seconds / len(all_queries) * 1e6, 200, "µs"),
            check("loading the embedder", load * 1e3, 60, "ms CPU"),
            check("room of the embedder", memory / 1e6, 40, "MB"),
            *remote_checks,
        ],
    )


def _measure_remote() -> tuple[Table, list[Check]]:
    """Embed chunks with a service on loopback, in a separate process, and count its requests."""
    with service.run_service(LATENCY) as server, tempfile.TemporaryDirectory() as work_dir:
        _embed_and_store(server, Path(work_dir) / "warm", 4 * REQUEST)  # loads the SDK and generates the responses
        server.calls()
        rounds = [_embed_and_store(server, Path(work_dir) / str(number), CHUNKS) for number in range(ROUNDS)]
        calls_per_round = len(server.calls()) / ROUNDS
        best_round = min(rounds, key=lambda cost: cost.wall)
        ideal_seconds = calls_per_round / PARALLEL * LATENCY / 1000
        docs = Path(work_dir) / "docs"
        for index, (name, text) in enumerate(corpus.pages(FILES)):
            path = docs / f"{index}-{Path(name).name}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        environ = {
            "EMBEDDING_PROVIDER": "openai", "OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "none",
            "BUNKO_EMBEDDING_MODEL_ONLINE": "nomic-embed-text",
        }  # fmt: skip
        with open_docs(docs, environ) as library, measure() as import_cost:
            chunks = library.reindex().total_chunks
        calls_of_import = server.calls()
    max_calls = -(-chunks // REQUEST) + 1
    table = Table(("a service that answers after 50 ms", "chunks", "calls", "wall s", "ideal s", "CPU s", "× ideal"))
    table.rows.append(
        ("vectors asked for and stored", number(CHUNKS), number(calls_per_round), number(best_round.wall),
         number(ideal_seconds), number(best_round.cpu), number(best_round.wall / ideal_seconds))
    )  # fmt: skip
    table.rows.append(
        (f"import of {FILES} files", number(chunks), number(len(calls_of_import)), number(import_cost.wall),
         number(len(calls_of_import) / PARALLEL * LATENCY / 1000), number(import_cost.cpu), "")
    )  # fmt: skip
    return table, [
        check(
            f"{CHUNKS:,} chunks through a service, against calls ÷ {PARALLEL} × 50 ms",
            best_round.wall / ideal_seconds,
            1.5,
            "×",
        ),
        check(f"calls for an import of {FILES} files with {chunks} chunks", len(calls_of_import), max_calls, "calls"),
    ]


def _embed_and_store(server: service.Service, folder: Path, chunks: int) -> Cost:
    """Embed prepared documents with a remote embedder and store them, as an import does."""
    from bunko.embedders import build
    from bunko.ingest.embed import embed_batches
    from bunko.stores import sqlite
    from bunko.types import Tool

    embedder = build("openai", base_url=server.address, api_key="none", model="nomic-embed-text", batch=REQUEST)
    assert embedder is not None
    store = sqlite.build(folder / "library.db")
    tool = store.tools.put(Tool("chunks"))
    batches = ((None, documents) for documents in _document_batches(chunks))
    with measure() as cost:
        for batch in embed_batches(store, embedder, batches, owner_id=tool.id):
            store.documents.write(tool.id, upsert=batch.documents, vectors=batch.vectors, usage=batch.usage)
    store.close()
    return cost


def _document_batches(chunks: int) -> list[list[PreparedDocument]]:
    """Return batches of a hundred documents of eight chunks; they are not searched, so they have no terms."""
    from bunko.types import Chunk, Document, SourceEntry, Text
    from bunko.types.records import PreparedDocument

    corpus_text = "\n".join(text for _, text in corpus.pages(400))
    prepared = []
    for document_index in range(chunks // 8):
        start = document_index * 97 % (len(corpus_text) - 8 * SIZE)
        text = corpus_text[start : start + 8 * SIZE]
        document_chunks = [
            Chunk(index, index * SIZE, (index + 1) * SIZE, 1, 1, text[index * SIZE : (index + 1) * SIZE], "", ())
            for index in range(8)
        ]
        document = Document(
            SourceEntry(f"{document_index}.txt", len(text), 1),
            Text(text, "text/plain", "utf-8", f"{document_index}"),
            "",
        )
        prepared.append(PreparedDocument(document, document_chunks, b""))
    return [prepared[start : start + 100] for start in range(0, len(prepared), 100)]
