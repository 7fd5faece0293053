"""Write a library to one file, and restore it from there.

A backup is a ZIP file, so that other programs can open it too:

    library.db        the library as a file of SQLite, also if it is on a server
    bunko.toml        the settings in the folder of the library, if there are any, without secrets
    stdin/stdin.md    the memos from standard input, if there are any
    backup.json       what wrote it and when, and the SHA-256 of each other file

It may be damaged or malicious: only files of these names are read from it, within limits, and all of it is checked
before anything is written to the new place.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from bunko import stores
from bunko.errors import (
    DiskFull,
    LibraryDamaged,
    LibraryError,
    LibraryReadOnly,
    LibraryTooNew,
    SettingsError,
    SourceError,
)
from bunko.library.library import Library
from bunko.library.memos import INPUT_SUFFIXES, input_folder
from bunko.library.moving.move import PATH_KEYS, SETTINGS_KEYS, copy_library, exclude_writers, holds_rows
from bunko.library.moving.settings_file import find_config, read_text
from bunko.library.opening.load_settings import check_database_flag, paths_from_settings, store_address
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools import catalog
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.temporary_files import TemporaryFolder, replace_file, write_text_file
from bunko.runtime.timing import now
from bunko.settings import CONFIG_NAMES, LoadedSettings
from bunko.settings.edit import edit_config
from bunko.settings.files import find_configs, read_config
from bunko.settings.load import folder_settings
from bunko.settings.providers import all_settings
from bunko.text.labels import clean_label
from bunko.types.records import StoreAddress
from bunko.version import __version__

FORMAT_VERSION = 1
_LIBRARY, _MANIFEST = "library.db", "backup.json"
_MEMOS = tuple(f"stdin/stdin{suffix}" for suffix in INPUT_SUFFIXES)
_NAMES = {_LIBRARY, *CONFIG_NAMES, *_MEMOS}
_MAX_MANIFEST_BYTES = 100_000
# Texts compress to a third or a tenth. A file that grows by more than this factor is made to fill a disk.
_MAX_GROWTH, _MIN_SIZE_LIMIT = 200, 100_000_000
_BLOCK_BYTES = 1 << 20
_FORMAT_ERRORS = (
    AttributeError, BadZipFile, EOFError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError,
    zlib.error,
)  # fmt: skip
_COMPRESS_STEP, _CHECK_STEP = "Compressing", "Checking"
# What settings say about the old place: the same index there may still be that of the old library.
_PLACE_KEYS = (
    *SETTINGS_KEYS, *PATH_KEYS, "index.kind", "storage.bm25_persist_dir", "storage.chromadb_persist_dir",
)  # fmt: skip
_MAX_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says about itself."""

    format: int
    bunko: str  # the version that wrote it
    made_at: str
    memos: str  # the path of the memos from standard input in the old place
    sha256: Mapping[str, str]  # by name of a file

    @property
    def has_settings(self) -> bool:
        """Whether it has a config file."""
        return not self.sha256.keys().isdisjoint(CONFIG_NAMES)


