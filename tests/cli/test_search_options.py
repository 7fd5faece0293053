"""What the options of `bunko search` leave out of its results, and what it says about that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, Run

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3


def results(ran: Ran) -> list[dict[str, Any]]:
    found = ran.json()["results"]
    assert isinstance(found, list)
    return found


@pytest.fixture
def long_and_short(docs: Path) -> Path:
    """A document whose six sections match best, and four documents of one section."""
    sections = [f"## 第{number}節\n\n索引の話、索引の話、索引の話の{number}。{FILLER}\n\n" for number in range(6)]
    (docs / "long.md").write_text("".join(sections), encoding="utf-8")
    for name in "abcd":
        (docs / f"{name}.md").write_text(f"# {name}\n\n索引の話。{FILLER * 2}\n", encoding="utf-8")
    return docs


def test_people_see_at_most_two_hits_of_a_document_unless_they_ask_for_more(run: Run, long_and_short: Path) -> None:
    search = ("search", "索引の話", "--docs-dir", long_and_short, "--json")
    found = results(run(*search))
    paths = [result["file_path"] for result in found]
    assert len(paths) == 5
    assert paths.count("long.md") == 2
    assert [result["more_in_document"] for result in found if "more_in_document" in result] == [4]
    assert found[max(index for index, path in enumerate(paths) if path == "long.md")]["more_in_document"] == 4
    for number, count in (("1", 1), ("3", 3)):
        found = results(run(*search, "--per-document", number))
        assert sum(result["file_path"] == "long.md" for result in found) == count
    every = results(run(*search, "--per-document", "0"))
    assert sum(result["file_path"] == "long.md" for result in every) > 3
    assert not any("more_in_document" in result for result in every)


def test_a_search_of_one_long_document_still_gives_as_many_results_as_asked_for(run: Run, long_and_short: Path) -> None:
    search = ("search", "索引の話", "--docs-dir", long_and_short, "--path", "long.md", "--json")
    assert len(results(run(*search))) == 5
    assert len(results(run(*search, "--per-document", "2"))) == 2


@pytest.fixture
def three_tools(run: Run, tmp_path: Path) -> Path:
    """A library of three folders."""
    library = tmp_path / "library"
    for name in ("garden", "kitchen", "workshop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"# {name}\n\n索引の話。{FILLER}\n", encoding="utf-8")
        ran = run("tool", "add", "-n", name, "-d", name, "-s", tmp_path / name, "--library", library)
        assert ran.code == 0, ran.err
    return library


def test_several_names_search_those_tools_and_the_results_say_which(run: Run, three_tools: Path) -> None:
    search = ("search", "索引の話", "-n", "garden", "-n", "workshop", "--library", three_tools)
    assert {result["tool"] for result in results(run(*search, "--json"))} == {"garden", "workshop"}
    assert {line.rpartition("tool=")[2] for line in run(*search).out.splitlines() if "score=" in line} == {
        "garden",
        "workshop",
    }
    one = run("search", "索引の話", "-n", "garden", "--library", three_tools)
    assert "tool=" not in one.out
    unknown = run("search", "索引の話", "-n", "garden", "-n", "cellar", "--library", three_tools)
    assert unknown.code != 0
    assert "'cellar'" in unknown.err


def test_results_below_a_score_are_left_out_and_nothing_left_is_told(run: Run, long_and_short: Path) -> None:
    search = ("search", "索引の話", "--docs-dir", long_and_short, "--mode", "bm25", "--per-document", "0", "-k", "10")
    scores = [result["score"] for result in results(run(*search, "--json"))]
    assert scores[0] > scores[-1]
    above = [result["score"] for result in results(run(*search, "--json", "--min-score", str(scores[0])))]
    assert above == [score for score in scores if score == scores[0]]
    nothing = run(*search, "--min-score", "0.99")
    assert nothing.out.startswith("No results among")
    assert f"All results have a score below 0.99; the best has {scores[0]:.4f}." in nothing.err


def test_quotes_and_hyphens_work_on_the_command_line(run: Run, long_and_short: Path) -> None:
    (long_and_short / "e.md").write_text(f"# e\n\n索引と話。目次の話。{FILLER}\n", encoding="utf-8")
    search = ("search", "--docs-dir", long_and_short, "--json", "-k", "20")
    quoted = {result["file_path"] for result in results(run(*search, '"索引の話"'))}
    assert quoted == {"long.md", "a.md", "b.md", "c.md", "d.md"}
    without = run(*search, "話 -索引の話")
    assert {result["file_path"] for result in results(without)} == {"e.md"}
    assert 'Results with "索引の話" are left out.' in without.err
    only = run("search", "--docs-dir", long_and_short, "--", "-索引")
    assert only.code != 0
    assert "Add words to search for" in only.err


def test_words_need_no_quotes_around_them(run: Run, notes: Path) -> None:
    quoted = run("search", "patent server -京都", "-k", "2", "--docs-dir", notes)
    assert quoted.code == 0
    assert run("search", "patent", "server", "-k", "2", "--docs-dir", notes, "--", "-京都").out == quoted.out
    assert run("search", "--docs-dir", notes).code == 2


def test_paths_with_blanks_reach_xargs_whole(run: Run, notes: Path) -> None:
    (notes / "the patent.md").write_text("# Patent\n\nThe patent was filed in spring.\n", encoding="utf-8")
    ran = run("search", "patent", "--format", "paths", "-0", "--docs-dir", notes)
    paths = ran.out.split("\0")
    assert paths.pop() == ""
    assert str(notes / "the patent.md") in paths
    wrong = run("search", "patent", "-0", "--docs-dir", notes)
    assert wrong.code == 2
    assert "--format paths" in wrong.err
