"""Documents without a date of their own have that of the commit that changed them last, in a Git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.reading.documents import ListRequest
from bunko.sources import git_dates
from bunko.sources.git_dates import committed_at, load_history

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """An empty library."""
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        yield library


def git(folder: Path, *arguments: str, day: str = "2024-05-01", clock: str = "12:00:00+0000") -> None:
    identity = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": f"{day}T{clock}", "GIT_COMMITTER_DATE": f"{day}T{clock}"}
    environ = {**identity, **when, "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environ, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three files of two days, one of which has a date of its own."""
    folder = tmp_path / "repository"
    (folder / "guide").mkdir(parents=True)
    (folder / "old.md").write_text("# Old\n\nNobody has touched this.\n", "utf-8")
    (folder / "guide/新しい.md").write_text("# Guide\n\nA first version.\n", "utf-8")
    (folder / "dated.md").write_text("---\ndate: 2020-02-02\n---\n# Dated\n\nIt says its day.\n", "utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "All", day="2024-05-01")
    (folder / "guide/新しい.md").write_text("# Guide\n\nA second version.\n", "utf-8")
    git(folder, "commit", "-qam", "Guide", day="2025-06-02")
    return folder


def dates(library: Library, tool: str) -> dict[str, str]:
    listing = library.documents.list_documents(ListRequest((tool,)))
    return {document.uri: "file" if document.is_dated_by_file else document.date for _, document in listing.documents}


def test_a_document_has_the_date_of_its_last_commit(library: Library, repository: Path) -> None:
    library.add(repository, name="repository")
    library.import_("repository")
    assert dates(library, "repository") == {
        "old.md": "2024-05-01T12:00:00+00:00", "guide/新しい.md": "2025-06-02T12:00:00+00:00",
        "dated.md": "2020-02-02",
    }  # fmt: skip


def test_a_commit_of_an_early_morning_is_of_the_day_that_its_author_had(repository: Path) -> None:
    (repository / "old.md").write_text("# Old\n\nBefore breakfast.\n", "utf-8")
    git(repository, "commit", "-qam", "Morning", day="2025-07-03", clock="07:30:00+0900")
    assert load_history(repository)["old.md"].date == "2025-07-03T07:30:00+09:00"


def test_what_git_does_not_know_has_the_time_of_its_file(library: Library, repository: Path) -> None:
    (repository / "old.md").write_text("# Old\n\nEdited, and not committed.\n", "utf-8")
    (repository / "new.md").write_text("# New\n\nNot committed.\n", "utf-8")
    library.add(repository, name="repository")
    library.import_("repository")
    found = dates(library, "repository")
    assert (found["old.md"], found["new.md"]) == ("file", "file")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "More", day="2025-07-03")
    (repository / "new.md").write_text("# New\n\nCommitted.\n", "utf-8")
    git(repository, "commit", "-qam", "Even more", day="2025-08-04")
    library.import_("repository")
    assert dates(library, "repository")["new.md"] == "2025-08-04T12:00:00+00:00"


def test_a_folder_of_a_repository_has_its_history(repository: Path) -> None:
    assert list(load_history(repository / "guide")) == ["新しい.md"]
    git(repository, "gc", "-q")
    git(repository, "pack-refs", "--all")
    git(repository, "commit", "--allow-empty", "-qm", "Packed")
    assert load_history(repository).keys() == {"old.md", "guide/新しい.md", "dated.md"}


