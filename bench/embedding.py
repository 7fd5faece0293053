"""Generated texts in, what the bundled embedder costs out: loading it, texts, a query, its room."""

from __future__ import annotations

import json

from bench import corpus, queries
from bench.clock import child, cpu
from bench.table import Check, Result, Table, check, number

SIZE, TEXTS, LEAST = 400, 2000, 5000

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
    return Result(
        {"embedding": table},
        [
            enough,
            check("embedding a query", query / len(asked) * 1e6, 200, "µs"),
            check("loading the embedder", load * 1e3, 60, "ms CPU"),
            check("room of the embedder", room / 1e6, 40, "MB"),
        ],
    )
