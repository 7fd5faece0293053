"""What people and scripts get from the command line: output, errors, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bunko.errors import BunkoError
from bunko.interfaces.chat.servers import MCPServerError
from bunko.interfaces.cli.main import COMMANDS, EXIT_CODES, bunko
from bunko.library.admin.doctor import Finding
from bunko.library.admin.maintenance import Maintenance
from tests.cli.processes import ESCAPE, subprocess_environment
from tests.conftest import Ran, Run

RESULT = {
    "file_path", "heading", "content", "score", "chunk_index", "heading_path", "citation", "line_start", "line_end",
    "char_start", "char_end", "title", "date", "tags", "content_hash", "tool", "vector_distance", "bm25_score",
    "combined_score", "hash",
}  # fmt: skip


def files(ran: Ran) -> list[str]:
    """Return the documents of an answer, best first."""
    results = ran.json()["results"]
    assert isinstance(results, list)
    return [hit["file_path"] for hit in results]


def test_a_search_prints_the_object_that_assistants_get_too(run: Run, notes: Path) -> None:
    found = run("search", "環境構築の方法", "--docs-dir", notes, "--json").json()
    assert found.keys() >= {"results", "total_chunks", "query", "mode", "freshness"}
    assert (found["query"], found["mode"]) == ("環境構築の方法", "hybrid")
    results = found["results"]
    assert isinstance(results, list)
    assert results[0].keys() >= RESULT
    assert results[0]["file_path"] == "guide/setup.md"
    assert results[0]["heading"] == "## インストール手順"
    assert results[0]["heading_path"] == ["環境構築", "インストール手順"]
    assert "環境構築の方法を説明します" in results[0]["content"]
    assert results[0]["tags"] == ["環境", "python"]
    assert results[0]["date"] == "2024-01-15"
    assert "explain" not in results[0]


def test_a_search_in_a_pipe_prints_place_headings_and_text_without_colours(run: Run, notes: Path) -> None:
    ran = run("search", "環境構築の方法", "--docs-dir", notes)
    first, headings, *text = ran.out.splitlines()
    assert re.fullmatch(r"\[1\] guide/setup\.md:L\d+-L\d+  score=\d+\.\d{4}", first)
    assert headings == "環境構築 > インストール手順"
    assert "環境構築の方法を説明します" in "\n".join(text)
    assert ESCAPE not in ran.out + ran.err
    assert run("search", "誰も書かない言葉", "--docs-dir", notes).out.startswith("No results among 3 chunks.")


def test_an_empty_query_is_an_error_that_says_what_to_give(run: Run, notes: Path) -> None:
    for query in ("", " \u3000"):
        ran = run("search", query, "--docs-dir", notes)
        assert (ran.code, ran.out) == (EXIT_CODES["query"], "")
        assert "The query is empty\nGive words or a question, or filter by path, tag or date.\n" in ran.err
    assert run("search", "", "--docs-dir", notes, "--path", "*.md").out.startswith("[1] ")


def test_an_empty_folder_answers_with_an_empty_list(run: Run, docs: Path) -> None:
    found = run("search", "京都", "--docs-dir", docs, "--json").json()
    assert (found["results"], found["total_chunks"]) == ([], 0)


@pytest.mark.parametrize("mode", ["bm25", "semantic", "hybrid"])
def test_every_mode_says_how_it_scored(run: Run, notes: Path, mode: str) -> None:
    found = run("search", "京都の寺", "--docs-dir", notes, "--mode", mode, "--json").json()
    assert found["mode"] == mode
    results = found["results"]
    assert isinstance(results, list)
    best = results[0]
    assert best["file_path"] == "temple.md"
    assert (best["bm25_score"] is None) == (mode == "semantic")
    assert (best["vector_distance"] is None) == (mode == "bm25")
    assert (best["combined_score"] is None) == (mode != "hybrid")


def test_results_can_be_fewer_and_only_from_some_documents(run: Run, notes: Path) -> None:
    both = run("search", "環境", "--docs-dir", notes, "--json")
    assert set(files(both)) == {"guide/setup.md", "temple.md"}
    assert len(files(run("search", "環境", "--docs-dir", notes, "--json", "--top-k", "1"))) == 1
    for flags, expected in (
        (("--path", "guide/**"), ["guide/setup.md"]),
        (("--path", "temple*"), ["temple.md"]),
        (("--path", "[z-a]*"), []),
        (("--path", "[!]"), []),
        (("--path", "**/**/**/**/[s-t]e*.md"), ["guide/setup.md", "temple.md"]),
        (("--tag", "旅行"), ["temple.md"]),
        (("--tag", "#ＰＹＴＨＯＮ", "--tag", "環境"), ["guide/setup.md"]),
        (("--tag", "旅行", "--tag", "環境"), []),
        (("--since", "2w"), ["temple.md"]),
        (("--until", "2024-01"), ["guide/setup.md"]),
        (("--since", "2024年1月15日", "--until", "2024-01-15"), ["guide/setup.md"]),
    ):
        assert sorted(files(run("search", "環境", "--docs-dir", notes, "--json", *flags))) == expected, flags


def test_explain_tells_terms_lane_and_each_arm(run: Run, notes: Path) -> None:
    flags = ("search", "京都の寺", "--docs-dir", notes, "--mode", "hybrid", "--explain")
    results = run(*flags, "--json").json()["results"]
    assert isinstance(results, list)
    why = results[0]["explain"]
    assert why["lane"] == "word"
    assert "寺" in why["terms"]
    assert why["bm25"]["rank"] == why["vector"]["rank"] == 1
    assert "why: " in run(*flags).out


def test_without_refresh_a_search_answers_from_what_was_indexed(run: Run, notes: Path) -> None:
    assert files(run("search", "京都", "--docs-dir", notes, "--json")) == ["temple.md"]
    (notes / "new.md").write_text("# 京都\n\n京都の新しい寺。", encoding="utf-8")
    assert files(run("search", "京都", "--docs-dir", notes, "--json", "--no-refresh")) == ["temple.md"]
    assert set(files(run("search", "京都", "--docs-dir", notes, "--json"))) == {"temple.md", "new.md"}


def test_reindex_counts_what_it_did(run: Run, notes: Path) -> None:
    first = run("reindex", "--docs-dir", notes, "--json").json()
    wanted = {"added": 3, "updated": 0, "deleted": 0, "unchanged": 0, "total_chunks": 3}
    assert {name: first[name] for name in wanted} == wanted
    assert first["problems"] == []
    (notes / "notes.txt").unlink()
    (notes / "temple.md").write_text("# 奈良\n\n奈良の寺と鹿。", encoding="utf-8")
    (notes / "empty.md").touch()
    second = run("reindex", "--docs-dir", notes)
    assert second.code == 0
    assert second.out == "0 added, 1 updated, 1 deleted, 1 unchanged, 2 chunks in total\n"
    assert "1 document not indexed, or only in part:" in second.err
    assert "empty.md: is empty" in second.err
    assert run("reindex", "--docs-dir", notes, "--force", "--json").json()["updated"] == 2


def test_the_reason_and_the_hint_of_a_problem_are_two_sentences_on_one_line(run: Run, notes: Path) -> None:
    (notes / "binary.md").write_bytes(bytes(range(256)))
    line = "binary.md: The file is not text: it contains NUL bytes. Exclude the file, or save its text as UTF-8."
    assert f"  {line}\n" in run("reindex", "--docs-dir", notes).err
    assert f"problem: {line}\n" in run("status", "--docs-dir", notes).out


def test_status_and_doctor_tell_about_a_library(run: Run, notes: Path) -> None:
    run("reindex", "--docs-dir", notes)
    status = run("status", "--docs-dir", notes, "--json").json()
    tools = status["tools"]
    assert isinstance(tools, list)
    assert (tools[0]["name"], tools[0]["documents"], tools[0]["chunks"]) == ("documents", 3, 3)
    assert tools[0]["source"] == str(notes)
    assert "documents: active, 3 documents, 3 chunks" in run("status", "--docs-dir", notes).out
    doctor = run("doctor", "--docs-dir", notes)
    assert doctor.code == 0
    assert doctor.out.startswith("Python 3.")
    assert "\nok   library: the file is intact.\n" in doctor.out
    findings = run("doctor", "--docs-dir", notes, "--json").json()["findings"]
    assert isinstance(findings, list)
    assert {finding["state"] for finding in findings} == {"ok"}


def test_doctor_fails_where_something_is_wrong(run: Run, notes: Path) -> None:
    run("reindex", "--docs-dir", notes)
    database = notes / ".rag-index" / "library.db"
    content = bytearray(database.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8192] = bytes(8192)
    database.write_bytes(content)
    ran = run("doctor", "--docs-dir", notes)
    assert ran.code != 0
    assert "Traceback" not in ran.err


def test_doctor_does_not_pass_on_what_a_server_wants_the_terminal_to_do(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding("warning", "documents", f"Chroma failed: {ESCAPE}]0;owned\x07{ESCAPE}[2J")
    monkeypatch.setattr(Maintenance, "diagnose", lambda _: [finding])
    run("reindex", "--docs-dir", notes)
    shown = run("doctor", "--docs-dir", notes).out
    assert "owned" in shown
    assert not {ESCAPE, "\x07"} & set(shown)


def test_config_show_tells_each_value_and_where_it_came_from(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "bunko.toml").write_text("[search]\ntop_k = 7\n", encoding="utf-8")
    monkeypatch.setenv("RAG_CHUNK_SIZE", "300")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    shown = run("config", "show", "--docs-dir", notes, "--json").json()
    top_k, size = shown["search.top_k"], shown["web.chunk_size"]
    assert isinstance(top_k, dict)
    assert isinstance(size, dict)
    assert top_k["value"] == "7"
    assert "bunko.toml" in top_k["origin"]
    assert size["value"] == "300"
    assert "RAG_CHUNK_SIZE" in size["origin"]
    assert "sk-hidden" not in run("config", "show", "--docs-dir", notes).out
    section = run("config", "show", "search", "--docs-dir", notes)
    assert {line.partition(".")[0] for line in section.out.splitlines()} == {"search"}
    assert run("config", "show", "nothing").code == 2


def test_a_library_can_be_named_in_every_way(
    run: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "library"
    assert run("reindex", "--docs-dir", notes, "--data-dir", place).code == 0
    assert not (notes / ".rag-index").exists()
    asked = ("search", "京都", "--json")
    assert files(run(*asked, "--docs-dir", notes, "--data-dir", place)) == ["temple.md"]
    assert files(run(*asked, "--library", place)) == ["temple.md"]
    assert files(run(*asked, "--database", place / "library.db")) == ["temple.md"]
    monkeypatch.setenv("BUNKO_LIBRARY", str(place))
    assert files(run(*asked)) == ["temple.md"]
    assert run("status").code == run("doctor").code == run("reindex").code == 0
    assert files(run(*asked, "--name", "documents")) == ["temple.md"]
    monkeypatch.delenv("BUNKO_LIBRARY")
    (tmp_path / "bunko.toml").write_text(f"[library]\npath = '{place}'\n", encoding="utf-8")
    assert files(run(*asked, "--config", tmp_path / "bunko.toml")) == ["temple.md"]


def every_error(kind: type[BunkoError] = BunkoError) -> Iterator[type[BunkoError]]:
    yield kind
    for one in kind.__subclasses__():
        if not one.__module__.startswith("bunko.interfaces.api."):  # a command never sees these
            yield from every_error(one)


def test_every_error_has_an_exit_code_of_its_own() -> None:
    assert MCPServerError in every_error()
    assert {error.code for error in every_error()} == EXIT_CODES.keys()
    # Other modules have errors of these kinds, which share their codes.
    kinds = [error for error in every_error() if error.__module__ == BunkoError.__module__]
    assert len({error.code for error in kinds}) == len(kinds)
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)
    assert 0 not in EXIT_CODES.values()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("search", "京都", "--docs-dir", "nowhere"), "source", "There is no folder nowhere"),
        (
            ("search", "京都", "--docs-dir", ".", "--library", "."),
            "settings",
            "--docs-dir cannot be used with --library or --database",
        ),
        (("search", "京都", "--docs-dir", ".", "--since", "someday"), "query", "'someday' is not a date"),
        (("search", "京都", "--docs-dir", ".", "--name", "nothing"), "unknown", "no tool called 'nothing'"),
        (("search", "京都", "--library", "nowhere"), "library", "There is no library at"),
        (("status", "--library", "nowhere"), "library", "There is no library at"),
        (("reindex",), "library", "There is no library at"),
        (("search", "京都", "--database", "no.db"), "damaged", "not a readable library"),
        (("status", "--database", "gone.db"), "library", "gone.db"),
        (("status", "--database", "folder"), "library", "folder is a folder, not a library file"),
        (("status", "--library", "no.db"), "library", "no.db is a file, not a library folder"),
        (("init", "--database", "no.db/deep/my.db"), "read-only", "Cannot write "),
        (
            ("build", "-i", "no.db", "--database", "no.db/deep/my.db"),
            "read-only",
            "my.db cannot be opened or created: ",
        ),
        (("status", "--database", "x" * 300), "read-only", "cannot be opened or created: "),
        (("tool", "add", "-n", "b\udcff", "-d", "x", "-s", "."), "settings", "argument of -n is not valid UTF-8"),
        (("tool", "add", "-n", "b", "-d", "x\udcff", "-s", "."), "settings", "argument of -d is not valid UTF-8"),
        (("tool", "add", "-n", "b", "-d", "x", "-s", "x\udcff"), "settings", "argument of -s is not valid UTF-8"),
        (("tool", "add", "--name=b\udcff", "-d", "x", "-s", "."), "settings", "--name=b"),
        (("search", "京都", "--path", "\udcff"), "settings", "argument of --path is not valid UTF-8"),
        (("config", "show", "--config", "wrong.toml"), "settings", "top_kk"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_errors_are_sentences_with_an_exit_code_and_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "no.db").write_bytes(b"this is no database, but it is long enough to look at. " * 100)
    (tmp_path / "wrong.toml").write_text("[search]\ntop_kk = 7\n", encoding="utf-8")
    ran = run(*arguments)
    assert ran.code == EXIT_CODES[code], ran.err
    assert ran.out == ""
    assert ran.err.startswith("Error: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) >= 2, "there is no hint"
    assert "Traceback" not in ran.err


def test_wrong_flags_are_named_with_what_is_allowed(run: Run, notes: Path) -> None:
    for flags in (("--mode", "magic"), ("--top-k", "0"), ("--top-k", "many"), ("--nothing",)):
        ran = run("search", "京都", "--docs-dir", notes, *flags)
        assert ran.code == 2
        assert flags[0] in ran.err
        assert "Traceback" not in ran.err


def test_an_unknown_command_suggests_the_nearest(run: Run) -> None:
    ran = run("serach", "京都")
    assert ran.code == 2
    assert "No such command 'serach'. Did you mean 'search'?" in ran.err
    assert "Did you mean" not in run("xyz").err


def every_command(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    yield above
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from every_command(command, *above, name)
        else:
            yield (*above, name)


def test_the_help_of_every_command_says_what_it_does_and_shows_an_example(run: Run) -> None:
    names = list(every_command(bunko))
    assert {name[0] for name in names if name} == COMMANDS.keys()
    for name in names:
        ran = run(*name, "--help")
        assert ran.code == 0
        assert "Example" in ran.out, name
        assert ran.out == run(*name, "-h").out
        if name and len(name) == 1:
            assert COMMANDS[name[0]] in " ".join(ran.out.split())


@pytest.mark.slow
def test_help_waits_for_no_search_engine(tmp_path: Path) -> None:
    told = "import sys; from bunko.interfaces.cli.main import main\ntry: main()\nfinally: print(*sorted(sys.modules))"
    for arguments in (["--help"], ["--version"], ["search", "--help"], ["add", "--help"], ["help", "add"]):
        done = subprocess.run(
            [sys.executable, "-c", told, *arguments],
            capture_output=True, text=True, encoding="utf-8", check=True, env=subprocess_environment(tmp_path),
        )  # fmt: skip
        loaded = done.stdout.splitlines()[-1].split()
        assert not {"numpy", "sqlite3", "fugashi", "rich", "filelock", "yaml", "asyncio"} & set(loaded)


def test_verbose_tells_the_time_of_each_step_on_stderr_and_leaves_stdout_clean(run: Run, notes: Path) -> None:
    ran = run("search", "京都", "--docs-dir", notes, "--mode", "hybrid", "--json", "--verbose")
    assert files(ran)[0] == "temple.md"
    for step in ("file_scan", "chunk_split", "sqlite_write", "bm25_query", "vector_query", "search_total"):
        assert re.search(rf"\[TIMER\] +{step}: [\d.]+ms", ran.err), step
    assert "TIMER" not in run("search", "京都", "--docs-dir", notes, "--json").err


def test_the_next_step_names_the_library_that_a_flag_named(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text("# A\n\nA page about quotas and limits.\n", encoding="utf-8")
    place, file = tmp_path / "a library", tmp_path / "one.db"
    tool = ("-n", "api", "-d", "Quotas and limits", "-s", docs)
    added = run("tool", "add", *tool, "--library", place)
    assert added.out.endswith(f"bunko import -n api --library '{place}'\n")
    assert run("tool", "add", *tool, "--database", file).out.endswith(f"import -n api --database {file}\n")
    updated = run("tool", "update", "-n", "api", "-s", docs, "--library", place)
    assert updated.out.endswith(f"--mode update --library '{place}'\n")
    assert f"--library '{place}'" in run("tool", "describe", "-n", "api", "--library", place).err
    assert run("import", "-n", "api", "--library", place).code == 0
    assert f"-d TEXT --library '{place}'" in run("tool", "describe", "-n", "api", "--library", place).err
    run("tool", "update", "-n", "api", "-d", "docs", "--library", place)
    assert f"--write --library '{place}'" in run("tool", "check", "--library", place).out
    monkeypatch.setenv("BUNKO_LIBRARY", str(tmp_path / "other"))
    assert run("tool", "add", *tool).out.endswith("bunko import -n api\n")


def test_sizes_in_tokens_alone_choose_the_chunker(run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kind() -> object:
        shown = run("config", "show", "chunker.kind", "--docs-dir", docs, "--json").json()["chunker.kind"]
        assert isinstance(shown, dict)
        return shown["value"]

    assert kind() == "auto"
    (docs / "config.toml").write_text("[chunking]\nsize = 512\noverlap = 32\n", encoding="utf-8")
    assert kind() == "tokens"
    (docs / "a.md").write_text("# A\n\n" + "Every request carries a signature. " * 400, encoding="utf-8")
    run("reindex", "--docs-dir", docs)
    (tool,) = json.loads(run("status", "--docs-dir", docs, "--json").out)["tools"]
    assert (tool["built"]["chunker"]["kind"], tool["built"]["chunker"]["size"]) == ("tokens", 512)
    monkeypatch.setenv("BUNKO_CHUNKER_KIND", "headings")
    assert kind() == "headings"
