"""Questions of somebody who may read only some of the tools."""

from __future__ import annotations

from pathlib import Path

import bunko


def test_a_limited_library_answers_from_the_tools_that_it_may_read_only(tmp_path: Path) -> None:
    for name, text in (("open", "Cats sleep for 16 hours.\n"), ("secret", "The door code of the vault is 4711.\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text(text, encoding="utf-8")
    question = "What is the door code of the vault?"
    with bunko.open(tmp_path / "library.db", environ={}, embedding_provider="none") as library:
        for name in ("open", "secret"):
            library.add(tmp_path / name, name=name)
        assert library.ask(question).is_found  # and what answers is built now
        limited = library.limited_to(lambda tool: tool == "open")
        answer = limited.ask(question)
        assert (answer.is_found, [source.tool for source in answer.sources if source.tool != "open"]) == (False, [])
        assert limited.ask("How long do cats sleep?").is_found
        assert library.ask(question).is_found
