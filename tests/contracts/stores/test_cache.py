"""What every store promises about the search log and cached answers."""

from __future__ import annotations

from bunko.protocols import Store


def test_kept_searches_are_counted_bounded_and_forgotten(store: Store) -> None:
    assert store.cache.logged_searches() == []
    assert store.cache.clear_searches() == 0
    for at, (query, tool) in enumerate([("a", ""), ("b", ""), ("a", ""), ("a", "docs"), ("c", "")]):
        assert store.cache.log_search(query, tool, f"2024-01-0{at + 1}", limit=3)
    searches = [
        (logged.query, logged.tool, logged.count, logged.last_searched_at) for logged in store.cache.logged_searches()
    ]
    # Four were made, three have room, and b was asked longest ago.
    assert searches == [("a", "", 2, "2024-01-03"), ("a", "docs", 1, "2024-01-04"), ("c", "", 1, "2024-01-05")]
    assert store.cache.clear_searches() == 3
    assert store.cache.logged_searches() == []
    assert store.cache.log_search("d", "", "2024-01-09", limit=3)
    assert [logged.query for logged in store.cache.logged_searches()] == ["d"]


def test_a_store_keeps_the_latest_answers_of_each_kind_while_they_are_worth_something(store: Store) -> None:
    for number in range(5):
        words = f"words {number}"
        assert store.cache.cache_answer("rewrite", b"%d" % number, words, now=0.0, expires_at=100.0 + number, limit=3)
    store.cache.cache_answer("summary", b"1", "text", now=0.0, expires_at=50.0, limit=3)
    assert [store.cache.cached_answer("rewrite", b"%d" % number, 0.0) for number in range(5)] == [
        None, None, "words 2", "words 3", "words 4",
    ]  # fmt: skip
    assert store.cache.cached_answer("summary", b"1", 0.0) == "text"
    assert store.cache.cached_answer("summary", b"1", 50.0) is None
    assert store.cache.cached_answer("rewrite", b"2", 102.0) is None
    store.cache.cache_answer("rewrite", b"4", "other words", now=103.5, expires_at=200.0, limit=3)
    assert store.cache.cached_answer("rewrite", b"4", 150.0) == "other words"
    assert store.cache.cached_answer("rewrite", b"3", 0.0) is None  # it was out of date, and was forgotten
    assert store.generation() == 0


def test_a_store_caches_many_answers_at_once_each_with_its_own_time(store: Store) -> None:
    keys = [b"%d" % number for number in range(1_200)]
    store.cache.cache_answers("threat", dict.fromkeys(keys[:3], ("old", 10.0)), now=0.0, limit=2_000)
    store.cache.cache_answers("robots", {b"0": ("rules", 300.0)}, now=0.0, limit=1)
    answers = {key: (f"answer {key!r}", 100.0 + index) for index, key in enumerate(keys)}
    store.cache.cache_answers("threat", answers, now=0.0, limit=1_000)
    assert store.cache.cached_answers("threat", [*keys, b"unknown"], 0.0) == {
        key: f"answer {key!r}" for key in keys[200:]
    }
    assert list(store.cache.cached_answers("threat", keys, 1_298.0)) == [keys[-1]]
    assert store.cache.cached_answers("robots", [b"0"], 0.0) == {b"0": "rules"}
    assert store.cache.cached_answers("robots", [], 0.0) == {}
    assert store.generation() == 0


def test_kept_searches_follow_a_tool_that_is_renamed(store: Store) -> None:
    store.cache.rename_tool("old", "new")
    for query, tool in (("寺", "old"), ("寺", "old"), ("寺", "new"), ("庭", ""), ("山", "other")):
        store.cache.log_search(query, tool, "2024-05-01T00:00:00", limit=10)
    store.cache.rename_tool("old", "new")
    found = {(search.query, search.tool): search.count for search in store.cache.logged_searches()}
    assert found == {("寺", "new"): 2, ("庭", ""): 1, ("山", "other"): 1}


def test_a_search_of_any_length_is_logged_or_left_out_without_an_error(store: Store) -> None:
    long_query = "".join(map(chr, range(0x4E00, 0x4E00 + 4000)))
    assert store.cache.log_search(long_query, "", "2024-01-01", limit=3) in (True, False)
    assert store.cache.log_search("short", "", "2024-01-02", limit=3)
    assert "short" in [logged.query for logged in store.cache.logged_searches()]
