"""A folder in, what opening its library and asking it costs out, as JSON: `python -m bench.visit FOLDER`."""

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
    asked = [one for kind in (queries.one_word() | queries.questions()).values() for one in kind]
    clock = time.process_time
    begin = clock()
    library = open_docs(Path(sys.argv[1]))
    with library.store.read_transaction():
        library.snapshot([tool.id for tool in library.tools()])
    opened = clock()
    library.search(asked[0], mode="bm25", refresh=False)
    answered = clock()
    for mode in MODES:
        for query in asked:
            library.search(query, mode=mode, top_k=10)
    memory = psutil.Process().memory_info()
    # What is mapped from files is memory that the system may take back.
    found = {"open": opened - begin, "first": answered - opened, "rss": memory.rss, "own": memory.rss - memory.shared}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
