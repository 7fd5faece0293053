"""Facts of documents in a file: filters select the same with it, without it, and with one of an earlier state."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import DiskFull
from bunko.protocols import Store
from bunko.stores.filters import effective_date
from bunko.stores.sql import facts
from bunko.stores.sqlite.connection import SqliteDatabase
from bunko.types import SourceEntry, Tool
from bunko.types.records import Filter
from tests.contracts.documents import prepared

DAY_NS = 24 * 60 * 60 * 10**9
FILTERS = [
    Filter(tags=("x",)),
    Filter(tags=("x", "日記")),
    Filter(since="2024-01-15", until="2024-02"),
    Filter(since="2024-01-15T12:00:00"),
    Filter(until="1970"),
    Filter(path="guide/**"),
    Filter(path="guide/1*.md"),
    Filter(path="*3.md"),
    Filter(path="**/[1-3]?.md", tags=("x",)),
    Filter(path="guide/", since="2024"),
    Filter(tags=("x",), since="2024-01-10", until="2024-03-20", path="*.md"),
]


@pytest.fixture(autouse=True)
def _facts_of_few_documents_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MIN_SAVED_DOCUMENTS", 1)


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "library.db"


def facts_file(location: Path, tool: Tool) -> Path:
    return location.with_name(f"library.db.tool{tool.id}.facts")


def write_random(store: Store, tool: Tool, rng: random.Random) -> None:
    """Write, remove and touch some of forty documents."""
    uris = [f"{folder}{number}.md" for folder in ("", "guide/", "guide/深い/") for number in range(14)]
    rng.shuffle(uris)
    dates = ["", "2024-01-15", "2024-02-03T10:00:00", "2024-01-15T23:30:00+09:00", "2023-05"]
    tags = [(), ("x",), ("日記", "x"), ("y", 'a"b')]
    store.documents.write(
        tool.id,
        upsert=[prepared(uri, "検索", date=rng.choice(dates), tags=rng.choice(tags)) for uri in uris[:9]],
        remove=uris[9:12],
        touch=[
            SourceEntry(uri, 1, 1_705_000_000 * 10**9 + rng.randrange(60) * DAY_NS // 7, 0)
            for uri in uris[12 : 12 + 5 * rng.randrange(2)]
        ],
    )


def selected_uris(store: Store, tool: Tool, where: Filter) -> list[str]:
    ids = {chunk.document_id: chunk.chunk_id for chunk in store.changes.chunks_since(tool.id, 0)}
    rows = store.documents.chunks([ids[document_id] for document_id in store.documents.select(tool.id, where)])
    return sorted(row.uri for row in rows.values())


def selected(store: Store, tool: Tool) -> list[list[str]]:
    """Return what each filter selects."""
    return [selected_uris(store, tool, where) for where in FILTERS]


def expected(store: Store, tool: Tool) -> list[list[str]]:
    """Return what each filter should select, found without facts."""
    return [sorted(document.uri for document in store.documents.find(tool.id, where)) for where in FILTERS]


@pytest.mark.parametrize("seed", range(5))
def test_facts_of_an_earlier_state_select_what_the_documents_say(location: Path, seed: int) -> None:
    rng = random.Random(seed)
    server = stores.build("sqlite", location, None)
    tool, shadow = server.tools.put(Tool("docs")), server.tools.put(Tool("~docs"))
    for step in range(12):
        write_random(server, tool, rng)
        with closing(stores.build("sqlite", location, None)) as process:
            assert selected(process, tool) == expected(process, tool)
        if step % 3 == 0:
            assert selected(server, tool) == expected(server, tool)
    write_random(server, shadow, rng)
    server.tools.swap(tool, shadow)
    assert selected(server, tool) == expected(server, tool)
    server.close()


def fill(location: Path) -> Tool:
    """Write documents, and the file of their facts."""
    with closing(stores.build("sqlite", location, None)) as store:
        tool = store.tools.put(Tool("docs"))
        write_random(store, tool, random.Random(1))
        assert selected(store, tool) == expected(store, tool)
    assert facts_file(location, tool).exists()
    return tool


def statements_of_filters(location: Path, tool: Tool) -> list[str]:
    """Return the SQL that a new process runs to answer filters."""
    statements: list[str] = []
    with closing(stores.build("sqlite", location, None)) as store, store.read_transaction():
        database = store.documents._database  # type: ignore[attr-defined]
        with database._readers.connection() as connection:
            connection.set_trace_callback(statements.append)
        for where in FILTERS:
            store.documents.select(tool.id, where)
        connection.set_trace_callback(None)
    return statements


def test_a_new_process_reads_no_documents_for_a_filter(location: Path) -> None:
    tool = fill(location)
    statements = statements_of_filters(location, tool)
    assert statements
    assert not any("tags" in statement for statement in statements)


def test_a_new_process_reads_the_documents_that_were_written_since(location: Path) -> None:
    tool = fill(location)
    with closing(stores.build("sqlite", location, None)) as store:
        store.documents.write(tool.id, upsert=[prepared("new.md", "検索", date="2024-01-15", tags=("x",))])
    generations = [text.rpartition("> ")[2] for text in statements_of_filters(location, tool) if "tags" in text]
    assert len(generations) == 1
    assert int(generations[0]) > 0, "not all of them"
    with closing(stores.build("sqlite", location, None)) as store:
        assert selected(store, tool) == expected(store, tool)


def test_another_time_of_a_file_on_the_same_day_is_noticed(location: Path) -> None:
    noon = 1_705_320_000 * 10**9
    with closing(stores.build("sqlite", location, None)) as store:
        tool = store.tools.put(Tool("docs"))
        store.documents.write(tool.id, upsert=[prepared("undated.md", "検索", modified_ns=noon)])
    where = Filter(since=effective_date("", noon), until=effective_date("", noon))
    for second in (0, 1, 0):
        with closing(stores.build("sqlite", location, None)) as store:
            store.documents.write(tool.id, touch=[SourceEntry("undated.md", 1, noon + second * 10**9, 0)])
            assert len(store.documents.select(tool.id, where)) == (second == 0)


@pytest.mark.parametrize("damage", [b"", b"bunko", None])
def test_a_damaged_file_of_facts_is_written_again(location: Path, damage: bytes | None) -> None:
    tool = fill(location)
    path = facts_file(location, tool)
    good = path.read_bytes()
    path.write_bytes(good[:-8] + b"\xff" * 8 if damage is None else damage)
    with closing(stores.build("sqlite", location, None)) as store:
        assert selected(store, tool) == expected(store, tool)
    assert len(path.read_bytes()) == len(good)
    assert not any("tags" in statement for statement in statements_of_filters(location, tool))


def test_a_copy_of_an_older_library_does_not_use_the_facts_of_a_newer_one(location: Path, tmp_path: Path) -> None:
    tool = fill(location)
    shutil.copy(location, tmp_path / "backup.db")
    with closing(stores.build("sqlite", location, None)) as store:
        store.documents.write(
            tool.id, upsert=[prepared("a.md", "検索", tags=("x",))], touch=[SourceEntry("z", 1, 1, 1)]
        )
        facts_file(location, tool).unlink()
        assert selected(store, tool) == expected(store, tool)
    shutil.copy(tmp_path / "backup.db", location)
    with closing(stores.build("sqlite", location, None)) as store:
        store.documents.write(tool.id, upsert=[prepared("b.md", "検索", tags=("y",))])
        assert selected(store, tool) == expected(store, tool)


def test_a_library_open_for_reading_uses_the_file_and_writes_none(location: Path) -> None:
    tool = fill(location)
    for _ in range(2):
        with closing(stores.build("sqlite", location, None, read_only=True)) as store:
            assert selected(store, tool) == expected(store, tool)
        facts_file(location, tool).unlink(missing_ok=True)
    assert not facts_file(location, tool).exists()


def test_the_facts_of_a_deleted_tool_and_library_are_deleted(location: Path) -> None:
    tool = fill(location)
    with closing(stores.build("sqlite", location, None)) as store:
        store.tools.drop(tool.id)
    assert not facts_file(location, tool).exists()
    tool = fill(location)
    stores.delete("sqlite", location)
    assert list(location.parent.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", ["derived.arrays", "derived.header", "derived.synced", "derived.renamed"])
def test_a_process_killed_while_it_writes_the_file_leaves_filters_right(location: Path, failpoint: str) -> None:
    tool = fill(location)
    facts_file(location, tool).unlink()
    code = (
        "import sys; from pathlib import Path; from bunko import stores; from bunko.types.records import Filter\n"
        "from bunko.stores.sql import facts; facts.MIN_SAVED_DOCUMENTS = 1\n"
        "stores.build('sqlite', Path(sys.argv[1])).documents.select(int(sys.argv[2]), Filter(path='*'))"
    )
    environ = os.environ | {"BUNKO_FAILPOINT": failpoint}
    killed = subprocess.run([sys.executable, "-c", code, str(location), str(tool.id)], env=environ, check=False)
    assert killed.returncode < 0
    with closing(stores.build("sqlite", location, None)) as store:
        write_random(store, tool, random.Random(2))
        assert selected(store, tool) == expected(store, tool)


def test_a_filter_on_a_full_disk_selects_without_the_file(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = fill(location)
    facts_file(location, tool).unlink()

    def fill_disk(_: object, statements: object) -> bool:
        raise DiskFull("The disk is full")

    monkeypatch.setattr(SqliteDatabase, "try_transaction", fill_disk)
    with closing(stores.build("sqlite", location, None)) as store:
        assert selected(store, tool) == expected(store, tool)
    assert not facts_file(location, tool).exists()


def test_files_that_had_no_time_are_found_by_the_time_that_they_get(location: Path) -> None:
    with closing(stores.build("sqlite", location, None)) as store:
        tool = store.tools.put(Tool("docs"))
        store.documents.write(tool.id, upsert=[prepared(f"{number}.md", "検索", modified_ns=0) for number in range(5)])
        assert store.documents.select(tool.id, Filter(since="2024")) == []
        store.documents.write(tool.id, touch=[SourceEntry("3.md", 1, 1_750_000_000 * 10**9, 0)])
        assert selected_uris(store, tool, Filter(since="2024")) == ["3.md"]
    with closing(stores.build("sqlite", location, None)) as store:
        assert selected_uris(store, tool, Filter(since="2024")) == ["3.md"]


_CLOCK_CHANGE = 1_729_990_800  # when 03:00 became 02:00 in Berlin
_TIMES = [_CLOCK_CHANGE + minutes * 60 for minutes in (-55, -15, 15, 10 * 24 * 60)]


@pytest.mark.parametrize(
    ("times_ns", "bound"),
    [
        ([seconds * 10**9 for seconds in _TIMES], "2024-10-27T02:27"),
        ([seconds * 10**9 for seconds in _TIMES], "2024-10-27T02:45"),
        ([500_000_000], "1970-01-01"),
    ],
)
def test_times_of_files_are_compared_as_local_times_whatever_clocks_do(
    times_ns: list[int], bound: str, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        with closing(stores.build("sqlite", location, None)) as store:
            tool = store.tools.put(Tool("docs"))
            files = [prepared(f"{number}.md", "検索", modified_ns=time_ns) for number, time_ns in enumerate(times_ns)]
            store.documents.write(tool.id, upsert=files)
            for where in (Filter(since=bound), Filter(until=bound)):
                uris = sorted(document.uri for document in store.documents.find(tool.id, where))
                assert selected_uris(store, tool, where) == uris
    finally:
        monkeypatch.undo()
        time.tzset()
