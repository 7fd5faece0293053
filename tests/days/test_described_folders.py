"""The day of somebody who comes from named, described folders that each become a tool of their own: mdvec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.processes import at_a_terminal
from tests.days.person import Assistant, Person

pytestmark = pytest.mark.slow

AUTH = """\
# Authentication

Every request carries a bearer token. A token expires after one hour.

## Refreshing a token

Send the refresh token to `/oauth/refresh` and you get a new access token.
"""
ERRORS = "# エラー\n\n認証に失敗すると 401 が返る。トークンの有効期限が切れたときも 401 である。\n"
CONFIG = """\
[database]
path = "vector-db.sqlite"

[chunking]
size = 1024
overlap = 64

[display]
default_format = "table"

[search]
k = 5

[model]
auto_unload_minutes = 10  # 10分後にアンロード
memory_threshold = 0.8    # メモリ使用率80%超でアンロード
"""
ABOUT = "API documentation for user authentication"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A folder with documents about an API, and one with a guide."""
    person = Person(tmp_path)
    person.write("docs/api/auth.md", AUTH)
    person.write("docs/api/errors/codes.md", ERRORS)
    person.write("docs/guides/deploy.md", "# Deploying\n\nNever deploy on a Friday.\n")
    return person


def test_tools_are_added_updated_disabled_listed_and_deleted(person: Person) -> None:
    added = person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    assert (added.code, added.out.splitlines()[0].startswith("Added api-docs: 2 files")) == (0, True)
    assert person.run('bunko tool add --name guides --description "Guides" --source ./docs/guides').code == 0
    again = person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    assert (again.code, "A tool named 'api-docs' already exists" in again.err) == (2, True)
    assert person.run("bunko tool ls").out.splitlines() == ["api-docs", "guides"]
    assert person.run("bunko tool disable --name guides").code == 0
    assert person.run("bunko tool ls").out.splitlines() == ["api-docs"]
    rows = [line.split("\t") for line in person.run("bunko tool ls --all").out.splitlines()]
    assert rows == [
        ["api-docs", "active", str(person.current / "docs/api"), ABOUT],
        ["guides", "disabled", str(person.current / "docs/guides"), "Guides"],
    ]
    update = 'bunko tool update -n guides -d "How we deploy" -s ./docs'
    assert person.run(update).code == 0
    assert person.run("bunko tool enable -n guides").code == 0
    tools = json.loads(person.run("bunko tool ls --all --format json").out)
    assert [(tool["name"], tool["description"], tool["source"], tool["active"]) for tool in tools] == [
        ("api-docs", ABOUT, str(person.current / "docs/api"), True),
        ("guides", "How we deploy", str(person.current / "docs"), True),
    ]
    asked = person.run("bunko tool delete -n guides", typed="n\n")
    assert (asked.code, "Delete guides? [y/N]" in asked.out + asked.err) == (1, True)
    assert person.run("bunko tool ls").out.splitlines() == ["api-docs", "guides"]
    assert person.run("bunko tool delete -n guides -y").code == 0
    assert person.run("bunko tool ls").out.splitlines() == ["api-docs"]
    table = at_a_terminal("tool", "ls", "--all", "--format", "table", env=person.environ)
    assert "━" in table or "─" in table
    assert "api-docs" in table


def test_documents_are_imported_replaced_and_updated_and_the_status_counts_them(person: Person) -> None:
    person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    assert person.run("bunko import -n api-docs").out == (
        "2 added, 0 updated, 0 deleted, 0 unchanged, 3 chunks in total\n"
    )
    twice = person.run("bunko import -n api-docs")
    assert twice.code == 10
    assert "api-docs is already imported" in twice.err
    assert "bunko import -n api-docs --mode update" in twice.err
    assert "bunko import -n api-docs --mode replace" in twice.err
    assert person.run("bunko import -n api-docs --mode replace").out.startswith("0 added, 2 updated,")
    person.path("docs/api/errors/codes.md").unlink()
    person.write("docs/api/limits.md", "# Limits\n\nA client may send ten requests in a second.\n")
    assert person.run("bunko import -n api-docs -m update").out.startswith(
        "1 added, 0 updated, 1 deleted, 1 unchanged,"
    )
    overview = person.run("bunko status").out.splitlines()
    assert overview[0].startswith(f"library: {person.home / '.local/share/bunko/library.db'} (")
    assert overview[1].startswith("api-docs: active, 2 documents, 3 chunks, 3 vectors,")
    details = person.run("bunko status -n api-docs").out
    for line in (
        "tool: api-docs (folder, active)",
        f"description: {ABOUT}",
        "contents: 2 documents, 3 chunks, 3 vectors",
    ):
        assert line in details
    for word in ("last import: 20", "embedding: static, 256 dimensions", "auth.md\t", "limits.md\t"):
        assert word in details
    assert person.run("bunko status --name api-docs").out == details


