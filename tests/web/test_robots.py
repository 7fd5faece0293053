"""What robots.txt allows, from a real site whose robots.txt is missing, broken, huge, moved or hostile."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import AddressRefused
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.robots import Robots, _merge_other_agents
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


@pytest.mark.parametrize("trouble", ["500", "503", "429", "silent", "packed", "gone"])
def test_robots_that_cannot_be_had_allow_all_with_a_warning(
    site: Site, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    match trouble:
        case "silent":
            site.pages["/robots.txt"] = never(site)
        case "packed":
            site.pages["/robots.txt"] = (200, {"Content-Encoding": "br"}, b"x")
        case "gone":
            site.close()
        case status:
            site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /", int(status))
    with Fetcher(Guard((site.host,)), timeout=0.3) as fetcher:
        robots = Robots(fetcher)
        assert [robots.allows(site.url(path)) for path in ("/", "/a", "/b")] == [True, True, True]
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert site.host in warning.getMessage()


def test_robots_are_kept_for_their_time_and_failures_for_a_minute(site: Site, fetcher: Fetcher) -> None:
    clock = Time()
    robots = Robots(fetcher, ttl=600, now=clock)
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    for _ in range(5):
        assert not robots.allows(site.url("/a"))
    assert site.paths == ["/robots.txt"]
    site.pages["/robots.txt"] = text("down", 503)
    clock.now += 599
    assert not robots.allows(site.url("/a"))
    clock.now += 1
    assert robots.allows(site.url("/a"))
    assert robots.allows(site.url("/a"))
    assert len(site.asked) == 2
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /a")
    clock.now += 60
    assert not robots.allows(site.url("/a"))


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
    [("2", 2.0), ("0.5", 0.5), ("-1", 0.0), ("inf", 0.0), ("nan", 0.0), ("x", 0.0), ("1e300", 86_400.0)],
)
def test_the_delay_is_a_number_of_seconds_or_nothing(site: Site, fetcher: Fetcher, value: str, delay: float) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", f"Crawl-delay: {value}")
    assert Robots(fetcher).delay(site.url("/x")) == delay


def test_a_site_that_wants_to_be_waited_for_long_is_told_of(
    site: Site, fetcher: Fetcher, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 20")
    Robots(fetcher).delay(site.url("/x"))
    assert caplog.messages == []
    site.pages["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 600")
    Robots(fetcher).delay(site.url("/x"))
    assert caplog.messages == [f"{site.address} sets a crawl delay of 600 seconds, which is respected."]


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


def test_robots_are_followed_on_the_same_site_only(caplog: pytest.LogCaptureFixture) -> None:
    forbidden = rules("User-agent: *", "Disallow: /")
    with Site({"/robots.txt": forbidden}) as site:

        def moved(asked: Asked) -> Reply:
            if asked.headers["host"].startswith("intra.example"):
                return 301, {"Location": f"http://{towards[-1]}:{site.port}/robots.txt"}, b""
            return forbidden

        towards = ["www.intra.example"]

        site.pages["/robots.txt"] = moved
        guard = Guard(("intra.example", "www.intra.example", "other.example"), resolve=lambda host, port: ["127.0.0.1"])
        with Fetcher(guard) as fetcher:
            assert not Robots(fetcher).allows(f"http://intra.example:{site.port}/")
            for name in ("other.example", "localhost", "127.0.0.1"):
                towards.append(name)
                assert Robots(fetcher).allows(f"http://intra.example:{site.port}/")
        assert {asked.headers["host"].partition(":")[0] for asked in site.asked} == {
            "intra.example",
            "www.intra.example",
        }
    assert len(caplog.records) == 3


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


def test_hostile_rules_take_no_time_that_grows_with_their_product(site: Site, fetcher: Fetcher) -> None:
    # Rules are kept once for each name above them: 20,000 names and 20,000 rules would be 400 million.
    names = "".join(f"User-agent:{number:x}\n" for number in range(14_000))
    paths = "".join(f"Allow:/{number:x}\n" for number in range(20_000))
    stars = "Disallow: /" + "*a" * 3_000 + "*b$\n"
    site.pages["/robots.txt"] = text(names + "User-agent:*\n" + stars + paths)
    assert verdicts(site, fetcher, "/" + "a" * 7_000, "/" + "a" * 7_000 + "b") == [True, False]


WORDS = [
    *"*:-_/$%#\0\n\r\t\x1c\u2003\ufeff",
    "User",
    "agent",
    "user-agent",
    "useragent",
    "Bunko",
    "Bot",
    "Disallow:",
    "Allow",
]


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.characters())).map("".join), st.text())
def test_whatever_robots_say_is_understood_somehow(content: str, path: str) -> None:
    from protego import Protego

    found = Protego.parse(_merge_other_agents(content, "bunkobot"))
    assert found.can_fetch(f"http://example.com/{path}", "bunkobot") in (True, False)
    assert found._user_agents.keys() <= {"bunkobot", "*", "?"}
