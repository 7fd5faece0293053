"""A crawl that is killed or interrupted goes on where it was: nothing is lost, and nothing stored is fetched twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.interfaces.cli.main import INTERRUPTED_EXIT_CODE
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.site import Answer, Asked, Reply, Site
from tests.web.articles import article

pytestmark = pytest.mark.slow

PAGES = 60


class Crawled:
    """A site whose pages wait at some point until they are let go, and a crawl of it in another process."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.reached, self.go = threading.Event(), threading.Event()
        self.environ = {
            "BUNKO_CRAWL_ALLOWED_HOSTS": site.host, "RAG_CRAWL_DELAY_SEC": "0", "BUNKO_LIBRARY": str(folder / "lib"),
            "XDG_CONFIG_HOME": str(folder),
        }  # fmt: skip

    def stop_at(self, number: int) -> None:
        answer = self.site.pages[f"/{number}"]

        def held(asked: Asked) -> Reply:
            self.reached.set()
            self.go.wait(60)
            assert not callable(answer)
            return answer

        self.site.pages[f"/{number}"] = held

    def start(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "bunko", "web", "crawl", self.site.url("/"), "--max-pages", "100"]
        return subprocess.Popen(
            words, env=os.environ | self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def opened(self) -> Library:
        return open_library(locate_library(environ=self.environ), environ=self.environ)


@pytest.fixture
def crawled(tmp_path: Path) -> Iterator[Crawled]:
    pages: dict[str, Answer] = {f"/{n}": article(f"頁{n}", f"第{n}回の話。合言葉は鍵{n}番。") for n in range(PAGES)}
    with Site(pages | {"/": article("目次", "", *pages)}) as site:
        made = Crawled(site, tmp_path)
        yield made
        made.go.set()


@pytest.mark.parametrize("stop_at", [0, 20, 45, 59])
def test_a_killed_crawl_goes_on(crawled: Crawled, stop_at: int) -> None:
    crawled.stop_at(stop_at)
    process = crawled.start()
    assert crawled.reached.wait(60)
    if stop_at:  # what came before is written within a moment
        _until_stored(crawled)
    process.kill()
    process.communicate()
    with crawled.opened() as library:
        rows = {page.url: page for page in library.store.pages.select(1)}
        stored = {url for url, page in rows.items() if page.content_hash}
        assert crawled.site.url(f"/{stop_at}") not in stored
        for url in stored - {crawled.site.url("/")}:
            number = url.rpartition("/")[2]
            assert library.search(f"鍵{number}番", top_k=1).hits[0].uri == url
    crawled.go.set()
    before = len(crawled.site.asked)
    ended = crawled.start()
    out, err = ended.communicate(timeout=120)
    assert ended.returncode == 0, err
    again = {crawled.site.address + asked.path for asked in crawled.site.asked[before:]}
    root = {crawled.site.url("/")}
    assert not again & (stored - (root if not stored - root else set())), out
    with crawled.opened() as library:
        assert library.web.status()[0].pages == PAGES + 1
        assert library.web.status()[0].unfinished_crawls == []
        assert {page.state for page in library.store.pages.select(1)} == {"held"}
        assert library.search(f"鍵{stop_at}番", top_k=1).hits[0].uri == crawled.site.url(f"/{stop_at}")
        assert library.store.check() == ""


def test_ctrl_c_ends_a_crawl_at_once_and_the_same_command_goes_on(crawled: Crawled) -> None:
    crawled.stop_at(30)
    process = crawled.start()
    assert crawled.reached.wait(60)
    _until_stored(crawled)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)  # though a page is still being waited for
    assert process.returncode == INTERRUPTED_EXIT_CODE, err
    assert "Stopped after" in err
    with crawled.opened() as library:
        [unfinished] = library.web.status()[0].unfinished_crawls
        assert unfinished.waiting_pages > 0
    crawled.go.set()
    ended = crawled.start()
    _, err = ended.communicate(timeout=120)
    assert ended.returncode == 0, err
    with crawled.opened() as library:
        assert library.web.status()[0].pages == PAGES + 1


def test_two_crawls_of_one_library_take_turns(crawled: Crawled) -> None:
    crawled.stop_at(5)
    first = crawled.start()
    assert crawled.reached.wait(60)
    second = crawled.start()
    assert second.stderr is not None
    assert "Another process is collecting pages" in second.stderr.readline()
    crawled.go.set()
    for process in (first, second):
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    with crawled.opened() as library:
        assert library.web.status()[0].pages == PAGES + 1


def _until_stored(crawled: Crawled) -> None:
    """Wait until some pages are written down while another one keeps the crawl waiting."""
    with crawled.opened() as library:
        for _ in range(600):
            if any(page.content_hash and page.depth for page in library.store.pages.select(1)):
                return
            threading.Event().wait(0.05)
    raise AssertionError("nothing was stored")
