"""The vaults of Obsidian and Logseq are read as these programs read them."""

from __future__ import annotations

from pathlib import Path

from bunko.readers import markdown, vault_notes
from bunko.types.records import Filter
from tests.conftest import Opener


def write(docs: Path, **files: str) -> None:
    for name, text in files.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_notes_of_obsidian_have_their_inline_tags_and_are_found_by_their_aliases(docs: Path, open_docs: Opener) -> None:
    write(
        docs,
        **{
            ".obsidian/app.json": "{}",
            ".obsidian/plugins/x/README.md": "A plugin about gardens.",
            ".trash/old.md": "A deleted note about gardens.",
            "Projects/設計.md": (
                "---\naliases: [ブループリント, Design doc]\ntags: work\n---\nThe plan. #project/alpha `#code`\n"
            ),
            "daily.md": "Watered the gardens. #庭 #2024\n\n```\n#not-a-tag\n```\n",
        },
    )
    library = open_docs()
    assert library.reindex().added == 2
    assert [hit.uri for hit in library.search("gardens", mode="bm25").hits] == ["daily.md"]
    assert library.search("ブループリント", mode="bm25").hits[0].uri == "Projects/設計.md"
    tags = dict(library.store.stats.tags(library.store.tools.all()[0].id))
    assert tags == {"work": 1, "project": 1, "project/alpha": 1, "庭": 1}
    found = library.search("plan", where=Filter(tags=("project",))).hits
    assert [hit.uri for hit in found] == ["Projects/設計.md"]


def test_pages_of_logseq_have_their_properties_and_its_backups_are_left_out(docs: Path, open_docs: Opener) -> None:
    write(
        docs,
        **{
            "logseq/config.edn": "{}",
            "logseq/bak/pages/garden/2024.md": "- an old garden",
            "logseq/.recycle/pages_x.md": "- a deleted garden",
            "pages/garden.md": (
                "title:: My Garden\nalias:: 庭園, [[yard]]\ntags:: [[plants]], #home\n\n"
                "- The garden has #[[red roses]]\n"
            ),
            "bak/notes.md": "A folder that happens to be called so.",
        },
    )
    library = open_docs()
    assert library.reindex().added == 2
    hit = library.search("garden", mode="bm25").hits[0]
    assert (hit.uri, hit.title, hit.tags) == ("pages/garden.md", "My Garden", ("plants", "home", "red roses"))
    assert hit.chunk.first_line == 5
    assert library.search("庭園", mode="bm25").hits[0].uri == "pages/garden.md"


def test_a_folder_inside_of_a_vault_and_a_vault_inside_of_a_folder_are_recognized(
    docs: Path, open_docs: Opener
) -> None:
    write(docs, **{"vault/.obsidian/app.json": "{}", "vault/deep/a.md": "Text #inside", "b.md": "Text #outside"})
    library = open_docs()
    library.reindex()
    assert dict(library.store.stats.tags(library.store.tools.all()[0].id)) == {"inside": 1}


def test_in_other_folders_a_number_sign_is_no_tag(docs: Path, open_docs: Opener) -> None:
    write(docs, **{"readme.md": "See #general and #include in the text.\n"})
    library = open_docs()
    library.reindex()
    assert library.store.stats.tags(library.store.tools.all()[0].id) == []


def test_hostile_notes_take_no_more_than_a_moment() -> None:
    for source in (
        "`" * 200_000,
        "".join("`" * length + " " for length in range(1, 500)),
        "%% " * 100_000 + "#x",
        "#" * 300_000,
        "#a/" * 100_000,
        "# [[" * 100_000,
        "a:: b\n" * 50_000,
        "- " * 200_000 + "a::",
        "---\naliases: [" + "a, " * 10_000 + "]\n---\ntext",
        "-" * 300_000 + "::",
    ):
        note = vault_notes.add_metadata(markdown.read(source, "utf-8"))
        assert len(note.aliases) <= 50