@dataclass(frozen=True, slots=True)
class RestoredSettings:
    """What becomes of the config file of a backup."""

    path: Path | None = None  # of the file with what is restored of it
    text: str = ""
    left_out: tuple[str, ...] = ()  # settings that can be restored, but only if they are asked for
    replaced_by: Path | None = None  # the file that is used instead
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore has done."""

    backup: Backup
    place: str
    tools: list[str]
    tokens: list[str]  # by name; those that were revoked since the backup was made are valid again
    rows: int
    settings: RestoredSettings


def write_backup(
    library: Library, located: LibraryPaths, path: Path, observer: Observer = NO_OBSERVER
) -> tuple[Backup, int]:
    """Write the state that a library has now to a new file; return what that says, and how many rows it has.

    `located` is the library as flags and the environment name it.
    """
    store = library.store
    if not store.is_persistent:
        raise SettingsError("A library in memory ends with its process", hint="Set storage.kind to sqlite.")
    if os.path.lexists(path):
        raise _taken_error(path)
    with _work_folder(library.paths.folder) as folder:
        _check_space(folder, store.size())
        made_at = now()
        with store.read_transaction(), closing(stores.build("sqlite", folder / _LIBRARY)) as copy:
            rows = copy_library(store, copy, observer, is_finished=True)
        if copy.files.paths() != [folder / _LIBRARY]:  # SQLite could not write its log into the file
            raise _disk_full_error(folder)
        reach_failpoint("backup.copied")
        files = {_LIBRARY: folder / _LIBRARY, **_settings_without_secrets(located, folder)}
        memos = [file for name in _MEMOS if (file := input_folder(library.paths) / Path(name).name).is_file()]
        files |= {f"stdin/{file.name}": file for file in memos}
        try:
            with (
                replace_file(path, mode=0o600, is_new=True) as output,
                ZipFile(output, "w", ZIP_DEFLATED, compresslevel=1) as archive,
            ):
                digests = _write_files(archive, files, observer)
                backup = Backup(FORMAT_VERSION, __version__, made_at, str(memos[0].resolve()) if memos else "", digests)
                archive.writestr(_MANIFEST, json.dumps(asdict(backup)))
                reach_failpoint("backup.written")
        except FileExistsError as error:  # since the command began
            raise _taken_error(path) from error
        except OSError as error:
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else SourceError
            raise kind(
                f"{path} cannot be written: {error.strerror or error}",
                hint="Name a file in a folder that you may write to, on a disk with enough space.",
            ) from error
    return backup, rows


def _taken_error(path: Path) -> SourceError:
    return SourceError(f"{path} exists already", hint="Name another file, or delete that one first.")


def _write_files(archive: ZipFile, files: Mapping[str, Path], observer: Observer) -> dict[str, str]:
    """Write files to an archive, and return their digests."""
    total, done, digests = sum(path.stat().st_size for path in files.values()), 0, dict[str, str]()
    for name, path in files.items():
        digest = sha256()
        with open(path, "rb") as source, archive.open(name, "w", force_zip64=True) as member:
            while block := source.read(_BLOCK_BYTES):
                digest.update(block)
                member.write(block)
                done += len(block)
                observer.on_step(_COMPRESS_STEP, done, total)
        digests[name] = digest.hexdigest()
    return digests


def _settings_without_secrets(located: LibraryPaths, folder: Path) -> dict[str, Path]:
    """Return the name and a copy of the config file of a library, if it has one."""
    config = find_config(located.folder)
    if config is None:
        return {}
    secrets = [key for key, setting in all_settings().items() if setting.secret]
    path = folder / config.path.name
    write_text_file(path, _remove_settings(config.path, secrets), mode=0o600)
    return {path.name: path}


def _remove_settings(path: Path, keys: Sequence[str]) -> str:
    """Return the text of a config file without some settings."""
    table = read_config(path)
    sections = {key: table.get(key.partition(".")[0]) for key in keys}
    present = [
        key for key, section in sections.items() if isinstance(section, dict) and key.partition(".")[2] in section
    ]
    return edit_config(path, read_text(path), dict.fromkeys(present))


def read_backup(path: Path, folder: Path | None = None, observer: Observer = NO_OBSERVER) -> Backup:
    """Check all of a backup, write its files to a folder if one is given, and return what it says."""
    with _translate_errors(path, folder), _open_regular_file(path) as file, ZipFile(file) as archive:
        if any(member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for member in archive.infolist()):
            raise BadZipFile
        backup = _parse_manifest(archive, path)
        members = {member.filename: member for member in archive.infolist() if member.filename != _MANIFEST}
        if _LIBRARY not in members or members.keys() != backup.sha256.keys() or not members.keys() <= _NAMES:
            raise BadZipFile
        total, done = sum(member.file_size for member in members.values()), 0
        if total > max(_MIN_SIZE_LIMIT, _MAX_GROWTH * os.fstat(file.fileno()).st_size):
            raise BadZipFile
        if folder is not None:
            _check_space(folder, total)
            (folder / "stdin").mkdir()
        for name, member in members.items():
            digest = sha256()
            target = nullcontext() if folder is None else open(folder / name, "xb")  # noqa: SIM115
            with archive.open(member) as source, target as output:
                while block := source.read(_BLOCK_BYTES):
                    digest.update(block)
                    if output is not None:
                        output.write(block)
                    done += len(block)
                    observer.on_step(_CHECK_STEP, done, total)
            if digest.hexdigest() != backup.sha256[name]:
                raise BadZipFile
    return backup


@contextmanager
def _open_regular_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, but nothing of which opening or reading may never end."""

    def open_at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SourceError(f"{path} is not a file", hint="Name the file that bunko backup wrote.")
        yield file


