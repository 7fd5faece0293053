"""What robots.txt allows, from a real site whose robots.txt is missing, broken, huge, moved or hostile."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.robots import Robots
from bunko.sources.web.site_cache import SiteCache
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Answer, Asked, Reply, Site, html, text


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": html("<p>home")}) as site:
        yield site


@pytest.fixture
def fetcher(site: Site) -> Iterator[Fetcher]:
    with Fetcher(Guard((site.host,)), timeout=5, max_bytes=1000) as fetcher:
        yield fetcher


def rules(*lines: str) -> Reply:
    return text("\n".join(lines))


def verdicts(site: Site, fetcher: Fetcher, *paths: str) -> list[bool]:
    robots = Robots(fetcher)
    return [robots.allows(site.url(path)) for path in paths]


def test_the_longest_rule_decides_and_allow_wins_a_tie(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules(
        "User-agent: *", "Disallow: /a", "Allow: /a/b", "Disallow: /a/b/c", "Allow: /tie", "Disallow: /tie"
    )
    assert verdicts(site, fetcher, "/", "/a", "/ab", "/a/x", "/a/b", "/a/b/x", "/a/b/c", "/a/b/cd", "/tie", "/A") == [
        True, False, False, False, True, True, False, False, True, True,
    ]  # fmt: skip


def test_wildcards_and_ends_are_understood(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /*.pdf$", "Disallow: /*/private/", "Disallow: /*?s=")
    paths = ["/x.pdf", "/x.pdf?v=1", "/a/x.pdf", "/a/private/b", "/private/", "/q?s=1", "/q?t=1"]
    assert verdicts(site, fetcher, *paths) == [False, True, False, False, True, False, True]


def test_escaped_and_plain_spellings_are_one(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /日本/", "Disallow: /%7Ejoe/", "Disallow: /a%2Fb")
    assert verdicts(site, fetcher, "/日本/x", "/%e6%97%a5%e6%9c%ac/x", "/~joe/", "/%7ejoe/", "/a/b", "/a%2fb") == [
        False, False, False, False, True, False,
    ]  # fmt: skip
    site.pages["/robots.txt"] = rules(
        "User-agent: *", "Disallow: /%2a", "Disallow: /a[1]", "Disallow: /5%", "Disallow: /$x"
    )
    assert verdicts(site, fetcher, "/*", "/b", "/a[1]", "/a%5b1%5d", "/5%25", "/5", "/$x", "/%24x") == [
        False, True, False, False, False, True, False, False,
    ]  # fmt: skip


def test_a_path_in_another_encoding_is_compared_byte_by_byte(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = (200, {}, "User-agent: *\nDisallow: /日本/\n".encode("shift_jis"))
    assert verdicts(site, fetcher, "/%93%fa%96%7b/x", "/日本/x") == [False, True]


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_lines_end_as_on_any_system(site: Site, fetcher: Fetcher, line_end: str) -> None:
    lines = ["\ufeffUser-agent: *", "Disallow: /a\x0bb", "", "Disallow: /c\u2028d", "Disallow: /e"]
    site.pages["/robots.txt"] = text(line_end.join(lines))
    assert verdicts(site, fetcher, "/a", "/a%0Bb", "/c", "/c%E2%80%A8d", "/e") == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        (["User-agent: BunkoBot", "Disallow: /", "", "User-agent: *", "Allow: /"], False),
        (["User-agent: *", "Disallow: /", "", "User-agent: bunkobot", "Disallow:"], True),
        (["User-agent: BUNKOBOT/2.0", "Disallow: /"], False),
        (["User-agent: Bunko", "Disallow: /"], True),
        (["User-agent: BunkoBot-News", "Disallow: /"], True),
        (["User-agent: b", "Disallow: /"], True),
        (["User-agent: *bot", "Disallow: /"], True),
        (["User  agent:\tBunkoBot", "Disallow: /"], False),
        (["User-agent: Other", "User-agent: BunkoBot", "Disallow: /"], False),
        (["User-agent: BunkoBot", "User-agent: Other", "Disallow: /"], False),
        (["User-agent: Other", "Disallow: /", "User-agent: BunkoBot", "Disallow: /x"], True),
        (["User-agent: BunkoBot", "Disallow: /x", "", "User-agent: BunkoBot", "Disallow: /"], False),
        (["user-AGENT :  bunkobot  # us", "DISALLOW :/ # all"], False),
        (["Useragent BunkoBot", "Disallow /"], False),
        (["Disallow: /"], True),
        (["\ufeffUser-agent: *", "Disallow: /"], False),
        (["User-agent: *", "Sitemap: https://example.com/s.xml", "Disallow: /"], False),
        (["User-agent: BunkoBot", "Noindex: /x", "User-agent: Other", "Disallow: /"], False),
        (["User-agent: BunkoBot", "gibberish", "", "# note", "User-agent: Other", "Disallow: /"], False),
        (["User-agent: BunkoBot", "Crawl-delay: 1", "User-agent: Other", "Disallow: /"], False),
        (["User-agent: BunkoBot", "Sitemap: https://example.com/s.xml", "User-agent: Other", "Disallow: /"], False),
        (["User-agent: BunkoBot", "Disallow:", "gibberish", "User-agent: Other", "Disallow: /"], True),
        (["User-agent: BunkoBot", "Dissallow: /"], False),
        (["User-agent: *", "Disallow: /", "Allow: /robots.txt"], False),
        (["<html><body>Not found</body></html>"], True),
    ],
)
def test_the_group_with_our_name_counts(site: Site, fetcher: Fetcher, lines: list[str], allowed: bool) -> None:
    site.pages["/robots.txt"] = rules(*lines)
    assert verdicts(site, fetcher, "/page") == [allowed]


def test_the_name_is_the_agents_first_word(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules("User-agent: MyBot", "Disallow: /", "Crawl-delay: 4")
    assert not Robots(fetcher, agent="MyBot/1.0 (+https://example.com/bot)").allows(site.url())
    assert Robots(fetcher, agent="MyBot/1.0").delay(site.url()) == 4
    assert Robots(fetcher).allows(site.url())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_site_without_robots_allows_all(
    site: Site, fetcher: Fetcher, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /", status)
    robots = Robots(fetcher)
    assert (robots.allows(site.url()), robots.delay(site.url()), robots.sitemaps(site.url())) == (True, 0.0, ())
    assert caplog.records == []


def never(site: Site) -> Answer:
    def answer(_: Asked) -> Reply:
        site.released.wait()
        return text("too late")

    return answer


@pytest.fixture(params=["500", "503", "429", "silent", "packed", "gone"])
def troubled(request: pytest.FixtureRequest, site: Site) -> Iterator[Fetcher]:
    """A fetcher of a site whose robots.txt cannot be read."""
    match request.param:
        case "silent":
            site.pages["/robots.txt"] = never(site)
        case "packed":
            site.pages["/robots.txt"] = (200, {"Content-Encoding": "br"}, b"x")
        case "gone":
            site.close()
        case status:
            site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /", int(status))
    with Fetcher(Guard((site.host,)), timeout=0.3 if request.param == "silent" else 30) as fetcher:
        yield fetcher


def test_robots_that_cannot_be_read_let_pages_through_with_a_warning(
    site: Site, troubled: Fetcher, caplog: pytest.LogCaptureFixture
) -> None:
    robots = Robots(troubled)
    for path in ("/", "/a", "/b"):
        assert robots.allows(site.url(path))
        assert robots.delay(site.url(path)) == 0
    [warning] = caplog.messages
    assert warning.startswith(f"Fetching pages of {site.address}, although its robots.txt cannot be read now: ")
    assert robots.sitemaps(site.url()) == ()
    assert site.paths in ([], ["/robots.txt"])


def test_where_that_is_chosen_nothing_is_allowed_while_robots_cannot_be_read(site: Site, troubled: Fetcher) -> None:
    robots = Robots(troubled, unreachable="refuse")
    for path in ("/", "/a", "/b"):
        with pytest.raises(FetchFailed, match=r"robots\.txt cannot be read now \(.+\)") as refused:
            robots.allows(site.url(path))
        assert refused.value.message.startswith(f"{site.url(path)} is not fetched: ")
        assert refused.value.reason == "robots"
        assert refused.value.hint
    assert robots.sitemaps(site.url()) == ()
    assert Robots(troubled, respect=False, unreachable="refuse").allows(site.url())
    assert site.paths in ([], ["/robots.txt"])


def test_robots_are_kept_for_their_time_and_failures_for_a_minute(site: Site, fetcher: Fetcher) -> None:
    clock = Time()
    robots = Robots(fetcher, SiteCache(now=clock), ttl=600)
    site.pages["/robots.txt"] = text("down", 503)
    for _ in range(3):
        assert robots.allows(site.url("/a"))
    assert site.paths == ["/robots.txt"]
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    clock.now += 60
    assert robots.allows(site.url("/b"))
    for _ in range(5):
        assert not robots.allows(site.url("/a"))
    assert len(site.asked) == 2
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /b")
    clock.now += 599
    assert not robots.allows(site.url("/a"))
    clock.now += 1
    assert robots.allows(site.url("/a"))
    assert len(site.asked) == 3


def test_an_older_copy_stands_in_for_robots_that_cannot_be_read_for_a_month(
    site: Site, fetcher: Fetcher, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Time()
    cache = SiteCache(now=clock)
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    assert Robots(fetcher, cache).allows(site.url("/b"))
    site.pages["/robots.txt"] = text("down", 503)
    clock.now += 86_400
    for robots in (Robots(fetcher, cache), Robots(fetcher, cache)):
        assert [robots.allows(site.url(path)) for path in ("/a", "/b")] == [False, True]
    assert len(site.asked) == 2
    [warning] = caplog.records
    assert "503" in warning.getMessage()
    clock.now += 30 * 86_400
    assert Robots(fetcher, cache).allows(site.url("/a"))
    with pytest.raises(FetchFailed):
        Robots(fetcher, cache, unreachable="refuse").allows(site.url("/b"))


def test_a_clock_that_was_set_back_makes_no_copy_last_longer(site: Site, fetcher: Fetcher) -> None:
    clock = Time()
    cache = SiteCache(now=clock)
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    Robots(fetcher, cache).allows(site.url("/a"))
    clock.now -= 500
    Robots(fetcher, cache).allows(site.url("/a"))
    assert len(site.asked) == 2


def test_each_origin_has_its_own_robots(site: Site) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    with Site({"/robots.txt": rules("User-agent: *", "Disallow: /b")}) as other:
        with Fetcher(Guard(("127.0.0.1",))) as fetcher:
            robots = Robots(fetcher)
            assert [robots.allows(one.url(path)) for one in (site, other) for path in ("/a", "/b")] == [
                False, True, True, False,
            ]  # fmt: skip
        assert (site.paths, other.paths) == (["/robots.txt"], ["/robots.txt"])


def test_many_threads_ask_once(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /1")
    robots = Robots(fetcher)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: robots.allows(site.url(f"/{number}")), range(40)))
    assert found == [not str(number).startswith("1") for number in range(40)]
    assert site.paths == ["/robots.txt"]


def test_without_respect_nothing_is_asked(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules(
        "User-agent: *", "Disallow: /", "Crawl-delay: 9", f"Sitemap: {site.url('/s.xml')}"
    )
    robots = Robots(fetcher, respect=False)
    assert (robots.allows(site.url()), robots.delay(site.url())) == (True, 0.0)
    assert site.asked == []
    assert robots.sitemaps(site.url()) == (site.url("/s.xml"),)


@pytest.mark.parametrize(
    ("value", "delay"),
    [("2", 2.0), ("0.5", 0.5), ("-1", 0.0), ("inf", 0.0), ("nan", 0.0), ("x", 0.0), ("60", 60.0)],
)
def test_the_delay_is_a_number_of_seconds_or_nothing(site: Site, fetcher: Fetcher, value: str, delay: float) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", f"Crawl-delay: {value}")
    assert Robots(fetcher).delay(site.url("/x")) == delay


def test_the_delay_of_all_groups_with_our_name_is_the_longest(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules(
        "User-agent: a", "Crawl-delay: 9", "User-agent: BunkoBot", "Crawl-delay: 2", "Disallow: /x",
        "User-agent: BunkoBot", "Crawl-delay: 1", "User-agent: *", "Crawl-delay: 7",
    )  # fmt: skip
    assert Robots(fetcher).delay(site.url()) == 2


def test_a_site_that_wants_to_be_waited_for_long_is_told_of(
    site: Site, fetcher: Fetcher, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 20")
    Robots(fetcher).delay(site.url("/x"))
    assert caplog.messages == []
    site.pages["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 600")
    Robots(fetcher, max_delay=600).delay(site.url("/x"))
    assert caplog.messages == [f"{site.address} sets a crawl delay of 600 seconds, which is respected."]


@pytest.mark.parametrize("delay", ["61", "86400", "1e300"])
def test_a_site_that_wants_to_be_waited_for_longer_than_the_limit_is_refused(
    site: Site, fetcher: Fetcher, delay: str
) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", f"Crawl-delay: {delay}")
    with pytest.raises(AddressRefused, match=r"asks for .+ seconds between two requests") as refused:
        Robots(fetcher, max_delay=60).delay(site.url("/x"))
    assert refused.value.reason == "crawl-delay"
    assert "crawl.max_crawl_delay" in refused.value.hint
    assert Robots(fetcher, max_delay=60, respect=False).delay(site.url("/x")) == 0


def test_sitemaps_pass_the_guard(site: Site, fetcher: Fetcher) -> None:
    site.pages["/robots.txt"] = rules(
        f"Sitemap: {site.url('/a.xml')}#x", "Sitemap: http://10.0.0.1/b.xml", "Sitemap: file:///etc/passwd",
        "Sitemap: https://example.com/c.xml", f"Sitemap: {site.url('/a.xml')}",
    )  # fmt: skip
    assert Robots(fetcher).sitemaps(site.url("/deep/page")) == (site.url("/a.xml"), "https://example.com/c.xml")


def test_five_redirects_are_followed_and_no_sixth(
    site: Site, fetcher: Fetcher, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages["/robots.txt"] = (301, {"Location": "/1"}, b"")
    for hop in range(1, 6):
        site.pages[f"/{hop}"] = (302, {"Location": f"/{hop + 1}"}, b"")
    site.pages["/5"] = rules("User-agent: *", "Disallow: /a")
    assert verdicts(site, fetcher, "/a") == [False]
    site.pages["/5"] = (302, {"Location": "/6"}, b"")
    site.pages["/6"] = rules("User-agent: *", "Disallow: /a")
    assert verdicts(site, fetcher, "/a") == [True]
    assert "/6" not in site.paths
    assert len(caplog.records) == 1


def test_robots_are_followed_to_other_hosts_that_the_guard_allows() -> None:
    with Site() as site:

        def moved(asked: Asked) -> Reply:
            if asked.headers["host"].startswith("intra.example"):
                return 301, {"Location": f"http://{towards[-1]}:{site.port}/robots.txt"}, b""
            return rules("User-agent: *", "Disallow: /a")

        towards = []
        site.pages["/robots.txt"] = moved
        guard = Guard(("intra.example", "other.example"), resolve=lambda host, port: ["127.0.0.1"])
        with Fetcher(guard) as fetcher:
            towards.append("other.example")
            robots = Robots(fetcher)
            assert [robots.allows(f"http://intra.example:{site.port}{path}") for path in ("/a", "/b")] == [False, True]
            for name in ("localhost", "127.0.0.1", "private.example"):
                towards.append(name)
                with pytest.raises(FetchFailed, match=f"robots.txt cannot be read now .*redirects to http://{name}"):
                    Robots(fetcher, unreachable="refuse").allows(f"http://intra.example:{site.port}/b")
        assert {asked.headers["host"].partition(":")[0] for asked in site.asked} == {"intra.example", "other.example"}


def test_a_site_that_the_guard_refuses_by_its_address_is_refused_as_such(site: Site) -> None:
    with Fetcher(Guard(resolve=lambda host, port: ["10.0.0.1"])) as fetcher, pytest.raises(AddressRefused) as refused:
        Robots(fetcher).allows("http://public.example/")
    assert refused.value.reason == "private-address"


def test_a_url_that_the_guard_refuses_is_not_asked_about(site: Site) -> None:
    with Fetcher(Guard()) as fetcher, pytest.raises(AddressRefused):
        Robots(fetcher).allows(site.url())
    assert site.connections == 0


def test_robots_are_read_up_to_500_kilobytes_whatever_the_limit_of_pages(site: Site, fetcher: Fetcher) -> None:
    filler = "# " + "x" * 98 + "\n"
    body = ("User-agent: *\nDisallow: /a\n" + filler * 5_000 + "Disallow: /b\n" + filler * 1_000).encode()
    late = ("User-agent: *\nDisallow: /a\n" + filler * 5_200 + "Disallow: /b\n" + filler * 1_000).encode()
    for data, expected in ((body, [False, False]), (late, [False, True])):
        for headers, sent in (({}, data), ({"Content-Encoding": "gzip"}, gzip.compress(data))):
            site.pages["/robots.txt"] = (200, headers, sent)
            assert verdicts(site, fetcher, "/a", "/b") == expected


def test_a_line_that_the_limit_cuts_does_not_count(site: Site, fetcher: Fetcher) -> None:
    head = "User-agent: *\nDisallow: /a\n"
    filler = "#" * (500 * 1024 - len(head) - len("\nDisallow: /")) + "\n"
    site.pages["/robots.txt"] = text(head + filler + "Disallow: /archive\n")
    assert verdicts(site, fetcher, "/a", "/b") == [False, True]


def test_hostile_rules_take_no_time_that_grows_with_their_product(site: Site, fetcher: Fetcher) -> None:
    # Rules are kept once for each name above them: 20,000 names and 20,000 rules would be 400 million.
    names = "".join(f"User-agent:{number:x}\n" for number in range(14_000))
    paths = "".join(f"Allow:/{number:x}\n" for number in range(20_000))
    stars = "Disallow: /" + "*a" * 3_000 + "*b$\n"
    site.pages["/robots.txt"] = text(names + "User-agent:*\n" + stars + paths)
    assert verdicts(site, fetcher, "/" + "a" * 7_000, "/" + "a" * 7_000 + "b") == [True, False]
