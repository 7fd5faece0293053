"""Files with names and texts that a database may not be able to store are imported as into a library in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import environment

pytestmark = pytest.mark.scale

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 2
HOSTILE = {
    b"nul.md": f"# zero \0 title\n\n{FILLER} zero \0 text",
    b"yaml.md": f'---\ntitle: "a\\0b\\ud800c"\ntags: ["x\\0y", "\\udfff"]\ndate: "2024-01-02\\0"\n---\n\n{FILLER}',
    b"entity.html": f"<html><head><title>&#0;&#xD800;t</title></head><body><p>&#xDFFF;&#0;{FILLER}</p></body></html>",
    b"noncharacter.md": f"# \U0010fffe \U0010ffff \ufffe\n\n{FILLER} \U0010fffe",
    "\U0010fffe.md".encode(): f"# noncharacter in its name\n\n{FILLER}",
    "\U0010ffffn.md".encode(): f"# and what stands for it\n\n{FILLER}",
    b"controls.md": "# \x01\x02\x1b[31m\n\n" + FILLER + "".join(map(chr, range(1, 32))),
    b"not utf-8 \xff\xfe.md": f"# name\n\n{FILLER}",
    b"\xed\xa0\x80.md": f"# surrogate in its name\n\n{FILLER}",
    b"new\nline\t'\"\\%s$1?.md": f"# odd name\n\n{FILLER}",
    b"a" * 200 + b".md": f"# long\n\n{FILLER}",
    b"good.md": f"# good\n\n{FILLER}",
}
ENTRIES = [
    {"id": "a\0b", "text": f"zero \0 {FILLER}", "title": "t\0"},
    {"id": "lone \ud800", "text": f"surrogate \udc00 {FILLER}", "tags": ["\ud800", "z\0"]},
    {"id": "good", "text": FILLER},
]


def test_hostile_files_are_imported_as_into_a_library_in_a_file(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    for name, text in HOSTILE.items():
        (docs / os.fsdecode(name)).write_bytes(text.encode())
    entries = tmp_path / "entries.jsonl"
    entries.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES), encoding="utf-8")
    results: list[dict[str, list[tuple[Any, ...]]]] = []
    for number, environ in enumerate(({}, environment(server))):
        with open_library(paths_for_folder(tmp_path / f"library {number}"), environ=environ) as library:
            library.add(docs, name="docs")
            library.add(entries, name="entries", kind="jsonl")
            reports = [library.import_(name) for name in ("docs", "entries")]
            results.append(
                {
                    "reports": [(r.added, [(p.uri, p.reason) for p in r.problems]) for r in reports],
                    "documents": [
                        (tool.name, uri, document.text, document.title, document.tags)
                        for tool in library.tools()
                        for uri in sorted(library.store.documents.fingerprints(tool.id))
                        if (document := library.store.documents.get(tool.id, uri)) is not None
                    ],
                    "hits": [
                        (hit.uri, round(hit.score, 6))
                        for query in ("zero", "少し長めに", "good", "a\0b", "\ud800")
                        for hit in library.search(query, top_k=30).hits
                    ],
                }
            )
            for tool in library.tools():
                again = library.import_(tool.name)
                assert (again.added, again.updated) == (0, 0)
    assert results[0]["reports"] == results[1]["reports"]
    assert results[0]["hits"] == results[1]["hits"]
    imported = {uri for _, uri, *_ in results[1]["documents"]}
    assert {"good.md", "\U0010fffe.md", "\U0010ffffn.md", "noncharacter.md"} <= imported
    assert results[0]["documents"] == results[1]["documents"]
