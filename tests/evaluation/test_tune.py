"""`bunko tune`: keeps settings that prove themselves on documents that did not choose them, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bunko.types.tool_options import ToolOptions
from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Opener, Run

# Each test tunes a whole tool: half a minute together.
pytestmark = pytest.mark.slow

# By these vectors alone a name is lost in a long text: bad where long texts are what people look for.
POOR = '[search]\nmode = "semantic"\n\n[embedding]\nprovider = "hashing"\n'
WORDS_ALONE = '[search]\nmode = "bm25"\n\n[embedding]\nprovider = "none"\n'
FILLER = "The committee met in the afternoon and went through the usual points of the agenda without haste. "
FIRST, SECOND = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro"), ("kar", "tol", "vem", "zin", "dul", "fos")


def word(number: int) -> str:
    """Return a word that no other number gives and no dictionary knows."""
    spelt = ""
    for at in range(3):
        spelt += FIRST[(number // 9**at) % 9] + SECOND[(number * (at + 2) + at) % 6]
    return spelt


def corpus(docs: Path, hard: str, count: int = 45) -> None:
    """Write texts with names of two words, each beside a short one that holds one of the two.

    Long texts, which answer badly by vectors alone, are in `both` halves, or in the `first` alone: there the texts of
    the other half are short, and no other text holds a word of their names.
    """
    uris = [f"{kind}{n}.md" for n in range(count) for kind in ("long", "short")]
    half = set(sorted(uris, key=lambda uri: sha256(uri.encode()).digest())[::2])
    for n in range(count):
        one, other = word(2 * n), word(2 * n + 1)
        name = f"{one.title()} {other.title()}"
        is_long = hard == "both" or f"long{n}.md" in half
        (docs / f"long{n}.md").write_text(f"# {name}\n\n{FILLER * 12 if is_long else ''}", encoding="utf-8")
        mention = one if is_long else word(500 + n)
        title = f"{word(1000 + 2 * n).title()} {word(1001 + 2 * n).title()}"
        (docs / f"short{n}.md").write_text(f"# {title}\n\nSee {mention} there.\n", encoding="utf-8")


@pytest.fixture
def tool(docs: Path, run: Run) -> Path:
    """A tool whose settings are bad for it."""
    corpus(docs, "both")
    (docs / "bunko.toml").write_text(POOR, encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    return docs


def tuned(run: Run, docs: Path, *more: str) -> dict[str, Any]:
    return dict(run("tune", "-n", "documents", "--docs-dir", docs, "--json", *more).json())


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "chosen.toml"
    path.write_text(text, encoding="utf-8")
    return path


def own(run: Run, docs: Path) -> object:
    ran = run("status", "-n", "documents", "--docs-dir", docs, "--json").json()
    assert isinstance(ran["options"], dict)
    return ran["options"].get("search")


def test_settings_that_prove_themselves_are_adopted_and_can_be_undone(run: Run, tool: Path) -> None:
    done = tuned(run, tool)
    assert done["adopted"] is True
    assert done["before"] == {"mode": "semantic"}
    assert done["best"] == {"mode": "hybrid", "fusion": "cc", "loanwords": True}, "the defaults, which do as well"
    low, high = done["checked_on"]["interval"]
    assert 0 < low < done["checked_on"]["difference"] < high
    assert done["chosen_on"]["after"] > done["chosen_on"]["before"]
    assert sum(done["questions"].values()) == done["chosen_on"]["questions"] + done["checked_on"]["questions"]
    assert set(done["questions"]) >= {"as written", "width", "inflection", "order", "typo", "question"}
    assert own(run, tool) == done["best"]
    [listed] = json.loads(run("tool", "ls", "--all", "--docs-dir", tool, "--json").out)
    assert listed["search"] == done["best"]
    assert "mode=hybrid" in run("status", "-n", "documents", "--docs-dir", tool).out

    again = tuned(run, tool)
    assert again["before"] == done["best"], "the next time begins from what was adopted"
    assert again["adopted"] is False

    assert "mode hybrid" in run("tune", "--undo", "--docs-dir", tool).out
    assert own(run, tool) is None
    assert "no search settings of its own" in run("tune", "--undo", "--docs-dir", tool).out


def test_a_tool_whose_own_settings_are_worse_than_the_librarys_gets_those_back(
    run: Run, docs: Path, open_docs: Opener
) -> None:
    corpus(docs, "both")
    (docs / "bunko.toml").write_text('[embedding]\nprovider = "hashing"\n', encoding="utf-8")
    library = open_docs()
    library.reindex()
    library.maintenance.set_search_settings("documents", {"mode": "hybrid", "fusion": "cc", "vector_weight": 1.0})
    dry = tuned(run, docs, "--dry-run")
    assert dry["before"] == {"mode": "hybrid", "fusion": "cc", "vector_weight": 1.0, "loanwords": True}
    assert dry["best"] == {"mode": "hybrid", "fusion": "cc", "loanwords": True}
    assert own(run, docs) == {"mode": "hybrid", "fusion": "cc", "vector_weight": 1.0}
    assert "uses the search settings of the library again" in run("tune", "--docs-dir", docs).out
    assert own(run, docs) is None
    assert tuned(run, docs)["before"] == dry["best"]


def test_a_gain_on_the_half_that_chose_alone_is_not_adopted(run: Run, docs: Path) -> None:
    corpus(docs, "first", 24)
    (docs / "bunko.toml").write_text(POOR, encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    done = tuned(run, docs)
    assert done["chosen_on"]["after"] > done["chosen_on"]["before"] + 0.05
    assert done["checked_on"]["interval"][0] <= 0
    assert done["adopted"] is False
    assert "does not confirm it" in done["reason"]
    assert own(run, docs) is None
    assert "Nothing was adopted: the other half" in run("tune", "--docs-dir", docs).out


def test_a_dry_run_shows_the_same_and_changes_nothing(run: Run, tool: Path) -> None:
    dry = tuned(run, tool, "--dry-run")
    assert (dry["better"], dry["adopted"]) == (True, False)
    assert own(run, tool) is None
    assert tuned(run, tool, "--dry-run") == dry, "the same content gives the same questions and the same choice"
    printed = run("tune", "--docs-dir", tool, "--dry-run").out
    assert "Nothing was changed." in printed
    assert "| checked on |" in printed
    assert "| typo |" in printed


def test_a_small_tool_is_told_so_instead_of_being_tuned(run: Run, docs: Path) -> None:
    for n in range(20):
        (docs / f"{n}.md").write_text(f"# {word(n).title()}\n\n{FILLER}", encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    done = tuned(run, docs)
    assert done["adopted"] is False
    assert "too small" in done["reason"]
    assert done["tried"] == 0


def judge_with_wordings(docs: Path, passages: list[str], also: list[list[str]]) -> None:
    """Write judged questions for the long texts, in words that no text has."""
    queries = [
        {"id": str(n), "query": word(5000 + n), "expected_sources": [f"long{n}.md"],
         "also": also[n], "passage": passages[n]}
        for n in range(len(passages))
    ]  # fmt: skip
    path = docs / ".rag-index" / "judged" / "documents.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"tool": "documents", "queries": queries}), encoding="utf-8")


def test_the_weights_of_wordings_are_tried_on_judged_questions_that_have_some(run: Run, tool: Path) -> None:
    assert "wordings" not in tuned(run, tool, "--dry-run")
    names = [f"{word(2 * n).title()} {word(2 * n + 1).title()}" for n in range(45)]
    # The other wordings name the long text, and the passages are those of the short one that mentions it.
    judge_with_wordings(tool, [f"See {word(2 * n)} there." for n in range(45)], [[name] for name in names])
    dry = tuned(run, tool, "--dry-run")
    wordings = dry["wordings"]
    assert wordings["before"] == {"also_weight": 0.25, "passage_weight": 0.5}
    assert wordings["best"] != wordings["before"]
    assert wordings["checked_on"]["interval"][0] > 0
    assert (wordings["better"], dry["adopted"]) == (True, False)
    assert (wordings["chosen_on"]["questions"], wordings["checked_on"]["questions"]) == (23, 22)
    done = tuned(run, tool)
    changed = {name: value for name, value in wordings["best"].items() if value != wordings["before"][name]}
    assert own(run, tool) == {"mode": "hybrid", "fusion": "cc", "loanwords": True, **changed}
    assert done["wordings"] == wordings
    again = tuned(run, tool)
    assert (again["adopted"], again["wordings"]["before"]) == (False, wordings["best"])
    assert own(run, tool) == {"mode": "hybrid", "fusion": "cc", "loanwords": True, **changed}
    printed = run("tune", "--docs-dir", tool, "--dry-run").out
    assert "These weights stay: no other weights" in printed


def test_few_judged_questions_with_wordings_choose_no_weights(run: Run, docs: Path) -> None:
    (docs / "long0.md").write_text("# Kyoto\n\nA temple.\n", encoding="utf-8")
    assert run("reindex", "--docs-dir", docs).code == 0
    judge_with_wordings(docs, ["A temple in Kyoto."], [["temple"]])
    done = tuned(run, docs)
    assert done["wordings"]["reason"] == "30 judged questions with other wordings are needed, and there are 1"
    assert done["adopted"] is False
    assert "These weights stay: 30 judged questions" in run("tune", "--docs-dir", docs).out


def test_an_empty_tool_is_told_so(run: Run, docs: Path) -> None:
    assert run("reindex", "--docs-dir", docs).code == 0
    assert "too small" in tuned(run, docs)["reason"]


def test_a_tool_with_vectors_tries_them_too_and_changes_no_more_than_it_must(
    run: Run, docs: Path, tmp_path: Path
) -> None:
    corpus(docs, "both")
    assert run("reindex", "--docs-dir", docs, "--config", config(tmp_path, WORDS_ALONE)).code == 0
    alone = tuned(run, docs, "--config", str(config(tmp_path, WORDS_ALONE)))
    assert alone["tried"] == 2, "loanwords are all there is to try without vectors"
    assert run("reindex", "--force", "--docs-dir", docs, "--config", config(tmp_path, POOR)).code == 0
    done = tuned(run, docs, "--config", str(config(tmp_path, POOR)))
    assert done["tried"] > alone["tried"] + 8
    assert done["best"]["loanwords"] is True, "no loanwords are at stake here"
    assert done["adopted"] is True


def test_the_calls_own_arguments_win_over_the_tools_which_win_over_the_settings(docs: Path, open_docs: Opener) -> None:
    (docs / "a.md").write_text("# Alpha\n\nbeta gamma", encoding="utf-8")
    library = open_docs(BUNKO_SEARCH_K1="1.7", BUNKO_SEARCH_MODE="bm25")
    library.reindex()
    tool = library.maintenance.set_search_settings("documents", {"mode": "hybrid", "k1": 0.4})
    assert library.search("alpha").mode == "hybrid"
    assert library.search("alpha", mode="bm25").mode == "bm25"
    assert library.search("alpha", use_tool_settings=False).mode == "bm25"
    request = library.build_request("alpha", tools=[tool])
    assert (request.options.k1, request.options.b) == (0.4, 0.75)
    assert library.build_request("alpha", tools=[tool], k1=0.9).options.k1 == 0.9
    assert library.build_request("alpha").options.k1 == 1.7


def test_tools_that_disagree_are_searched_together_as_the_settings_say(docs: Path, open_docs: Opener) -> None:
    from bunko.types import Tool

    library = open_docs()
    one, same = (Tool(name, options=ToolOptions(search={"k1": 0.4})) for name in ("one", "same"))
    other, none = Tool("other", options=ToolOptions(search={"k1": 2.0})), Tool("none")
    assert library.build_request("x", tools=[one]).options.k1 == 0.4
    assert library.build_request("x", tools=[one, same]).options.k1 == 0.4
    assert library.build_request("x", tools=[one, other]).options.k1 == 1.2
    assert library.build_request("x", tools=[one, none]).options.k1 == 1.2


def test_what_makes_no_sense_in_a_tools_own_settings_is_left_out(docs: Path, open_docs: Opener) -> None:
    from bunko.types import Tool

    wrong = {"mode": "telepathy", "k1": -1, "b": "x", "vector_weight": float("nan"), "loanwords": 1, "top_k": 900}
    library = open_docs()
    invalid: tuple[Any, ...] = (wrong, [], "k1", {"where": {}, 3: 4})
    for options in invalid:
        tool = Tool("odd", options=ToolOptions.from_json({"search": options}))
        assert library.build_request("x", tools=[tool]) == library.build_request("x")


def test_a_tuned_tool_travels_with_its_settings(run: Run, tool: Path, tmp_path: Path) -> None:
    best = tuned(run, tool)["best"]
    assert run("export", "--docs-dir", tool, "--output", tmp_path / "packed.bunko").code == 0
    config = tmp_path / "none.toml"
    config.write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
    place = ("--library", tmp_path / "there", "--config", config)
    done = run("import-pack", tmp_path / "packed.bunko", "--yes", "-n", "copy", *place)
    assert done.code == 0, done.err
    found = run("status", "-n", "copy", *place, "--json").json()
    assert found["options"]["search"] == best  # type: ignore[index]


def test_a_pack_cannot_bring_settings_that_make_no_sense(
    run: Run, docs: Path, open_docs: Opener, tmp_path: Path
) -> None:
    (docs / "a.md").write_text("# Alpha\n\nbeta gamma", encoding="utf-8")
    library = open_docs()
    library.reindex()
    [tool] = library.tools()
    library.store.tools.put(replace(tool, options=ToolOptions(search={"mode": "telepathy"})))
    assert run("export", "--docs-dir", docs, "--output", tmp_path / "packed.bunko").code == 0
    done = run("import-pack", tmp_path / "packed.bunko", "--yes", "--library", tmp_path / "there")
    assert done.code != 0
    assert "'search' has the wrong type" in done.err


def test_a_terminal_sees_tables(tool: Path, tmp_path: Path) -> None:
    terminal = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="160")
    shown = at_a_terminal("tune", "--docs-dir", tool, env=terminal)
    assert "Trying settings" in shown
    assert "checked on  " in shown
    assert "Adopted: documents uses these settings from now on." in shown


def test_undo_and_dry_run_do_not_go_together(run: Run, docs: Path) -> None:
    assert run("tune", "--undo", "--dry-run", "--docs-dir", docs).code == 2


def test_what_is_tuned_is_what_a_search_uses(run: Run, tool: Path) -> None:
    def first(query: str) -> str:
        ran = run("search", query, "--docs-dir", tool, "--json").json()
        return str(ran["results"][0]["file_path"])  # type: ignore[index]

    queries = {f"{word(2 * n)} {word(2 * n + 1)}": f"long{n}.md" for n in range(45)}
    before = sum(first(query) == uri for query, uri in list(queries.items())[:12])
    assert json.dumps(tuned(run, tool)["best"])
    after = sum(first(query) == uri for query, uri in list(queries.items())[:12])
    assert after > before
