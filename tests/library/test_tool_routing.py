"""Descriptions: what a tool's documents propose, and whether an assistant could tell tools apart by them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bunko.errors import UnknownName
from bunko.interfaces.cli.main import main
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.tools.routing import RoutingReport, measure_routing
from bunko.types import Tool
from tests.conftest import Run


def page(title: str, text: str, *sections: tuple[str, str]) -> str:
    parts = [f"# {title}\n\n{text}\n", *(f"## {heading}\n\n{body}\n" for heading, body in sections)]
    return "\n".join(parts)


COOKING = {
    "soup.md": page(
        "Tomato soup",
        "Simmer the tomatoes with garlic.",
        ("Roasting tomatoes", "Roast them in olive oil."),
        ("Freezing tomato soup", "Tomato soup keeps for a month."),
    ),
    "bread.md": page(
        "Sourdough bread",
        "A sourdough starter needs flour and water.",
        ("Kneading dough", "Knead the bread dough for ten minutes."),
        ("Baking sourdough bread", "Bake it with olive oil on a hot stone."),
    ),
    "pasta.md": page(
        "Fresh pasta",
        "Fresh pasta is flour and eggs.",
        ("Rolling pasta dough", "Roll the pasta dough thin."),
    ),
}
NETWORK = {
    "dns.md": page(
        "DNS records",
        "A DNS record maps a name to an address.",
        ("Caching DNS records", "Resolvers keep them."),
    ),
    "routing.md": page(
        "Packet routing",
        "A router forwards packets.",
        ("Packet loss", "Packet loss slows a connection."),
        ("Router firmware", "The router firmware fixes packet loss."),
    ),
    "tls.md": page(
        "TLS certificates",
        "TLS certificates prove a name.",
        ("Renewing TLS certificates", "Renew early."),
    ),
}
RYORI = {
    "miso.md": page(
        "味噌汁",
        "味噌汁は出汁と味噌で作る。",
        ("出汁の取り方", "昆布と鰹節で出汁を取る。"),
        ("味噌汁の具", "豆腐とわかめ。"),
    ),
    "nimono.md": page(
        "肉じゃが",
        "肉じゃがはじゃがいもと牛肉の煮物。",
        ("じゃがいもの下ごしらえ", "じゃがいもの皮をむく。"),
    ),
    "tempura.md": page(
        "天ぷら",
        "天ぷらの衣は冷水で溶く。",
        ("天ぷらの揚げ油", "揚げ油は百八十度。"),
        ("天ぷらの衣", "衣は薄く。"),
    ),
}
KEIRI = {
    "keihi.md": page(
        "経費精算",
        "経費精算は領収書を添えて申請する。",
        ("交通費の精算", "交通費は月末に精算する。"),
        ("領収書の保管", "七年。"),
    ),
    "kyuyo.md": page(
        "給与計算",
        "給与計算は二十五日。",
        ("社会保険料の控除", "社会保険料は給与から控除する。"),
        ("源泉徴収", "源泉徴収票。"),
    ),
    "zei.md": page(
        "消費税の申告",
        "消費税の申告書を税務署へ。",
        ("消費税の税率", "税率は一割。"),
    ),
}
GOOD = {
    "cooking": "Recipes: tomato soup, sourdough bread and pasta, from dough to baking.",
    "network": "How DNS, packets, routers and TLS certificates work.",
    "ryori": "味噌汁、肉じゃが、天ぷらの作り方。出汁、じゃがいも、衣について調べるときに使う。",
    "keiri": "経費精算、給与計算、消費税と社会保険料。領収書や源泉徴収を調べるときに使う。",
}
FOLDERS = {"cooking": COOKING, "network": NETWORK, "ryori": RYORI, "keiri": KEIRI}

Kitchen = Callable[..., Library]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kitchen]:
    """Open a library with some of the folders imported, under the descriptions that are given."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    opened: list[Library] = []

    def opener(**descriptions: str) -> Library:
        environ = {"BUNKO_EMBEDDING_PROVIDER": "none"}
        library = open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ)
        opened.append(library)
        for name, description in descriptions.items():
            folder = tmp_path / name
            folder.mkdir()
            for file, text in FOLDERS[name].items():
                (folder / file).write_text(text, encoding="utf-8")
            library.tools.add(name, description, folder)
            library.reindex(tool=name, workers=1)
        return library

    yield opener
    for library in opened:
        library.close()


