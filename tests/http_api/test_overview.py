"""The library as a whole over HTTP: the map, the calendar, tags over the years, and selections of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.interfaces.api import app
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.http_api.client import ApiClient
from tests.http_api.test_description import check_reply

MEMOS = {
    "2024-05-01-船.md": ("船と港", ["海", "旅"], "港から船が出る。海は静かだった。"),
    "2024-05-01-網.md": ("網", ["海"], "漁師が網を直している。"),
    "2025-01-03-餅.md": ("餅", ["食"], "正月に餅を焼いた。"),
}
NOTES = {
    "bread.md": "---\ndate: 2023-02-01\ntags: [食]\n---\n# Bread\n\nKnead the dough and bake the bread.\n",
    "moon.md": "---\ndate: 2025-02-01\n---\n# Moon\n\nThe telescope shows craters of the moon.\n",
}


@pytest.fixture
def library(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, text in NOTES.items():
        (docs / name).write_text(text, "utf-8")
    folder = tmp_path / "memos"
    folder.mkdir()
    for name, (title, tags, text) in MEMOS.items():
        content = f"---\ntitle: {title}\ndate: {name[:10]}\ntags: [{', '.join(tags)}]\n---\n# {title}\n\n{text}\n"
        (folder / name).write_text(content, "utf-8")
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "3600"}
    with open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ) as library:
        library.add(docs, name="notes")
        library.add(folder, name="memos", kind="memos")
        library.import_()
        yield library


@pytest.fixture
def client(library: Library) -> ApiClient:
    return ApiClient(library)


def test_a_map_has_a_place_and_a_group_for_each_document(client: ApiClient) -> None:
    reply = client.get("/map").json
    check_reply("/map", reply)
    assert len(reply["documents"]) == 5
    assert reply["groups"] == [
        {"name": "memos", "kind": "value", "count": 3},
        {"name": "notes", "kind": "value", "count": 2},
    ]
    places = {document["title"]: (document["x"], document["y"]) for document in reply["documents"]}
    assert len(set(places.values())) == 5
    assert reply["color"] == "tool"
    moon = next(document for document in reply["documents"] if document["title"] == "Moon")
    assert (moon["tool"], moon["path"], moon["date"], moon["group"]) == ("notes", "moon.md", "2025-02-01", 1)


def test_a_map_is_coloured_by_tag_or_year(client: ApiClient) -> None:
    tags = client.get("/map", color="tag").json["groups"]
    assert [(group["name"], group["kind"], group["count"]) for group in tags] == [
        ("海", "value", 2), ("食", "value", 2), ("", "none", 1),
    ]  # fmt: skip
    years = client.get("/map", color="year").json["groups"]
    assert [(group["name"], group["count"]) for group in years] == [("2023", 1), ("2024", 2), ("2025", 2)]
    assert client.get("/map", color="size").status == 400


def test_what_colours_mean_is_chosen_if_it_is_not_said(client: ApiClient) -> None:
    assert client.get("/map").json["color"] == "tool"
    assert client.limited_to(read=("memos",)).get("/map").json["color"] == "year"
    kinds = client.get("/map", color="kind").json
    assert [group["name"] for group in kinds["groups"]] == [".md"]
    languages = client.get("/map", color="language").json["groups"]
    assert [(group["name"], group["count"]) for group in languages] == [("ja", 3), ("en", 2)]


def test_areas_have_names_by_language_and_their_documents(client: ApiClient, library: Library, tmp_path: Path) -> None:
    assert client.get("/map").json["areas"] == [], "the titles of few documents can all be read"
    for number in range(80):
        subject, sentence = (("珊瑚礁", "海の生き物が集まる場所。"), ("Income tax", "Fill in the form."))[number % 2]
        (tmp_path / "memos" / f"{number:02}.md").write_text(f"# {subject}\n\n{sentence} {number}\n", "utf-8")
    library.import_("memos")
    reply = client.get("/map").json
    check_reply("/map", reply)
    first = [area for area in reply["areas"] if area["level"] == 0]
    assert {"ja": "珊瑚礁"} in [area["names"] for area in first]
    assert {"en": "Income tax"} in [area["names"] for area in first]
    for number, area in enumerate(first):
        assert sum(document["area"] == number for document in reply["documents"]) == area["count"]
        left, low, right, high = area["box"]
        assert left <= area["x"] <= right
        assert low <= area["y"] <= high
    limited = client.limited_to(read=("notes",)).get("/map").json
    assert limited["areas"] == []


def test_an_unchanged_map_is_not_sent_again(client: ApiClient) -> None:
    etag = client.get("/map").headers["etag"]
    assert client.get("/map", headers={"If-None-Match": etag}).status == 304


def test_a_query_is_near_the_documents_about_it(client: ApiClient) -> None:
    reply = client.get("/map/position", q="bake bread dough").json
    check_reply("/map/position", reply)
    places = {document["title"]: document for document in client.get("/map").json["documents"]}

    def distance(title: str) -> float:
        place = places[title]
        return float((place["x"] - reply["x"]) ** 2 + (place["y"] - reply["y"]) ** 2)

    assert distance("Bread") < distance("Moon")
    assert distance("Bread") < distance("網")
    assert client.get("/map/position", q=" ").status == 400


def test_memos_are_counted_by_day(client: ApiClient) -> None:
    reply = client.get("/calendar").json
    check_reply("/calendar", reply)
    assert reply == {
        "tools": ["memos"],
        "days": [{"date": "2024-05-01", "count": 2}, {"date": "2025-01-03", "count": 1}],
        "total": 3,
        "undated": 0,
    }
    assert client.get("/calendar", tag="旅").json["total"] == 1
    assert client.get("/calendar", since="2025").json["total"] == 1
    assert client.get("/calendar", tool="notes").json["days"][0] == {"date": "2023-02-01", "count": 1}


def test_without_memos_all_documents_are_counted(client: ApiClient) -> None:
    limited = client.limited_to(read=("notes",))
    assert limited.get("/calendar").json == {
        "tools": [],
        "days": [{"date": "2023-02-01", "count": 1}, {"date": "2025-02-01", "count": 1}],
        "total": 2,
        "undated": 0,
    }


def test_tags_are_counted_by_year(client: ApiClient) -> None:
    reply = client.get("/tags/years").json
    check_reply("/tags/years", reply)
    assert reply == {
        "years": [2023, 2024, 2025],
        "tags": [
            {"tag": "海", "total": 2, "counts": [0, 2, 0]},
            {"tag": "食", "total": 2, "counts": [1, 0, 1]},
            {"tag": "旅", "total": 1, "counts": [0, 1, 0]},
        ],
    }
    assert len(client.get("/tags/years", limit=1).json["tags"]) == 1


def test_a_search_is_limited_to_a_selection(client: ApiClient) -> None:
    body = {"documents": {"notes": ["bread.md"], "memos": ["2024-05-01-船.md"]}}
    created = client.post("/selections", body)
    assert created.status == 201
    check_reply("/selections", created.json, method="post", status="201")
    selection = created.json["id"]
    assert created.json["count"] == 2
    results = client.get("/search", q="telescope moon bread 海", selection=selection).json["results"]
    assert {result["title"] for result in results} == {"Bread", "船と港"}
    newest = client.get("/search", selection=selection).json["results"]
    assert [result["title"] for result in newest] == ["船と港", "Bread"], "without words: the newest documents"
    listed = client.get("/documents", selection=selection, sort="name").json
    assert [document["path"] for document in listed["documents"]] == ["2024-05-01-船.md", "bread.md"]
    assert client.post("/selections", body).json["id"] == selection, "the same documents have the same id"


def test_pages_of_a_search_within_a_selection_follow_each_other(client: ApiClient) -> None:
    selection = client.post("/selections", {"documents": {"memos": list(MEMOS)}}).json["id"]
    first = client.get("/search", q="海 港 餅 網", selection=selection, top_k=2).json
    rest = client.get("/search", q="海 港 餅 網", selection=selection, top_k=2, cursor=first["next_cursor"]).json
    titles = [result["title"] for reply in (first, rest) for result in reply["results"]]
    assert sorted(titles) == ["網", "船と港", "餅"]


def test_a_selection_that_does_not_exist_says_what_to_do(client: ApiClient) -> None:
    reply = client.get("/search", q="x", selection="nothing")
    assert (reply.status, reply.json["hint"]) == (404, "Choose the documents again, on the map or with the API.")
    assert client.post("/selections", {"documents": {}}).status == 400
    assert client.post("/selections", {"documents": {"memos": []}}).status == 400
    assert client.post("/selections", {"documents": {"nobody": ["a.md"]}}).status == 404


def test_a_library_without_documents_has_an_empty_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with open_library(locate_library(library=tmp_path / "empty", environ={}), environ={}) as library:
        client = ApiClient(library)
        assert client.get("/map").json["documents"] == []
        assert client.get("/map/position", q="x").json == {"x": None, "y": None}
        assert client.get("/calendar").json == {"tools": [], "days": [], "total": 0, "undated": 0}
        assert client.get("/tags/years").json == {"years": [], "tags": []}


def test_a_map_that_is_computed_takes_no_place_of_a_search(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_CALLS", 0)
    monkeypatch.setattr(app, "MAX_WAIT_SECONDS", 0.2)
    client = ApiClient(library)
    assert client.get("/search", q="x").status == 503, "there is no thread for it"
    assert client.get("/map").status == 200


# What somebody else may read


def test_a_map_shows_only_what_a_token_may_read_and_depends_on_nothing_else(
    client: ApiClient, library: Library, tmp_path: Path
) -> None:
    limited = client.limited_to(read=("notes",))
    before, position = limited.get("/map"), limited.get("/map/position", q="bread").json
    assert {document["tool"] for document in before.json["documents"]} == {"notes"}
    assert before.json["left_out"] == 0
    (tmp_path / "memos" / "2026-01-01-新.md").write_text("# 秘密\n\n隠れた文書。\n", "utf-8")
    library.import_("memos")
    after = limited.get("/map")
    assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])
    assert limited.get("/map/position", q="bread").json == position


def test_a_selection_of_somebody_else_shows_nothing_that_is_hidden(client: ApiClient) -> None:
    body = {"documents": {"memos": list(MEMOS), "notes": ["moon.md"]}}
    selection = client.post("/selections", body).json["id"]
    limited = client.limited_to(read=("notes",))
    results = limited.get("/search", q="海 moon", selection=selection).json["results"]
    assert [result["title"] for result in results] == ["Moon"]
    hidden = limited.post("/selections", {"documents": {"memos": ["2024-05-01-船.md"]}})
    unknown = limited.post("/selections", {"documents": {"nobody": ["2024-05-01-船.md"]}})
    assert hidden.status == unknown.status == 404
    assert hidden.body.replace(b"memos", b"nobody") == unknown.body


def test_hidden_days_and_tags_are_not_counted(client: ApiClient) -> None:
    limited = client.limited_to(read=("notes",))
    assert limited.get("/tags/years").json == {
        "years": [2023],
        "tags": [{"tag": "食", "total": 1, "counts": [1]}],
    }
    assert limited.get("/calendar", tool="memos").status == 404
