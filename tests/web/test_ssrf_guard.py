"""The guard: every spelling of a private address is refused, and what is refused is never connected to."""

from __future__ import annotations

import string
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bunko.errors import AddressRefused, FetchFailed, SettingsError
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.ssrf_guard import MAX_URL_LENGTH, Guard
from tests.site import Site, html

PRIVATE = (
    "127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.0.1 "
    "169.254.169.254 100.64.0.1 100.127.255.255 100.100.100.200 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 "
    "198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 "
    ":: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 "
    "64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 64:ff9b:1::808:808 100::1 2001::1 2001:0:7f00:1:: 2001:2::1 "
    "2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd12::1 "
    "fe80::1 fec0::1 ff02::1 2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:127.0.0.1 4000::1"
).split()
PUBLIC = "8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 2606:4700::1111 64:ff9b::8.8.8.8 2001:4860:4860::8888".split()

# The ways in which some program or other writes 127.0.0.1, 10.0.0.1 or localhost.
DISGUISED = (
    "127.1 127.0.1 2130706433 0x7f000001 0x7F.0.0.1 0x7f.1 017700000001 0177.0.0.1 0177.1 127.0.0.01 0127.0.0.1 "
    "00000127.0.0.1 127.0.0.1. 127.0.0.1.. 127。0。0。1 １２７.０.０.１ ①②⑦.⓪.⓪.① 127.0.0.0x1 0x 256.256.256.256 "
    "1.2.3.4.5 %31%32%37.0.0.1 127%2e0%2e0%2e1 10.1 0xa.1 012.0.0.1 localhost localhost. LOCALHOST ｌｏｃａｌｈｏｓｔ "
    "a.localhost ⓛⓞⓒⓐⓛⓗⓞⓢⓣ loc%61lhost [::1%25lo] [fe80::1%eth0] [::ffff:7f00:1] [0:0:0:0:0:0:0:1] [::1 ::1] "
    "[127.0.0.1] [v1.fe] []"
).split()


def answering(*addresses: str) -> Guard:
    return Guard(resolve=lambda host, port: addresses)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused_written_or_resolved(address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused):
        Guard().canonical_url(f"http://{written}/")
    with pytest.raises(AddressRefused):
        Guard().addresses(address, 80)
    with pytest.raises(AddressRefused, match=r"innocent\.example is blocked: its address"):
        answering(address).addresses("innocent.example", 80)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_let_through_written_or_resolved(address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    assert Guard().canonical_url(f"https://{written}/").startswith("https://")
    assert answering(address).addresses("innocent.example", 443) == [address]


@pytest.mark.parametrize("host", DISGUISED)
def test_an_address_in_disguise_is_refused_without_asking_anybody(host: str) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["8.8.8.8"]

    with pytest.raises(AddressRefused):
        Guard(resolve=resolve).canonical_url(f"http://{host}/")
    assert asked == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "rebound.example"]
)
def test_no_connection_is_made_to_what_is_refused(host: str) -> None:
    guard = Guard(resolve=lambda host, port: ["8.8.8.8", "127.0.0.1"])
    with Site({"/": html("secret")}) as site, Fetcher(guard, timeout=5) as fetcher:
        with pytest.raises(AddressRefused):
            fetcher.fetch(f"http://{host}:{site.port}/")
        assert (site.connections, site.asked) == (0, [])


