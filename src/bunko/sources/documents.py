"""Read the files below a folder: each is a document, and a mailbox is as many documents as it has messages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bunko import readers
from bunko.errors import SourceError
from bunko.protocols import Look, Scan
from bunko.readers import mail
from bunko.readers.memo import BadLine, Memo, limit_bad_lines
from bunko.sources.entries import EntryFiles, ParsedFile
from bunko.sources.folder import Folder
from bunko.sources.kind import SourceSpec
from bunko.sources.walk import is_vault
from bunko.types import Fingerprint, SourceEntry, Text

if TYPE_CHECKING:
    from bunko.sources.git_dates import FileHistory

_MAILBOX_SUFFIX = ".mbox"


class FolderWithMail(Folder):
    """A folder whose mailboxes may be larger than its other files, because they are read as streams."""

    def __init__(self, root: Path, max_mailbox_bytes: int, **options: Any) -> None:
        super().__init__(root, **options)
        self._max_mailbox_bytes = max_mailbox_bytes
        self._rules = replace(self._rules, max_any_bytes=min(self._max_file_bytes, max_mailbox_bytes))

    def watch_key(self) -> Hashable:
        """Return the rules for files."""
        return super().watch_key(), self._max_mailbox_bytes

    def _limit(self, uri: str) -> tuple[int, str]:
        return (self._max_mailbox_bytes, "memos.max_file_bytes") if is_mailbox(uri) else super()._limit(uri)


class FolderDocuments(EntryFiles):
    """The documents below a folder; notes in a vault of Obsidian or Logseq have the tags and names they have there."""

    def __init__(self, root: Path, files: Folder, max_chars: int) -> None:
        super().__init__(root, files, parse_mailbox, max_chars, is_mailbox)
        self._vault_folders: dict[str, bool] = {}
        self._known_history: Mapping[str, FileHistory] | None = None

    def keep_files_of(self, kept: FolderDocuments) -> None:
        """Leave files that only another source finds as they were indexed: they are neither read nor deleted."""
        self._files.kept = kept._files

    def _compare(self, files: Look, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        if not any(_MAILBOX_SUFFIX in uri.lower() for uri in fingerprints):
            # Most folders have no mailbox, and it takes time to look for the entries of each file.
            scan = files.compare(fingerprints)
            if not any(is_mailbox(entry.uri) for entry in scan.added):
                return scan
            files = self._files.look()  # a look compares once
        return super()._compare(files, fingerprints)

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Return the text of a document; raise SourceError if it has none."""
        text = readers.read(data, entry.uri)
        if not text.date and (date := self._committed_at(data, entry.uri)):
            text = replace(text, date=date)
        if text.media_type == "text/markdown" and self._is_in_vault(entry.uri.rpartition("/")[0]):
            from bunko.readers import vault_notes

            return vault_notes.add_metadata(text)
        return text

    is_local_only = False

    def portable_copy(self, entries: Sequence[SourceEntry]) -> FolderDocuments:
        """Return a copy that knows the history of these entries, and which of them are in a vault."""
        copy = FolderDocuments(self.root, self._files, self._max_chars)
        from bunko.sources.git_dates import load_history  # here: only a cluster needs it

        history = load_history(self._files.root)
        copy._known_history = {entry.uri: history[entry.uri] for entry in entries if entry.uri in history}
        for folder in {entry.uri.rpartition("/")[0] for entry in entries}:
            copy._is_in_vault(folder)
        return copy

    def _committed_at(self, data: bytes, uri: str) -> str:
        if self._known_history is not None:
            return self._known_history[uri].date_of(data) if uri in self._known_history else ""
        from bunko.sources import git_dates  # here: a search needs neither it nor subprocesses

        return git_dates.committed_at(self._files.root, uri, data)

    def _single_file(self) -> str:
        return ""  # the folder may be missing, but it is never a file

    def _is_in_vault(self, folder: str) -> bool:
        if folder not in self._vault_folders:
            above = folder.rpartition("/")[0]
            self._vault_folders[folder] = is_vault(self._files.root / folder) or (
                self._is_in_vault(above) if folder else any(is_vault(parent) for parent in self._files.root.parents)
            )
        return self._vault_folders[folder]


def is_mailbox(uri: str) -> bool:
    """Return whether a file is a mailbox by its name."""
    return uri.lower().endswith(_MAILBOX_SUFFIX)


def parse_mailbox(file: BinaryIO, name: str, size: int, max_chars: int) -> ParsedFile:
    """Return the messages of a mailbox; of one that is longer than `max_chars` bytes only the beginning is read."""
    return ParsedFile("binary", limit_bad_lines(_messages(file, max_chars)))


def _messages(file: BinaryIO, max_chars: int) -> Iterator[Memo | BadLine | Text]:
    message = None
    for message in mail.split_mailbox(file, max_chars):
        line = message.first_line
        try:
            text = mail.read_message(message.data)
        except SourceError as error:
            yield BadLine(line, f"the message at line {line} cannot be read: {error.message}", f"{len(message.data)}")
            continue
        # The text is decoded, so that its lines are not those of the file: all of it is where the message begins.
        yield Memo(line, line, text.title, text.date, text.tags, text.text, media_type=text.media_type)
    if message is None:
        raise SourceError("The mailbox has no messages", hint="Export it again in the format mbox, or exclude it.")


def build(spec: SourceSpec) -> FolderDocuments:
    """Return the documents below a folder."""
    files = FolderWithMail(
        spec.root,
        spec.max_memo_file_bytes,
        extensions=spec.extensions,
        exclude_dirs=spec.exclude_dirs,
        include=spec.include,
        exclude=spec.exclude,
        respect_gitignore=spec.respect_gitignore,
        max_file_bytes=spec.max_file_bytes,
    )
    documents = FolderDocuments(files.root, files, spec.max_file_bytes)
    if isinstance(spec.keep, FolderDocuments):
        documents.keep_files_of(spec.keep)
    return documents