def test_another_database_is_created_by_an_import_that_names_it(person: Person) -> None:
    person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    ran = person.run("bunko import -n api-docs --mode update --database ./custom.sqlite")
    assert (ran.code, ran.out.startswith("2 added,")) == (0, True)
    assert person.path("custom.sqlite").is_file()
    assert person.run("bunko search token --database ./custom.sqlite --json").json()["results"]
    assert "0 documents" in person.run("bunko status").out, "the tool in the library itself is not imported"


def test_chunks_count_tokens_and_share_some(person: Person) -> None:
    person.write("long/tokens.md", "validation " * 3000)
    person.run('bunko tool add -n long -d "A text of 3,000 tokens" -s ./long')
    ran = person.run("bunko import -n long --chunk-size 1024 --chunk-overlap 64")
    assert (ran.code, ran.out) == (0, "1 added, 0 updated, 0 deleted, 0 unchanged, 4 chunks in total\n")
    refused = person.run("bunko import -n long --mode replace --chunk-size 100")
    assert (refused.code, "512<=x<=4096" in refused.err) == (2, True)


def test_the_config_file_beside_the_commands_is_read_except_for_the_path_of_the_database(person: Person) -> None:
    config = person.write("config.toml", CONFIG)
    ran = person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    assert ran.err.splitlines() == [
        f"Read from {config}: chunking.size, chunking.overlap, search.top_k.",
        f"Not read from {config}: database.path."
        f" The current folder may not set this. To use the whole file: --config {config}",
    ]
    assert not person.path("vector-db.sqlite").exists()
    for command in (f'tool add -n api-docs -d "{ABOUT}" -s ./docs/api', "import -n api-docs"):
        ran = person.run(f"bunko {command} --config config.toml")
        assert (ran.code, ran.err) == (0, "")
    assert person.path("vector-db.sqlite").is_file()
    assert "auth.md:L" in person.run("bunko search token --config config.toml").out


def test_each_active_folder_is_a_tool_that_returns_chunks_sections_or_whole_files(person: Person) -> None:
    person.run(f'bunko tool add -n api-docs -d "{ABOUT}" -s ./docs/api')
    person.run('bunko tool add -n guides -d "Guides" -s ./docs/guides')
    assert person.run("bunko import --all").code == 0

    async def day(assistant: Assistant) -> None:
        assert {"api-docs", "guides"} <= set(await assistant.tool_names())
        answer = await assistant.call("api-docs", query="アクセストークンの更新 refresh token", top_k=1)
        [result] = answer["results"]
        assert (answer["total_chunks"], result["file_path"], result["heading"]) == (
            3,
            "auth.md",
            "## Refreshing a token",
        )
        assert result["content"].startswith("## Refreshing a token")
        assert 0 < result["score"] <= 1
        [section] = (await assistant.call("api-docs", query="refresh token", top_k=1, extract="section"))["results"]
        assert section["content"].startswith("## Refreshing a token")
        [whole] = (await assistant.call("api-docs", query="refresh token", top_k=1, extract="full"))["results"]
        assert whole["content"] == AUTH.rstrip("\n")
        friday = await assistant.call("guides", query="Friday")
        assert [hit["file_path"] for hit in friday["results"]] == ["deploy.md"]

    server = {"command": "bunko", "args": ["serve"]}
    person.connect(server, day)
    person.run("bunko tool disable -n guides")

    async def next_day(assistant: Assistant) -> None:
        names = await assistant.tool_names()
        assert "api-docs" in names
        assert "guides" not in names

    person.connect(server, next_day)