def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1 is private"):
        answering("8.8.8.8", "10.0.0.1", "1.1.1.1").addresses("mixed.example", 80)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "javascript:alert(1)",
        "gopher://example.com", "http:example.com", "http:/example.com", "http:///example.com", "http://", "http://?x",
        "http://user@example.com", "http://user:pw@example.com", "http://@example.com", "http://8.8.8.8@127.0.0.1/",
        "http://example.com\\@127.0.0.1/", "http://127.0.0.1\\.example.com/", "http:\\\\127.0.0.1", "http://a/b\\c",
        "http://exa\tmple.com", "http://exam\nple.com", "http://example.com/\x00", "http://example.com/\x7f",
        "http://exa mple.com", "http://example.com:x", "http://example.com:0", "http://example.com:65536",
        "http://example.com:000080", "http://example.com:-1", "http://example.com:１", "http://a..b", "http://.a",
        "http://a..", "http://-a.example", f"http://{'a' * 64}.example", f"http://{'a.' * 127}example",
        f"http://a/{'x' * MAX_URL_LENGTH}", f"http://a/{'あ' * (MAX_URL_LENGTH // 3)}", "http://xn--.example",
        "http://xn--localhost-.example", "http://a\u00adb\u2028.example", "http://\ud800.example", "http://a/\ud800",
        "http://example.com:25", "http://example.com:6379", "http://example.com:22",
    ],
)  # fmt: skip
def test_a_url_that_programs_read_differently_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        Guard().canonical_url(url)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/#top", "https://example.com/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://example.com:8080", "http://example.com:8080/"),
        ("http://example.com.", "http://example.com/"),
        ("  http://example.com/ \n", "http://example.com/"),
        ("http://example.com/a/./b/../c/", "http://example.com/a/c/"),
        ("http://example.com/../../x", "http://example.com/x"),
        ("http://example.com/%2e%2E/x/.", "http://example.com/x/"),
        ("http://example.com/%7euser/%e3%81%82", "http://example.com/~user/%E3%81%82"),
        ("http://example.com/あ い", "http://example.com/%E3%81%82%20%E3%81%84"),
        ("http://example.com/100%?q=%zz", "http://example.com/100%25?q=%25zz"),
        ("http://example.com?q=日本&r=a/b?c", "http://example.com/?q=%E6%97%A5%E6%9C%AC&r=a/b?c"),
        ("http://example.com//a", "http://example.com//a"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://ＥＸＡＭＰＬＥ．com/", "http://example.com/"),
        ("http://foo_bar.example/", "http://foo_bar.example/"),
        ("http://[2606:4700:0:0::1111]:80/", "http://[2606:4700::1111]/"),
    ],
)
def test_a_url_has_one_spelling(url: str, spelled: str) -> None:
    assert Guard().canonical_url(url) == spelled


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(AddressRefused, match="contains a user name or password") as refused:
        Guard().canonical_url("https://admin:hunter2@example.com/")
    assert "hunter2" not in str(refused.value)


ALLOWED = Guard(allowed_hosts=("intra.example", "127.0.0.1:8080", "*.corp.example", "[fd12::1]", "fd12::2", "10.0.0.5"))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/", "http://[fd12::1]/", "http://[fd12::2]:81/", "http://10.0.0.5/", "https://10.0.0.5:81/",
    ],
)  # fmt: skip
def test_a_named_private_address_is_let_through(url: str) -> None:
    assert ALLOWED.canonical_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.0.0.1:8081/", "http://127.0.0.2:8080/", "http://[fd12::3]/", "http://10.0.0.6/",
        "http://localhost:8080/", "http://127.1:8080/", "http://[::ffff:127.0.0.1]:8080/",
    ],
)  # fmt: skip
def test_a_neighbour_of_a_named_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match="not fetched"):
        ALLOWED.canonical_url(url)


def test_a_named_host_may_be_private_but_not_a_clouds_metadata() -> None:
    def guard(address: str) -> Guard:
        return Guard(ALLOWED.allowed_hosts, resolve=lambda host, port: [address])

    assert guard("10.1.2.3").addresses("intra.example", 80) == ["10.1.2.3"]
    assert guard("fd12::9").addresses("wiki.corp.example", 80) == ["fd12::9"]
    assert guard("127.0.0.1").addresses("deep.wiki.corp.example", 80) == ["127.0.0.1"]
    for host, address in [
        ("corp.example", "10.1.2.3"),
        ("notcorp.example", "10.1.2.3"),
        ("intra.example.com", "10.1.2.3"),
        ("sub.intra.example", "10.1.2.3"),
        ("intra.example", "169.254.169.254"),
        ("intra.example", "fd00:ec2::254"),
        ("intra.example", "100.100.100.200"),
        ("intra.example", "fe80::1%eth0"),
        ("intra.example", "224.0.0.1"),
        ("intra.example", "0.0.0.0"),
    ]:
        with pytest.raises(AddressRefused):
            guard(address).addresses(host, 80)