def _parse_manifest(archive: ZipFile, path: Path) -> Backup:
    with archive.open(_MANIFEST) as file:
        fields = json.loads(file.read(_MAX_MANIFEST_BYTES))
    if fields["format"] > FORMAT_VERSION:
        raise LibraryTooNew(
            f"{path} was written by a newer bunko (backup format {fields['format']}, this one reads {FORMAT_VERSION})",
            hint="Upgrade bunko (pip install -U bunko).",
        )
    backup = Backup(**fields)
    texts = (backup.bunko, backup.made_at, backup.memos, *backup.sha256, *backup.sha256.values())
    if not all(isinstance(text, str) for text in texts):
        raise BadZipFile
    return backup


def restore_backup(
    path: Path,
    located: LibraryPaths,
    loaded: LoadedSettings,
    observer: Observer = NO_OBSERVER,
    *,
    with_settings: bool = False,
) -> Restored:
    """Make an empty place the library of a backup; the same restore continues one that was interrupted.

    `located` is the place as flags and the environment name it, with the settings that apply there. A backup may come
    from somebody else: unless it is restored `with_settings`, it may set only what a documents folder may.
    """
    check_database_flag(located, loaded)
    paths = paths_from_settings(located, loaded)
    address = store_address(paths, loaded.settings)
    if address.kind == "memory":
        raise SettingsError("A library in memory ends with its process", hint="Set storage.kind to sqlite.")
    with _work_folder(paths.folder) as folder:
        backup = read_backup(path, folder, observer)
        with closing(_open_copy(folder / _LIBRARY, path)) as source:
            _check_place(address, source.id)
            _check_memos(folder, paths)
            tokens = [token.name for token in source.tokens.all()]
            settings = _plan_settings(folder, located, loaded, with_settings=with_settings)
            with closing(stores.build(*address)) as target, exclude_writers(target, observer):
                _check_place(address, source.id)  # it may have changed since
                target.rows.begin_copy(source.id)  # what is written from here on belongs to an unfinished copy
                try:
                    _write_settings(settings)
                    _restore_memos(folder, paths, source, backup)
                except OSError as error:
                    raise _unwritable_error(paths.folder, error) from error
                rows = copy_library(source, target, observer, is_finished=True)
            tools = [tool.name for tool in catalog.tools(source)]
            return Restored(backup, target.location, tools, tokens, rows, settings)


def _open_copy(copy: Path, path: Path) -> Store:
    """Open the library of a backup with the checks for a stranger's file; migrate an older one."""
    with ExitStack() as opened:
        try:
            store = opened.enter_context(closing(stores.build("sqlite", copy)))
            problems = store.check()
        except LibraryDamaged as error:  # it names the copy
            raise _damaged_error(path) from error
        if problems:
            raise _damaged_error(path)
        opened.pop_all()
        return store


def _check_place(address: StoreAddress, library_id: str) -> None:
    """Raise an error if a place holds a library, unless it is an unfinished copy of the same one."""
    if address.server is None and address.location.is_symlink() and not address.location.exists():
        raise LibraryError(
            f"{address.location} is a link to a file that does not exist",
            hint="Remove the link, or name an empty folder with --library.",
        )
    if not stores.exists(*address):
        return
    try:
        with closing(stores.build(*address, read_only=True)) as store:
            if store.rows.is_unfinished():
                is_free = store.rows.copy_of() == library_id
            else:
                is_free = not holds_rows(store)
    except LibraryReadOnly:  # its tables are older than those of this bunko
        is_free = False
    if not is_free:
        raise LibraryError(
            f"{stores.display_location(*address)} holds a library, which was not changed",
            hint="Name an empty folder with --library, or another schema with storage.schema.",
        )