def codes(routing: RoutingReport) -> set[str]:
    return {warned.code for warned in routing.warnings}


def test_good_descriptions_get_their_own_questions(shelf: Kitchen) -> None:
    routing = shelf(**GOOD).maintenance.measure_routing()
    assert routing.warnings == []
    assert (routing.accuracy or 0) > 0.9
    assert all(route.questions >= 3 for route in routing.routes)


@pytest.mark.parametrize(("one", "other"), [("cooking", "network"), ("ryori", "keiri")])
def test_swapped_descriptions_are_told_with_who_takes_what(shelf: Kitchen, one: str, other: str) -> None:
    routing = shelf(**{one: GOOD[other], other: GOOD[one]}).maintenance.measure_routing()
    assert codes(routing) == {"lost"}
    assert {warned.tools for warned in routing.warnings} == {(one, other), (other, one)}
    assert (routing.accuracy or 0) < 0.2
    for route in routing.routes:
        taker = other if route.tool == one else one
        assert route.examples[taker]
        assert route.lost_to[taker] > route.right
    assert f"bunko tool describe -n {one} --write" in " ".join(warned.hint for warned in routing.warnings)


@pytest.mark.parametrize("text", ["Tomato soup and DNS records of ours", "味噌汁と経費精算の手引き"])
def test_one_description_for_two_tools_is_told(shelf: Kitchen, text: str) -> None:
    routing = shelf(cooking=text, ryori=text, network=GOOD["network"]).maintenance.measure_routing()
    assert ("same", ("cooking", "ryori")) in {(warned.code, warned.tools) for warned in routing.warnings}


def test_descriptions_in_nearly_the_same_words_are_told() -> None:
    one = Tool("one", description="Network routers, DNS records, TLS certificates and firewalls")
    other = Tool("other", description="network router, DNS record, TLS certificate, firewalls")
    apart = Tool("apart", description="Sourdough bread and pasta recipes")
    found = measure_routing([one, other, apart], {}).warnings
    assert [(warned.code, warned.tools) for warned in found] == [("alike", ("one", "other"))]


@pytest.mark.parametrize(
    ("description", "code"),
    [
        ("", "empty"),
        ("docs", "generic"),
        ("My documents and files", "generic"),
        ("いろいろな資料", "generic"),
        ("資料を検索するときに使う", "generic"),
        ("DNS records and routers. " * 40, "long"),
        ("DNS records and routers", None),
        ("社内の経費精算と給与", None),
    ],
)
def test_a_description_is_judged_by_itself_where_there_is_one_tool(description: str, code: str | None) -> None:
    found = measure_routing([Tool("kb", description=description)], {"kb": ["Where is it?"] * 5})
    assert [warned.code for warned in found.warnings] == ([code] if code else [])
    assert found.accuracy is None


def test_a_tie_counts_half_and_a_question_without_a_match_is_a_guess() -> None:
    tools = [Tool("a", description="router manual"), Tool("b", description="router handbook")]
    routing = measure_routing(tools, {"a": ["router manual", "router", "banana"]})
    route = routing.routes[0]
    assert (route.right, route.tied, route.unmatched, route.credit) == (1, 1, 1, 2.0)
    assert routing.matched_counts == (1.5, 2)
    assert route.examples == {"b": ["router"]}