def test_git_is_told_where_to_look_no_further_up(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", os.pathsep.join(("/elsewhere", str(repository))))
    assert load_history(repository / "guide") == {}
    assert len(load_history(repository)) == 3


def test_a_clone_has_the_dates_of_its_origin_and_a_shallow_one_none(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repository), "clone")
    assert load_history(tmp_path / "clone") == load_history(repository)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    assert load_history(tmp_path / "shallow") == {}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that leaves a mark, and can sign a commit."""
    program = tmp_path / "program"
    signature = "-----BEGIN PGP SIGNATURE-----\\n\\nabcd\\n-----END PGP SIGNATURE-----\\n"
    lines = (f"touch {tmp_path}/was-run", "echo '[GNUPG:] SIG_CREATED ' >&2", f"printf -- '{signature}'")
    program.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n", "utf-8")
    program.chmod(0o755)
    return program


def assert_git_alone_runs(program: Path, repository: Path) -> None:
    """Prove that the repository is dangerous: a plain `git log` in it runs the program."""
    mark = program.with_name("was-run")
    mark.unlink(missing_ok=True)
    subprocess.run(["git", "log", "--name-only"], cwd=repository, capture_output=True, check=False)
    assert mark.exists()
    mark.unlink()


def test_the_program_that_checks_signatures_is_not_run(repository: Path, program: Path) -> None:
    with (repository / ".git/config").open("a") as config:
        config.write(f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n")
    git(repository, "commit", "-S", "--allow-empty", "-qm", "Signed")
    assert_git_alone_runs(program, repository)
    assert load_history(repository).keys() == {"old.md", "guide/新しい.md", "dated.md"}
    assert not program.with_name("was-run").exists()


def test_the_program_that_fetches_missing_objects_is_not_run(repository: Path, program: Path) -> None:
    with (repository / ".git/config").open("a") as config:
        config.write("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n")
        config.write(f'[remote "origin"]\n\turl = {repository}\n\tpromisor = true\n\tuploadpack = {program}\n')
    command = ["git", "rev-parse", "HEAD~1^{tree}"]
    tree = subprocess.run(command, cwd=repository, capture_output=True, check=True, text=True).stdout.strip()
    (repository / ".git/objects" / tree[:2] / tree[2:]).unlink()
    assert_git_alone_runs(program, repository)
    load_history(repository)
    assert not program.with_name("was-run").exists()


@pytest.mark.parametrize(
    "head", ["", "ref: refs/heads/../../../../etc/passwd", "--output=x", "ref: refs/heads/none", "\udcff"]
)
def test_a_head_that_names_no_commit_dates_nothing(repository: Path, head: str) -> None:
    (repository / ".git/HEAD").write_bytes(head.encode("utf-8", "surrogateescape"))
    assert load_history(repository) == {}


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes and devices in folders")
@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "refs/heads/master"])
def test_a_pipe_or_a_device_in_a_repository_is_not_read(repository: Path, name: str) -> None:
    git(repository, "symbolic-ref", "HEAD", "refs/heads/master")
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (repository / ".git" / name).unlink(missing_ok=True)
        (repository / ".git/refs/heads/master").unlink(missing_ok=True)
        make(repository / ".git" / name)
        assert load_history(repository) == {}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever tests may read everything")
def test_a_repository_above_that_may_not_be_read_dates_nothing(repository: Path) -> None:
    (repository / ".git").chmod(0)
    try:
        assert load_history(repository / "guide") == {}
    finally:
        (repository / ".git").chmod(0o700)


def test_a_repository_that_claims_billions_of_files_takes_little_memory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str, rows: str = "") -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        reply = subprocess.run(command, cwd=repository, input=rows, capture_output=True, check=True, text=True)
        return reply.stdout.strip()

    row = f"100644 blob {run('hash-object', '-w', 'old.md')}"
    for _ in range(9):
        row = "040000 tree " + run("mktree", rows="".join(f"{row}\tname{number}\n" for number in range(10)))
    run("update-ref", "HEAD", run("commit-tree", row.split()[-1], "-m", "Many"))
    monkeypatch.setattr(git_dates, "MAX_OUTPUT_BYTES", 1 << 20)
    tracemalloc.start()
    try:
        assert committed_at(repository, "old.md", (repository / "old.md").read_bytes()) == ""
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_damaged_repository_dates_what_it_can(repository: Path) -> None:
    shutil.rmtree(repository / ".git/objects")
    (repository / ".git/objects").mkdir()
    assert load_history(repository) == {}


def test_without_git_files_have_their_own_times(
    library: Library, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    library.add(repository, name="repository")
    library.import_("repository")
    assert dates(library, "repository") == {"old.md": "file", "guide/新しい.md": "file", "dated.md": "2020-02-02"}


@pytest.mark.skipif(os.name == "nt", reason="programs begin otherwise there")
def test_a_git_that_does_not_start_costs_no_document(
    library: Library, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "git").write_text("#!/no/such/interpreter\n", "utf-8")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    library.add(repository, name="repository")
    library.import_("repository")
    assert dates(library, "repository") == {"old.md": "file", "guide/新しい.md": "file", "dated.md": "2020-02-02"}
