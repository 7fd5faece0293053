"""Print the cost of opening and searching the library of a folder as JSON: `python -m bench.visit FOLDER`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil

from bench import queries
from bench.libraries import open_docs
from bunko.types import MODES


def main() -> None:
    all_queries = queries.all_queries()
    clock = time.process_time
    start = clock()
    library = open_docs(Path(sys.argv[1]))
    with library.store.read_transaction():
        library.index_view([tool.id for tool in library.tools()])
    opened = clock()
    library.search(all_queries[0], mode="bm25", refresh=False)
    answered = clock()
    for mode in MODES:
        for query in all_queries:
            library.search(query, mode=mode, top_k=10)
    memory = psutil.Process().memory_info()
    # The system may reclaim memory that is mapped from files.
    report = {"open": opened - start, "first": answered - opened, "rss": memory.rss, "own": memory.rss - memory.shared}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