def _plan_settings(
    folder: Path, located: LibraryPaths, loaded: LoadedSettings, *, with_settings: bool
) -> RestoredSettings:
    """Return what of the config file of a backup is written to a library folder that has none."""
    config = next(iter(find_configs([folder], lambda _: not with_settings, [])), None)
    if config is None or located.is_file_path:
        return RestoredSettings()
    path, accepted, others = located.folder / config.path.name, dict[str, object](), list[str]()
    if with_settings:
        text = _remove_settings(config.path, _PLACE_KEYS)
    else:
        accepted, others = folder_settings(config)
        text = edit_config(config.path, "", accepted)
    left_out = tuple(clean_label(name, _MAX_NAME_CHARS) for name in others if name not in _PLACE_KEYS)
    is_there = os.path.lexists(path)
    if is_there and stat.S_ISREG(path.lstat().st_mode) and path.read_bytes() == text.encode():
        return RestoredSettings(path, text, left_out, is_there=True)  # by a restore that was interrupted
    if own := find_config(located.folder):
        return RestoredSettings(replaced_by=own.path)
    if is_there:
        return RestoredSettings(replaced_by=path)
    if loaded.config_file is not None and not with_settings:  # one file counts: the user's
        return RestoredSettings(left_out=(*accepted, *left_out), replaced_by=loaded.config_file)
    return RestoredSettings(path if text else None, text, left_out)


def _write_settings(settings: RestoredSettings) -> None:
    if settings.path is not None and not settings.is_there:
        write_text_file(settings.path, settings.text, is_new=True)


def _check_memos(folder: Path, paths: LibraryPaths) -> None:
    """Raise an error if memos in the new place would be lost, or anything there leads elsewhere."""
    files, place = {file.name: file for file in (folder / "stdin").iterdir()}, input_folder(paths)
    if not files or not os.path.lexists(place):
        return
    taken = [place] if place.is_symlink() or not place.is_dir() else []
    for target in () if taken else (place / Path(name).name for name in _MEMOS):
        if os.path.lexists(target) and not _is_same_file(target, files.get(target.name)):
            taken.append(target)
    if taken:
        raise LibraryError(
            f"{taken[0]} is there already, and was not changed",
            hint="Move it away, or name an empty folder with --library.",
        )


def _is_same_file(path: Path, other: Path | None) -> bool:
    """Return whether a path is a regular file, not a link, with the content of another one."""
    is_regular = stat.S_ISREG(path.lstat().st_mode)
    return is_regular and other is not None and filecmp.cmp(path, other, shallow=False)


def _restore_memos(folder: Path, paths: LibraryPaths, source: Store, backup: Backup) -> None:
    """Write the memos from standard input to the new place, and let their tool name it."""
    for file in (folder / "stdin").iterdir():
        target = input_folder(paths) / file.name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(target):  # else it has the same content
            with open(file, "rb") as memos, replace_file(target, mode=0o600, is_new=True) as output:
                shutil.copyfileobj(memos, output)
        for tool in source.tools.all():
            if tool.source == backup.memos != str(target.resolve()):
                source.tools.put(replace(tool, source=str(target.resolve())))


@contextmanager
def _work_folder(parent: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a library, where SQLite works and there is room for another one."""
    missing = [path for path in (parent, *parent.parents) if not path.exists()]
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = TemporaryFolder(".bunko-backup-", parent)
    except OSError as error:
        raise _unwritable_error(parent, error) from error
    try:
        yield folder.path
    finally:
        folder.cleanup()
        with suppress(OSError):  # a folder that is not empty stays
            for path in missing:
                path.rmdir()


def _unwritable_error(folder: Path, error: OSError) -> LibraryReadOnly:
    return LibraryReadOnly(
        f"{folder} cannot be written: {error.strerror or error}",
        hint="Check who owns the folder, or choose another one with --library.",
    )


def _check_space(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < size:
        raise _disk_full_error(folder)


def _disk_full_error(folder: Path) -> DiskFull:
    return DiskFull(
        f"There is not enough space in {folder.parent} for another copy of the library",
        hint="Free some space, then run the same command again. Nothing was changed.",
    )


@contextmanager
def _translate_errors(path: Path, folder: Path | None) -> Iterator[None]:
    """Raise errors of reading a backup as those of the library."""
    try:
        yield
    except OSError as error:
        if folder is not None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full_error(folder) from error
        raise SourceError(
            f"{path} cannot be read: {error.strerror or error}", hint="Check the name and the permissions."
        ) from error
    # What zipfile and json raise for anything but a backup.
    except _FORMAT_ERRORS as error:
        raise _damaged_error(path) from error


def _damaged_error(path: Path) -> LibraryDamaged:
    return LibraryDamaged(
        f"{path} is damaged, or no backup", hint="Nothing was changed. Copy the file again, or use an earlier backup."
    )
