"""`bunko web` as a person or a script calls it, over a real site on loopback."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conftest import Ran, Run
from tests.site import Site, html, text
from tests.web.articles import article

Web = Callable[..., Ran]


@pytest.fixture
def site() -> Iterator[Site]:
    pages = {
        "/": article("目次", "", "/a", "/b", "/gone", "/secret"),
        "/a": article("甲", "甲の本文には葡萄がある。"),
        "/b": article("乙", "Second page about oranges."),
        "/robots.txt": text("User-agent: *\nDisallow: /secret\n"),
    }
    with Site(pages) as made:
        yield made


@pytest.fixture
def web(run: Run, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Web:
    """Run a command over a library that may read the site."""
    monkeypatch.setenv("BUNKO_CRAWL_ALLOWED_HOSTS", site.host)
    monkeypatch.setenv("RAG_CRAWL_DELAY_SEC", "0")
    return lambda *words: run(*words, "--library", tmp_path / "lib")


def test_pages_are_added_searched_and_deleted(web: Web, site: Site) -> None:
    ran = web("web", "add", site.url("/a#part"), site.url("/b"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [f"Added {site.url('/a')} (1 chunk)", f"Added {site.url('/b')} (1 chunk)"]
    ran = web("search", "葡萄", "-n", "knowledge")
    assert ran.out.startswith(f"[1] {site.url('/a')}:L")
    assert "trust: web, fetched 20" in ran.out
    found = web("search", "oranges", "--json").json()["results"][0]  # type: ignore[index]
    assert (found["file_path"], found["trust"], found["tool"]) == (site.url("/b"), "web", "knowledge")
    assert re.fullmatch(r"[0-9a-f]{64}", found["content_hash"])
    assert re.match(r"20\d\d-\d\d-\d\dT", found["fetched_at"])
    ran = web("web", "delete", site.url("/a"))
    assert (ran.code, ran.out) == (0, f"Deleted {site.url('/a')} (1 chunk)\n")
    assert web("web", "delete", site.url("/a")).code == 6
    assert web("search", "葡萄", "--mode", "bm25").out.startswith("No results")


def test_a_page_is_stored_and_found_by_its_words_while_the_embedding_service_is_not_started(
    web: Web, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv("EMBEDDING_PROVIDER", "local")
        monkeypatch.setenv("LMSTUDIO_BASE_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        monkeypatch.setenv("BUNKO_RETRY_MAX_RETRIES", "0")
        for command in (("add", site.url("/a")), ("crawl", site.url("/b")), ("refresh",)):
            ran = web("web", *command)
            assert ran.code == 0
            assert "knowledge has documents without vectors, which are found by their words" in ran.err
        ran = web("search", "葡萄")
        assert (ran.code, site.url("/a") in ran.out) == (0, True)


def test_a_crawl_says_what_came_and_what_did_not(web: Web, site: Site) -> None:
    ran = web("web", "crawl", site.url())
    assert ran.code == 0
    assert ran.out == "3 pages, 3 chunks, 3 added, 0 updated, 0 unchanged, 1 skipped, 1 error\n"
    assert f"Error: {site.url('/gone')}: the server answered 404" in ran.err
    assert f"Skipped: {site.url('/secret')}: robots.txt does not allow it" in ran.err
    found = web("web", "crawl", site.url(), "/[ab]$", "--max-pages", "1", "--json").json()
    assert (found["pages"], found["unchanged"], found["left_out"]) == (1, [site.url("/a")], 1)
    assert found["import"]["unchanged"] == 3  # type: ignore[index]
    ran = web("web", "status")
    assert f"knowledge: 3 pages, 3 chunks, from {site.host} (3)" in ran.out
    assert "the server answered 404" in ran.out
    status = web("web", "status", "--json").json()["tools"][0]  # type: ignore[index]
    assert (status["pages"], status["chunks"], status["unfinished"]) == (3, 3, [])


def test_the_status_lists_the_pages(web: Web, site: Site) -> None:
    web("web", "crawl", site.url())
    lines = web("web", "status").out.splitlines()
    assert lines[0] == f"knowledge: 3 pages, 3 chunks, from {site.host} (3)"
    today = datetime.now(UTC).date()
    pages = [f"  {site.url(path)} (fetched {today})" for path in ("/", "/a", "/b")]
    assert lines[1:4] == pages
    tool = web("web", "status", "--json").json()["tools"][0]  # type: ignore[index]
    assert [page["url"] for page in tool["page_list"]] == [site.url(path) for path in ("/", "/a", "/b")]
    assert {page["fetched_at"][:10] for page in tool["page_list"]} == {str(today)}
    site.pages["/empty"] = html("<main></main>")
    web("web", "add", site.url("/empty"))
    status = web("web", "status")
    assert status.out.splitlines()[:4] == lines[:4], "a page without text is no page of the results"
    web("web", "refresh")
    assert f"  {site.url('/empty')}: contains no text" in web("web", "status").out.splitlines()


def test_adding_a_page_again_says_whether_it_has_changed(web: Web, site: Site) -> None:
    url = site.url("/a")
    assert web("web", "add", url).out == f"Added {url} (1 chunk)\n"
    assert web("web", "add", url).out == f"Unchanged {url} (1 chunk)\n"
    site.pages["/a"] = article("甲", "甲の本文には西瓜がある。")
    assert web("web", "add", url, site.url("/b")).out.splitlines() == [
        f"Added {site.url('/b')} (1 chunk)", f"Updated {url} (1 chunk)"
    ]  # fmt: skip


def test_a_refresh_says_what_changed_and_what_was_kept(web: Web, site: Site) -> None:
    web("web", "add", site.url("/a"), site.url("/b"))
    site.pages["/a"] = article("甲", "甲の本文には西瓜がある。")
    site.pages["/b"] = html("gone", 404)
    ran = web("web", "refresh")
    assert (ran.code, ran.out) == (0, "1 page, 1 chunk, 0 added, 1 updated, 0 unchanged, 1 error\n")
    assert "the stored version is kept" in ran.err
    assert web("search", "oranges", "--mode", "bm25").out.startswith("[1]")
    assert web("web", "refresh", site.url("/b")).code == 8


def test_each_way_to_fail_has_its_exit_code_and_says_what_to_do(web: Web, site: Site, tmp_path: Path) -> None:
    ran = web("web", "add", "http://169.254.169.254/latest/meta-data")
    assert (ran.code, "crawl.allowed_hosts" in ran.err) == (7, True)
    assert web("web", "add", "not a url").code == 7
    ran = web("web", "add", site.url("/gone"), site.url("/a"))
    assert (ran.code, ran.out) == (8, f"Added {site.url('/a')} (1 chunk)\n")
    assert "the server answered 404" in ran.err
    ran = web("web", "crawl", site.url(), "([")
    assert (ran.code, "not a regular expression" in ran.err) == (4, True)
    assert web("web", "crawl", site.url("/gone")).code == 8
    assert web("web", "status", "-n", "nothing").code == 6
    assert web("web", "add").code == 2
    assert web("web", "crawl", site.url(), "--depth", "-1").code == 2


def test_other_commands_take_a_tool_of_web_pages_as_any(web: Web, site: Site, tmp_path: Path) -> None:
    assert web("tool", "add", "-n", "site", "-d", "A site", "--kind", "web").code == 0
    web("web", "add", site.url("/a"))
    assert "site: active, 1 document, 1 chunk" in web("status").out
    assert "the web" in web("status", "-n", "site").out
    assert web("status", "-n", "site", "--json").json()["source_state"] == "ok"
    assert web("doctor").code == 0
    assert web("tool", "check").code in (0, 1)
    assert web("import", "-n", "site", "--mode", "replace").out.startswith("0 added, 1 updated")
    assert web("import", "--all").out.startswith("0 added, 0 updated, 0 deleted, 1 unchanged")
    assert web("tool", "ls", "--all").out.startswith("site\tactive")
    ran = web("export", "-n", "site", "-o", tmp_path / "x.bunko")
    assert (ran.code, "Packs support only" in ran.err) == (10, True)
    ran = web("watch", "-n", "site")
    assert (ran.code, "no folder or file to watch" in ran.err) == (3, True)
    assert web("tool", "delete", "-n", "site", "-y").code == 0
    assert web("web", "status").out == "No web pages yet.\n"


def test_titles_and_addresses_cannot_steer_a_terminal(web: Web, site: Site) -> None:
    site.pages["/x"] = article("\x1b[2Jtitle", "body \x1b]0;owned\x07 of the page")
    assert web("web", "add", site.url("/x")).code == 0
    shown = web("search", "owned body").out + web("web", "status").out + web("status", "-n", "knowledge").out
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_docs_folder_may_not_say_what_is_fetched(run: Run, tmp_path: Path, site: Site) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bunko.toml").write_text(
        f'[crawl]\nallowed_hosts = ["{site.host}"]\nuser_agent = "x"\n[safety]\nurl_check = false\n', encoding="utf-8"
    )
    ran = run("web", "add", site.url("/a"), "--docs-dir", docs)
    assert ran.code == 7
    assert "crawl.allowed_hosts, crawl.user_agent in" in ran.err
    assert site.asked == []


@pytest.mark.slow
def test_a_person_at_a_terminal_sees_a_bar_and_a_table(site: Site, tmp_path: Path) -> None:
    environ = os.environ | {
        "BUNKO_CRAWL_ALLOWED_HOSTS": site.host, "RAG_CRAWL_DELAY_SEC": "0", "TERM": "xterm", "COLUMNS": "200",
        "XDG_CONFIG_HOME": str(tmp_path), "BUNKO_LIBRARY": str(tmp_path / "lib"),
    }  # fmt: skip
    shown = b""
    for words in (["web", "crawl", site.url()], ["web", "status"]):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "bunko", *words], env=environ, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
        )
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(ours)
        assert process.wait() == 0
    text_shown = shown.decode(errors="replace")
    assert "Crawling" in text_shown
    assert "oldest check" in text_shown
    assert re.search(rf"{re.escape(site.url('/a'))} +just now", text_shown)
