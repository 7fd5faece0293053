"""A library is written to one file and restored from it as a whole, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import sqlite3
import stat
import tomllib
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko import stores
from bunko.errors import BunkoError, LibraryDamaged, LibraryError, LibraryTooNew, SettingsError, SourceError
from bunko.library.library import Library
from bunko.library.memos import MEMOS_TOOL, import_memos
from bunko.library.moving.backup import FORMAT_VERSION, Restored, read_backup, restore_backup, write_backup
from bunko.library.moving.move import COPY_STEP, Mover
from bunko.library.open import open_library
from bunko.library.opening.load_settings import load_library_settings
from bunko.library.opening.paths import locate_library
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.types import Tool
from bunko.types.access import AuditEntry, Rights, Token
from bunko.types.records import DomainRule
from tests.library.full_library import answers, digests, make_library, place
from tests.stores.test_old_libraries import SCHEMAS, STORED

SETTINGS = """# mine
[search]
top_k = 7

[embedding]
openai_api_key = "sk-geheim"  # not for others

[index]
kind = "embedded"

[storage]
kind = "sqlite"
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library with rows in every table."""
    make_library(tmp_path / "library", tmp_path / "docs")
    return tmp_path / "library"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of such a library."""
    folder = tmp_path_factory.mktemp("backed-up")
    make_library(folder / "library", folder / "docs")
    back_up(folder / "library", folder / "backup.zip")
    return folder / "backup.zip"


