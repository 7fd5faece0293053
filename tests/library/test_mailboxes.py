"""A mailbox in a folder is as many documents as it has messages, beside the files that are one each."""

from __future__ import annotations

import mailbox
import os
import shutil
from email.message import EmailMessage
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.search.reading import ReadRequest
from bunko.types.records import Filter
from tests.conftest import Opener

FIXTURES = Path(__file__).parents[1] / "fixtures" / "formats"


def write_mailbox(path: Path, *bodies: str, age: int = 100) -> None:
    path.unlink(missing_ok=True)
    box = mailbox.mbox(path)
    for body in bodies:
        message = EmailMessage()
        message["Subject"], message["From"] = f"Letter {body.split()[0]}", "a@example.org"
        message["Date"] = f"{ord(body[0]) - ord('a') + 1} Jan 2024 09:30:00 +0900"
        message.set_content(body)
        box.add(message)
    box.flush()
    box.close()
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))


def counts(library: Library) -> tuple[int, int, int, int, int]:
    report = library.reindex()
    assert report.problems == []
    return report.added, report.updated, report.deleted, report.moved, report.unchanged


def test_every_message_is_found_with_its_date_and_where_it_begins(docs: Path, open_docs: Opener) -> None:
    shutil.copy(FIXTURES / "letters.mbox", docs)
    (docs / "note.md").write_text("# Chairs\n\nThe chairs in the garden are old.\n", encoding="utf-8")
    library = open_docs()
    assert library.reindex().added == 4
    hit = library.search("café menu").hits[0]
    assert hit.uri == "letters.mbox#2024-01-15-Re-明日の会議について"
    assert (hit.title, hit.date, hit.tags) == ("Re: 明日の会議について", "2024-01-15T10:00:00+09:00", ("work", "会議"))
    line = hit.chunk.first_line
    assert hit.citation == f"{hit.uri}:L{line}"
    assert (
        (FIXTURES / "letters.mbox")
        .read_text()
        .split("\n")[line - 1]
        .startswith("From sender@example.org Mon Jan 15 01")
    )
    assert "ten minutes on foot" in library.documents.read(ReadRequest(hit.citation)).text
    found = {hit.uri.partition("#")[0] for hit in library.search("garden chairs").hits}
    assert found == {"letters.mbox", "note.md"}
    recent = library.search("chairs", where=Filter(since="2024-04-01", until="2024-04-30")).hits
    assert [hit.title for hit in recent] == ["Spring sale"]


def test_only_the_messages_that_changed_are_imported_again(docs: Path, open_docs: Opener) -> None:
    box = docs / "mail" / "inbox.MBOX"
    box.parent.mkdir()
    (docs / "note.md").write_text("The note beside the mail.\n", encoding="utf-8")
    write_mailbox(box, "apples are ripe", "pears are green")
    library = open_docs()
    assert counts(library) == (3, 0, 0, 0, 0)
    assert counts(library) == (0, 0, 0, 0, 3)
    write_mailbox(box, "apples are ripe", "pears are green", "plums are blue", age=50)
    assert counts(library) == (1, 0, 0, 0, 3)
    write_mailbox(box, "apples are ripe", "plums are blue", age=20)
    assert counts(library) == (0, 0, 1, 0, 3)
    assert library.search("pears").hits == []
    box.rename(docs / "archive.mbox")
    assert counts(library) == (0, 0, 0, 2, 1)
    (docs / "archive.mbox").unlink()
    assert counts(library) == (0, 0, 2, 0, 1)


@pytest.mark.slow
def test_worker_processes_read_mailboxes_and_vaults(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.ingest.preparer.MIN_BYTES_FOR_WORKERS", 1)
    shutil.copy(FIXTURES / "letters.mbox", docs)
    (docs / ".obsidian").mkdir()
    (docs / "note.md").write_text("A note with a #tag.\n", encoding="utf-8")
    library = open_docs()
    assert library.reindex(workers=2).added == 4
    assert ("tag", 1) in library.store.stats.tags(library.store.tools.all()[0].id)


def test_a_mailbox_without_messages_and_a_damaged_message_are_problems_of_their_own(
    docs: Path, open_docs: Opener
) -> None:
    (docs / "empty.mbox").write_text("no messages here\n", encoding="utf-8")
    separator = "From a@b Mon Jan 15 09:30:00 2024\n"
    (docs / "damaged.mbox").write_text(
        f"{separator}\nonly a body\n\n{separator}Subject: whole\n\nThe text of the whole message.\n", encoding="utf-8"
    )
    library = open_docs()
    report = library.reindex()
    assert report.added == 1
    problems = {problem.uri: problem.reason for problem in report.problems}
    assert problems["empty.mbox"].startswith("The mailbox has no messages")
    assert "the message at line 1 cannot be read" in problems["damaged.mbox#L1"]
    assert [hit.title for hit in library.search("whole message").hits] == ["whole"]


def test_a_mailbox_may_be_larger_than_a_document_and_is_read_in_pieces(docs: Path, open_docs: Opener) -> None:
    write_mailbox(docs / "big.mbox", *(f"number{number} " + "word " * 50 for number in range(60)))
    library = open_docs(BUNKO_SCANNER_MAX_FILE_BYTES="5000")
    assert counts(library) == (60, 0, 0, 0, 0)
    assert library.search("number42").hits[0].title == "Letter number42"
    limited = open_docs(BUNKO_MEMOS_MAX_FILE_BYTES="5000")
    [problem] = limited.reindex(rebuild=True).problems
    assert "raise memos.max_file_bytes to index it" in problem.reason