def test_localhost_can_be_named() -> None:
    assert Guard(("localhost",)).canonical_url("http://localhost:3000/") == "http://localhost:3000/"


def test_a_port_of_another_service_can_be_named_with_its_host() -> None:
    assert Guard(("127.0.0.1:6000",)).canonical_url("http://127.0.0.1:6000/") == "http://127.0.0.1:6000/"
    with pytest.raises(AddressRefused, match="port 6000"):
        Guard(("127.0.0.1",)).canonical_url("http://127.0.0.1:6000/")


@pytest.mark.parametrize(
    "entry", ["", "*", "*.", "http://intra.example", "a b", "127.1", "*.10.0.0.1", "intra:x", "a@b"]
)
def test_an_allowed_host_that_is_none_is_a_wrong_setting(entry: str) -> None:
    with pytest.raises(SettingsError, match="not a valid allowed host"):
        Guard((entry,))


@pytest.mark.parametrize(
    "answer",
    [
        "localhost",
        "169.254.169.254.",
        "0x7f000001",
        "2130706433",
        "127.1",
        "",
        "1.1.1.1 ",
        "[::1]",
        "::1\n",
        "metadata",
    ],
)
@pytest.mark.parametrize("allowed_hosts", [(), ("example.com",)])
def test_what_a_resolver_answers_is_an_address_or_is_refused(answer: str, allowed_hosts: tuple[str, ...]) -> None:
    # A socket would look up anything else by itself, and reach what nobody has checked.
    guard = Guard(allowed_hosts, resolve=lambda host, port: ["1.1.1.1", answer])
    with pytest.raises(AddressRefused, match="is not an address"):
        guard.addresses("example.com", 80)


def test_a_host_without_an_address_cannot_be_fetched() -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    for guard in (Guard(resolve=unknown), answering()):
        with pytest.raises(FetchFailed) as failed:
            guard.addresses("nowhere.example", 80)
        assert "nowhere.example" in failed.value.message


HOSTILE = st.text(
    st.one_of(
        st.sampled_from("/\\@:?#%.[]。．％2e0x17 \t\r\n\0-_~&=xn"),
        st.characters(codec=None),
        st.sampled_from(string.printable),
    )
)


@given(
    st.one_of(
        HOSTILE,
        st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "HTTP"]), HOSTILE, HOSTILE),
        st.builds("http://{}/{}?{}".format, st.ip_addresses().map(str), HOSTILE, HOSTILE),
        st.builds("http://example.com/{}".format, HOSTILE),
        st.builds("http://{}.example".format, st.text(max_size=70)),
    )
)
@example("http://a/%%34%31")
@example("http://a/%25%34%31")
@example("http://xn--\u0665.example")
@example("http://a/..//..")
def test_whatever_is_written_is_refused_or_has_one_spelling(url: str) -> None:
    guard = Guard()
    try:
        spelled = guard.canonical_url(url)
    except AddressRefused:
        return
    assert guard.canonical_url(spelled) == spelled
    assert spelled.isascii()
    assert spelled.startswith(("http://", "https://"))
    assert not set(spelled) & set(' \\"<>#^`{|}\t\r\n')
    # Whoever reads it after us must see the same host.
    host = guard.target(spelled).host
    assert urlsplit(spelled).hostname == host
    assert httpx2.URL(spelled).raw_host.decode() == host


def test_nobody_outside_sends_us_to_a_host_of_the_own_network() -> None:
    guard = Guard(("intra.example", "10.0.0.5:8080"))
    outside, inside = guard.target("https://public.example/"), guard.target("https://intra.example/")
    for url in ("https://intra.example/drop?all=1", "https://10.0.0.5:8080/"):
        for lead in (guard.link_target, guard.redirect_target):
            with pytest.raises(AddressRefused, match="your own network"):
                lead(outside, url)
        assert str(guard.redirect_target(inside, url)) == url
    assert guard.redirect_target(inside, "https://public.example/x").host == "public.example"