def open_folder(folder: Path) -> Library:
    return open_library(place(folder), environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"})


def back_up(folder: Path, path: Path, observer: Observer = NO_OBSERVER) -> int:
    with open_library(place(folder), environ={}, read_only=True) as library:
        return write_backup(library, place(folder), path, observer)[1]


def restore(path: Path, folder: Path, observer: Observer = NO_OBSERVER, *, with_settings: bool = False) -> Restored:
    loaded = load_library_settings(place(folder), environ={})
    return restore_backup(path, place(folder), loaded, observer, with_settings=with_settings)


class Killed(BaseException):
    """Ends a command as Ctrl-C does."""


def kill_at(step: str) -> Observer:
    def kill(name: str, done: int, total: int) -> None:
        if name == step and done > 0.4 * total:
            raise Killed

    return Observer(on_step=kill)


def test_everything_is_the_same_in_an_empty_place(folder: Path, tmp_path: Path) -> None:
    (folder / "bunko.toml").write_text(SETTINGS)
    with open_folder(folder) as library:
        before, found = digests(library.store), answers(library)
        values, usage, ids = library.store.rows.values(), library.store.vectors.usage(), library.store.rows.last_ids()
        library_id, notes = library.store.id, library.resolve_tool("notes").id
    rows = back_up(folder, tmp_path / "backup.zip")
    assert stat.S_IMODE((tmp_path / "backup.zip").stat().st_mode) == 0o600
    restored = restore(tmp_path / "backup.zip", tmp_path / "new" / "place")
    assert restored.rows == rows == sum(digest.rows for digest in before.values())
    assert set(restored.tools) == {"notes", "pages"}
    with open_folder(tmp_path / "new" / "place") as library:
        assert digests(library.store) == before
        # The index is built again.
        assert library.store.rows.values() == {key: values[key] for key in values if key != f"derived {notes}"}
        assert (library.store.rows.last_ids(), library.store.id) == (ids, library_id)
        assert library.store.vectors.usage() == usage
        assert answers(library) == found
        assert library.store.check() == ""
        assert library.store.tools.put(Tool("next")).id == ids["tools"] + 1
    for used in (folder, tmp_path / "new" / "place", tmp_path):
        assert not list(used.glob(".bunko-*")), "temporary files are gone"


def test_a_backup_is_opened_by_other_programs_and_its_library_by_bunko(
    file: Path, folder: Path, tmp_path: Path
) -> None:
    with open_folder(folder) as library:
        found = answers(library)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        archive.extract("library.db", tmp_path / "unzipped")
    with open_library(locate_library(database=tmp_path / "unzipped" / "library.db", environ={}), environ={}) as library:
        assert answers(library) == found


def test_settings_come_along_without_secrets_and_without_the_old_place(folder: Path, tmp_path: Path) -> None:
    (folder / "bunko.toml").write_text(SETTINGS)
    back_up(folder, tmp_path / "backup.zip")
    with zipfile.ZipFile(tmp_path / "backup.zip") as archive:
        kept = archive.read("bunko.toml").decode()
        assert b"geheim" not in b"".join(map(archive.read, archive.namelist()))
    assert kept == SETTINGS.replace('openai_api_key = "sk-geheim"  # not for others\n', "")
    settings = restore(tmp_path / "backup.zip", tmp_path / "new", with_settings=True).settings
    assert settings.path == tmp_path / "new" / "bunko.toml"
    assert settings.path.read_text().startswith("# mine\n[search]\ntop_k = 7\n")
    assert "kind" not in settings.path.read_text()
    assert settings.left_out == ()
    # Settings that are there already say what this machine needs.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.yaml").write_text("search:\n  top_k: 2\n")
    for with_settings, name in ((False, "other"), (True, "another")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "config.yaml").write_text("search:\n  top_k: 2\n")
        settings = restore(tmp_path / "backup.zip", tmp_path / name, with_settings=with_settings).settings
        assert (settings.path, settings.replaced_by) == (None, tmp_path / name / "config.yaml")
    assert sorted(path.suffix for path in (tmp_path / "other").iterdir() if path.name.startswith(("b", "c"))) == [
        ".yaml"
    ]


STRANGE_SETTINGS = """
[search]
top_k = 7

[chunking]
size = 5
overlap = 5000

[embedding]
provider = "openai"
openai_base_url = "https://collect.example/v1"
openai_api_key_file = "~/.config/openai"

[serve]
host = "0.0.0.0"
allowed_hosts = [
  "collect.example",
]

[sign_in]
url = "https://collect.example"

[safety]
url_check = true

[storage]
bm25_persist_dir = "/tmp/elsewhere"
chromadb_persist_dir = "/tmp/elsewhere"

[scanner]
respect_gitignore = false
"""


def test_a_backup_of_somebody_else_sets_only_what_a_documents_folder_may(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as backup:
        library = backup.read("library.db")
    strange = archive(tmp_path / "strange.zip", {"library.db": library, "bunko.toml": STRANGE_SETTINGS.encode()})
    settings = restore(strange, tmp_path / "new").settings
    assert settings.path == tmp_path / "new" / "bunko.toml"
    assert tomllib.loads(settings.path.read_text()) == {"search": {"top_k": 7}}
    assert settings.left_out == (
        "chunking.size", "chunking.overlap", "embedding.provider", "embedding.openai_base_url",
        "embedding.openai_api_key_file", "serve.host", "serve.allowed_hosts", "sign_in.url", "safety.url_check",
        "scanner.respect_gitignore",
    )  # fmt: skip
    # The user's own settings are not replaced by those of a backup.
    own = tmp_path / "config" / "bunko" / "bunko.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[safety]\nurl_check = true\n")
    settings = restore(strange, tmp_path / "second").settings
    assert (settings.path, settings.replaced_by) == (None, own)
    assert {"search.top_k", "serve.host"} <= set(settings.left_out)
    assert not (tmp_path / "second" / "bunko.toml").exists()
    # The backup's owner asks for all, and still gets no folder of the old place.
    settings = restore(strange, tmp_path / "third", with_settings=True).settings
    assert settings.path == tmp_path / "third" / "bunko.toml"
    sections = tomllib.loads(settings.path.read_text())
    assert sections["serve"] == {"host": "0.0.0.0", "allowed_hosts": ["collect.example"]}
    assert "persist_dir" not in settings.path.read_text()


@pytest.mark.parametrize("text", ["not = = toml", "a: *b", "[search]\ntop_k = 9999999\n", "search = 5"])
def test_a_config_file_of_somebody_else_that_is_wrong_is_left_out(text: str, file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as backup:
        files = {"library.db": backup.read("library.db"), "bunko.toml": text.encode()}
    assert restore(archive(tmp_path / "strange.zip", files), tmp_path / "new").settings.path is None
    assert not (tmp_path / "new" / "bunko.toml").exists()
    open_folder(tmp_path / "new").close()


def test_a_file_of_another_program_is_not_replaced_by_settings(folder: Path, tmp_path: Path) -> None:
    (folder / "config.yaml").write_text("search:\n  top_k: 7\n")
    back_up(folder, tmp_path / "backup.zip")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "config.yaml").write_text("theme: dark\n")
    for with_settings in (False, True):
        (tmp_path / "new" / "library.db").unlink(missing_ok=True)
        settings = restore(tmp_path / "backup.zip", tmp_path / "new", with_settings=with_settings).settings
        assert (settings.path, settings.replaced_by) == (None, tmp_path / "new" / "config.yaml")
    assert (tmp_path / "new" / "config.yaml").read_text() == "theme: dark\n"


def test_settings_whose_secrets_cannot_be_left_out_are_not_backed_up_by_mistake(folder: Path, tmp_path: Path) -> None:
    (folder / "bunko.toml").write_text('embedding = { openai_api_key = "sk-geheim" }\n')
    with pytest.raises(SettingsError, match="cannot be changed automatically") as raised:
        back_up(folder, tmp_path / "backup.zip")
    assert "geheim" not in str(raised.value) + raised.value.hint
    assert not (tmp_path / "backup.zip").exists()


def test_memos_from_standard_input_come_along_and_their_tool_finds_them(folder: Path, tmp_path: Path) -> None:
    with open_folder(folder) as library:
        import_memos(library, io.BytesIO("## 2025-01-02 港\n\n港まで歩いた。\n".encode()))
    back_up(folder, tmp_path / "backup.zip")
    restore(tmp_path / "backup.zip", tmp_path / "new")
    with open_folder(tmp_path / "new") as library:
        tool = library.resolve_tool(MEMOS_TOOL)
        assert Path(tool.source) == tmp_path / "new" / "stdin" / "stdin.md"
        import_memos(library, io.BytesIO("## 2025-01-02 港\n\n港まで歩いた。\n\n## 2025-01-03 城\n\n城。\n".encode()))
        assert library.stats.totals(tool.id).documents == 2


@pytest.fixture(scope="module")
def memos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with memos from standard input."""
    folder = tmp_path_factory.mktemp("memos")
    with open_folder(folder / "library") as library:
        import_memos(library, io.BytesIO("## 2025-01-02 港\n\n港まで歩いた。\n".encode()))
    back_up(folder / "library", folder / "memos.zip")
    return folder / "memos.zip"


def make_memo_link(new: Path, outside: Path) -> Path:
    (new / "stdin").mkdir(parents=True)
    (new / "stdin" / "stdin.md").symlink_to(outside / "precious.md")
    return new / "stdin" / "stdin.md"


def make_folder_link(new: Path, outside: Path) -> Path:
    new.mkdir()
    (new / "stdin").symlink_to(outside)
    return new / "stdin"


def make_newer_memo(new: Path, _: Path) -> Path:
    (new / "stdin").mkdir(parents=True)
    (new / "stdin" / "stdin.md").write_text("## 2026-01-01 newer\n")
    return new / "stdin" / "stdin.md"


def make_memo_of_another_format(new: Path, _: Path) -> Path:
    (new / "stdin").mkdir(parents=True)
    (new / "stdin" / "stdin.txt").write_text("2026-01-01 newer\n")
    return new / "stdin" / "stdin.txt"


def make_pipe(new: Path, _: Path) -> Path:
    (new / "stdin").mkdir(parents=True)
    os.mkfifo(new / "stdin" / "stdin.md")
    return new / "stdin" / "stdin.md"


def make_folder(new: Path, _: Path) -> Path:
    (new / "stdin" / "stdin.md").mkdir(parents=True)
    return new / "stdin" / "stdin.md"


def make_file(new: Path, _: Path) -> Path:
    new.mkdir()
    (new / "stdin").write_text("mine")
    return new / "stdin"


@pytest.mark.parametrize(
    "make",
    [make_memo_link, make_folder_link, make_newer_memo, make_memo_of_another_format, make_pipe, make_folder, make_file],
)
def test_what_is_in_the_place_of_memos_is_neither_replaced_nor_followed(
    make: Callable[[Path, Path], Path], memos: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.md").write_text("precious")
    taken = make(tmp_path / "new", outside)
    before = sorted(tmp_path.rglob("*"))
    content = taken.read_bytes() if taken.is_file() else b""
    with pytest.raises(LibraryError, match="is there already, and was not changed") as raised:
        restore(memos, tmp_path / "new")
    assert str(taken) in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before
    assert (outside / "precious.md").read_text() == "precious"
    assert content == (taken.read_bytes() if taken.is_file() else b"")


def test_restored_memos_are_read_by_their_owner_alone(memos: Path, tmp_path: Path) -> None:
    restore(memos, tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new" / "stdin" / "stdin.md").stat().st_mode) == 0o600


@pytest.mark.parametrize("step", ["_restore_memos", "copy_library"])
def test_a_restore_that_is_interrupted_after_it_wrote_a_file_is_unfinished(
    step: str, memos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise Killed

    with zipfile.ZipFile(memos) as backup:
        files = {name: backup.read(name) for name in ("library.db", "stdin/stdin.md")}
    path = archive(tmp_path / "backup.zip", files | {"bunko.toml": b"[search]\ntop_k = 7\n"})
    with monkeypatch.context() as patch:
        patch.setattr(f"bunko.library.moving.backup.{step}", kill)
        with pytest.raises(Killed):
            restore(path, tmp_path / "new")
    with pytest.raises(LibraryError, match="unfinished copy"):
        open_folder(tmp_path / "new")
    assert restore(path, tmp_path / "new").settings.path == tmp_path / "new" / "bunko.toml"
    assert (tmp_path / "new" / "stdin" / "stdin.md").read_bytes() == files["stdin/stdin.md"]
    open_folder(tmp_path / "new").close()


def test_what_is_imported_meanwhile_is_not_in_the_backup(folder: Path, tmp_path: Path) -> None:
    with open_folder(folder) as library:
        before = digests(library.store)

    def change(step: str, done: int, total: int) -> None:
        if step == COPY_STEP and not (tmp_path / "docs" / "late.md").exists():
            (tmp_path / "docs" / "late.md").write_text("# Late\n\nWritten while the backup was made.\n")
            (tmp_path / "docs" / "setup.md").unlink()
            with open_folder(folder) as other:
                other.import_("notes")
                other.rename_tool("pages", "web-pages")

    back_up(folder, tmp_path / "backup.zip", Observer(on_step=change))
    with open_folder(folder) as library:
        assert digests(library.store) != before
    restore(tmp_path / "backup.zip", tmp_path / "new")
    with open_folder(tmp_path / "new") as library:
        assert digests(library.store) == before


@pytest.mark.parametrize("number", SCHEMAS)
def test_a_backup_of_an_older_schema_is_restored_with_the_tables_of_this_one(number: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "old.zip", {"library.db": (STORED / f"schema-{number}.db").read_bytes()})
    restore(path, tmp_path / "new")
    with open_folder(tmp_path / "new") as library:
        assert library.store.check() == ""
        assert library.search("予算の会議", mode="bm25", refresh=False).hits[0].uri == "会議/2025-04-10.md"


@pytest.mark.parametrize("step", ["Copying", "Verifying", "Compressing"])
def test_a_backup_that_is_interrupted_leaves_no_file(step: str, folder: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(Killed):
        back_up(folder, tmp_path / "backups.zip", kill_at(step))
    assert sorted(path.name for path in folder.iterdir() if "db-" not in path.name) == before
    assert not list(tmp_path.glob("*.zip"))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("step", ["Copying", "Verifying"])
def test_a_restore_that_is_interrupted_is_not_opened_and_the_next_one_continues(
    step: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.stores.sql.rows.PAGE_ROWS", 3)
    with open_folder(file.parent / "library") as library:
        before = digests(library.store)
    with pytest.raises(Killed):
        restore(file, tmp_path / "new", kill_at(step))
    with pytest.raises(LibraryError, match="unfinished copy") as raised:
        open_folder(tmp_path / "new")
    assert "bunko restore" in raised.value.hint
    make_library(tmp_path / "other", tmp_path / "docs")
    back_up(tmp_path / "other", tmp_path / "other.zip")
    with pytest.raises(LibraryError, match="holds a library"):
        restore(tmp_path / "other.zip", tmp_path / "new")
    restore(file, tmp_path / "new")
    with open_folder(tmp_path / "new") as library:
        assert digests(library.store) == before


def test_a_restore_that_is_interrupted_before_it_copies_leaves_nothing(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        restore(file, tmp_path / "new", kill_at("Checking"))
    assert not (tmp_path / "new").exists()


def test_a_place_that_holds_a_library_is_refused_and_not_changed(file: Path, tmp_path: Path) -> None:
    make_library(tmp_path / "other", tmp_path / "docs")
    restore(file, tmp_path / "restored")
    for taken in (file.parent / "library", tmp_path / "other", tmp_path / "restored"):
        content = (taken / "library.db").read_bytes()
        with pytest.raises(LibraryError, match="holds a library, which was not changed") as raised:
            restore(file, taken)
        assert "--library" in raised.value.hint
        assert (taken / "library.db").read_bytes() == content
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "library.db").write_text("not a database, and long enough to be looked at " * 20)
    with pytest.raises(LibraryDamaged):
        restore(file, tmp_path / "text")
    assert (tmp_path / "text" / "library.db").read_text().startswith("not a database")
    stores.build("sqlite", tmp_path / "empty" / "library.db").close()
    assert restore(file, tmp_path / "empty").rows


def add_token(store: Store) -> None:
    store.tokens.add(Token("alice", "0f" * 32, Rights(("notes",)), "2026-01-01T00:00:00"))


def add_audit_entry(store: Store) -> None:
    store.audit.begin(AuditEntry("2026-01-01T00:00:00", "alice", "cli", "tool rm", ("notes",)), limit=10)


def add_domain(store: Store) -> None:
    store.domains.put(DomainRule("example.com", True, "U1", "2026-01-01T00:00:00"))


@pytest.mark.parametrize("add", [add_token, add_audit_entry, add_domain])
def test_a_library_without_tools_is_not_replaced(add: Callable[[Store], None], file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with closing(stores.build("sqlite", tmp_path / "other" / "library.db")) as store:
        add(store)
        before = digests(store)
    with pytest.raises(LibraryError, match="holds a library, which was not changed"):
        restore(file, tmp_path / "other")
    with open_folder(file.parent / "library") as library:
        located = place(file.parent / "library")
        mover = Mover(library, located, load_library_settings(located, environ={}))
        with pytest.raises(LibraryError, match="holds another library"):
            mover.plan(f"sqlite:{tmp_path / 'other' / 'library.db'}")
    with closing(stores.build("sqlite", tmp_path / "other" / "library.db", read_only=True)) as store:
        assert digests(store) == before


def test_a_link_to_nothing_is_no_place(file: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "library.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(LibraryError, match="is a link to a file that does not exist"):
        restore(file, tmp_path / "new")
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_never_ends_is_no_backup(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "endless")
    with pytest.raises(SourceError, match="is not a file"):
        read_backup(tmp_path / "endless")
    with pytest.raises(SourceError, match="is not a file"):
        restore(tmp_path / "endless", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_there_is_not_overwritten(file: Path, tmp_path: Path) -> None:
    folder, content = file.parent / "library", file.read_bytes()
    for taken in (file, tmp_path):
        with pytest.raises(SourceError, match="exists already"):
            back_up(folder, taken)
    assert file.read_bytes() == content
    (tmp_path / "plain").touch()
    for impossible in (tmp_path / "missing" / "backup.zip", tmp_path / "plain" / "backup.zip"):
        with pytest.raises(SourceError, match="cannot be written"):
            back_up(folder, impossible)


def test_a_file_that_appears_meanwhile_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    def write(step: str, done: int, total: int) -> None:
        (tmp_path / "backup.zip").write_text("another backup")

    with pytest.raises(SourceError, match="exists already"):
        back_up(folder, tmp_path / "backup.zip", Observer(on_step=write))
    assert (tmp_path / "backup.zip").read_text() == "another backup"
    assert not list(tmp_path.glob(".*"))


def archive(path: Path, files: dict[str, bytes], **manifest: Any) -> Path:
    """Write a backup with right checksums."""
    fields = {"format": FORMAT_VERSION, "bunko": "0.1.0", "made_at": "2026-01-01T00:00:00+00:00", "memos": ""}
    fields |= {"sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}} | manifest
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, data in (files | {"backup.json": json.dumps(fields).encode()}).items():
            written.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


Change = Callable[[bytes, Path], Path]  # the library of a backup, and where to write an evil one


def with_file(name: str) -> Change:
    return lambda library, path: archive(path, {"library.db": library, name: b"evil"})


def with_link(library: bytes, path: Path) -> Path:
    entry = zipfile.ZipInfo("library.db")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    digest = hashlib.sha256(b"/etc/passwd").hexdigest()
    fields = {"format": 1, "bunko": "x", "made_at": "", "memos": "", "sha256": {"library.db": digest}}
    with zipfile.ZipFile(path, "w") as written:
        written.writestr(entry, "/etc/passwd")
        written.writestr("backup.json", json.dumps(fields))
    return path


def with_other_compression(library: bytes, path: Path) -> Path:
    with zipfile.ZipFile(archive(path, {"library.db": library})) as old:
        manifest = old.read("backup.json")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as written:
        written.writestr("library.db", library)
        written.writestr("backup.json", manifest)
    return path


def with_trigger(library: bytes, path: Path) -> Path:
    database = path.with_name("evil.db")
    database.write_bytes(library)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON tools BEGIN DELETE FROM tools; END")
        connection.commit()
    changed = database.read_bytes()
    database.unlink()
    return archive(path, {"library.db": changed})


def with_twice(library: bytes, path: Path) -> Path:
    archive(path, {"library.db": library})
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as written:
        written.writestr("library.db", b"another one")
    return path


def written(data: bytes) -> Change:
    def write(_: bytes, path: Path) -> Path:
        path.write_bytes(data)
        return path

    return write


HOSTILE: dict[str, Change] = {
    **{f"a file called {name}": with_file(name) for name in (
        "../evil", "/tmp/evil", "..\\evil", "C:\\evil", "stdin/../../evil", "stdin/evil.md", "stdin/", "evil\0.db",
        ".env", "library.db-wal", "library.db-journal", "library.db.folder-id", "mcp.json",
    )},
    "a link": with_link,
    "another compression": with_other_compression,
    "a trigger": with_trigger,
    "the library twice": with_twice,
    "a bomb": lambda library, path: archive(path, {"library.db": library, "bunko.toml": bytes(200_000_000)}),
    "no library": lambda _, path: archive(path, {"bunko.toml": b""}),
    "another file as the library": lambda _, path: archive(path, {"library.db": b"text" * 5000}),
    "wrong checksum": lambda library, path: archive(path, {"library.db": library}, sha256={"library.db": "0" * 64}),
    "no checksum": lambda library, path: archive(path, {"library.db": library}, sha256={}),
    "checksums as a list": lambda library, path: archive(path, {"library.db": library}, sha256=["library.db"]),
    "format as a text": lambda library, path: archive(path, {"library.db": library}, format="1"),
    "a field too many": lambda library, path: archive(path, {"library.db": library}, evil=1),
    "a number as a text": lambda library, path: archive(path, {"library.db": library}, memos=5),
    "an empty file": written(b""),
    "no archive": written(b"PK\x03\x04 and nothing else"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_before_anything_is_written(
    name: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(file) as backup:
        evil = HOSTILE[name](backup.read("library.db"), tmp_path / "evil.zip")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LibraryDamaged) as raised:
        restore(evil, tmp_path / "sub" / "new")
    assert raised.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_newer_format_and_a_newer_library_are_refused(file: Path, tmp_path: Path) -> None:
    newer = archive(tmp_path / "newer.zip", {"library.db": b""}, format=2, more="fields")
    with pytest.raises(LibraryTooNew, match="backup format 2, this one reads 1"):
        restore(newer, tmp_path / "new")
    with zipfile.ZipFile(file) as backup:
        backup.extract("library.db", tmp_path)
    with closing(sqlite3.connect(tmp_path / "library.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    newer = archive(tmp_path / "newer.zip", {"library.db": (tmp_path / "library.db").read_bytes()})
    with pytest.raises(LibraryTooNew, match="newer bunko"):
        restore(newer, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_with_a_changed_or_missing_byte_is_told_or_means_the_same(file: Path, tmp_path: Path) -> None:
    """A byte that nothing depends on, such as a date in the archive, may be any."""
    data, chance, refused = file.read_bytes(), random.Random(7), 0
    damaged = tmp_path / "damaged.zip"
    complete = read_backup(file)
    for number in range(300):
        position = chance.randrange(len(data))
        changed = (
            data[:position]
            if number % 10 == 0
            else data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :]
        )
        damaged.write_bytes(changed)
        try:
            found = read_backup(damaged)
        except BunkoError:
            refused += 1
        else:
            assert replace(found, made_at="") == replace(complete, made_at="")
    assert refused > 280


def test_a_damaged_library_in_a_whole_file_is_refused(file: Path, tmp_path: Path) -> None:
    """As when a disk had changed a page before the backup was made by other means."""
    with zipfile.ZipFile(file) as backup:
        library = bytearray(backup.read("library.db"))
    library[len(library) // 2 : len(library) // 2 + 4096] = bytes(4096)
    with pytest.raises(LibraryDamaged):
        restore(archive(tmp_path / "evil.zip", {"library.db": bytes(library)}), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_library_in_memory_has_no_backup_and_is_no_place(file: Path, tmp_path: Path) -> None:
    environ = {"BUNKO_STORAGE_KIND": "memory"}
    with open_library(place(tmp_path / "m"), environ=environ) as library, pytest.raises(SettingsError):
        write_backup(library, place(tmp_path / "m"), tmp_path / "m.zip")
    with pytest.raises(SettingsError):
        restore_backup(file, place(tmp_path / "m"), load_library_settings(place(tmp_path / "m"), environ=environ))