def test_bad_descriptions_replaced_by_the_proposed_ones_route_better(shelf: Kitchen) -> None:
    library = shelf(**dict.fromkeys(GOOD, "documents"))
    before = library.maintenance.measure_routing()
    assert codes(before) >= {"same", "generic"}
    for name in GOOD:
        proposal = library.maintenance.propose_description(name)
        assert len(proposal.description) <= 300
        assert proposal.language == ("ja" if name in ("ryori", "keiri") else "en")
        library.tools.update(name, description=proposal.description)
    after = library.maintenance.measure_routing()
    assert after.warnings == []
    assert (after.accuracy or 0) > max(0.8, 2 * (before.accuracy or 0))


def test_a_hidden_tool_takes_no_part(shelf: Kitchen) -> None:
    library = shelf(cooking=GOOD["cooking"], network=GOOD["cooking"])
    assert "same" in codes(library.maintenance.measure_routing())
    library.tools.set_active("network", active=False)
    assert library.maintenance.measure_routing().warnings == []


def test_a_tool_without_documents_has_nothing_to_propose(shelf: Kitchen, tmp_path: Path) -> None:
    library = shelf()
    library.tools.add("empty", "Nothing yet", tmp_path)
    with pytest.raises(UnknownName, match="has no documents") as told:
        library.maintenance.propose_description("empty")
    assert "bunko import -n empty" in told.value.hint
    assert library.maintenance.measure_routing().empty_tools == ["empty"]


def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        main([*arguments, "--library", str(tmp_path / "library")])
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_command_shows_the_proposal_beside_the_present_one_and_keeps_it_if_asked(
    shelf: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf(ryori="資料", network=GOOD["network"])
    code, out, err = run(capsys, tmp_path, "tool", "describe", "-n", "ryori")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "current:  資料"
    assert lines[1].startswith("proposal: 「ryori」フォルダーの文書3件。")
    assert "天ぷら" in lines[2]
    assert "--write" in err
    assert "資料" in run(capsys, tmp_path, "tool", "ls", "--all", "--format", "table")[1]
    code, out, _ = run(capsys, tmp_path, "tool", "describe", "-n", "ryori", "--write", "--language", "en", "--json")
    told = json.loads(out)
    assert (code, told["present"], told["written"], told["language"]) == (0, "資料", True, "en")
    assert told["proposal"].startswith("3 documents from the folder ryori, mainly about ")
    assert told["proposal"] in run(capsys, tmp_path, "tool", "ls", "--all", "--format", "table")[1]
    assert {"text", "weight", "language"} == set(told["phrases"][0])


def test_the_check_ends_with_1_if_it_warns_and_0_if_all_is_well(
    shelf: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = shelf(cooking=GOOD["network"], network=GOOD["cooking"])
    code, out, _ = run(capsys, tmp_path, "tool", "check")
    assert code == 1
    assert "routed to network" in out
    assert "warn cooking:" in out
    code, out, _ = run(capsys, tmp_path, "tool", "check", "--json")
    told = json.loads(out)
    assert code == 1
    assert told["warnings"][0]["code"] == "lost"
    assert told["tools"][0]["taken"][0]["tool"] == "network"
    for name in ("cooking", "network"):
        library.tools.update(name, description=GOOD[name])
    code, out, _ = run(capsys, tmp_path, "tool", "check")
    assert code == 0
    assert out.splitlines()[-1] == "An assistant can tell these tools apart."


def test_a_person_sees_which_tools_get_the_questions_of_others(
    shelf: Kitchen, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bunko.interfaces.cli.commands.tool import show_routing

    monkeypatch.setenv("COLUMNS", "120")
    show_routing(shelf(cooking=GOOD["network"], network=GOOD["cooking"]).maintenance.measure_routing())
    out = capsys.readouterr().out
    assert "Where questions are routed" in out
    assert re.search(r"^cooking +\d+% +network \(\d+\)", out, re.M)
    assert "bunko tool describe -n cooking --write" in out.replace("\n", " ")


def test_where_no_tool_is_active_the_check_says_so(run: Run, docs: Path) -> None:
    run("tool", "add", "-n", "api", "-d", "How users sign in", "-s", docs)
    run("tool", "disable", "-n", "api")
    ran = run("tool", "check")
    assert ran.code == 0
    assert ran.out.startswith("No active tools to check.")
