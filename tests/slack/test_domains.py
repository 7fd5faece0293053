"""Domains that pages may be added from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bunko.interfaces.slack.domains import AllowedDomains, parse_domain
from bunko.stores import memory

Rules = Callable[..., AllowedDomains]


@pytest.fixture
def rules() -> Iterator[Rules]:
    """Make the rules of a new library from configured domains."""
    store = memory.build()
    yield lambda *configured: AllowedDomains(store.domains, configured)
    store.close()


def is_allowed(domains: AllowedDomains, url: str) -> bool:
    return domains.check(url)[1]


def test_without_rules_every_domain_is_allowed(rules: Rules) -> None:
    assert is_allowed(rules(), "https://example.com/")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/a", True),
        ("https://EXAMPLE.com./a", True),
        ("https://docs.example.com/", True),
        ("https://example.com.evil.example/", False),
        ("https://notexample.com/", False),
        ("https://evil.example/?example.com", False),
        ("https://example.com@evil.example/", False),
        ("https://evil.example\\@example.com/", False),
        ("https://xn--r8jz45g.jp/", True),
        ("https://例え.jp/", True),
        ("ftp://example.com/", False),
        ("nonsense", False),
    ],
)
def test_a_domain_stands_for_its_subdomains_and_for_nothing_else(rules: Rules, url: str, expected: bool) -> None:
    assert is_allowed(rules("*.Example.com", "https://例え.jp/x"), url) is expected


def test_what_was_taken_back_is_refused_and_does_not_open_the_rest(rules: Rules) -> None:
    domains = rules("example.com")
    domains.disallow("example.com", "U1")
    assert not is_allowed(domains, "https://example.com/")
    assert not is_allowed(domains, "https://other.example/")


def test_one_domain_can_be_refused_while_all_others_stay_allowed(rules: Rules) -> None:
    domains = rules()
    domains.disallow("evil.example", "U1")
    assert not is_allowed(domains, "https://www.evil.example/")
    assert is_allowed(domains, "https://example.com/")


def test_a_subdomain_may_have_a_rule_of_its_own(rules: Rules) -> None:
    domains = rules("example.com")
    domains.disallow("internal.example.com", "U1")
    domains.allow("public.internal.example.com", "U1")
    hosts = ("example.com", "internal.example.com", "a.internal.example.com", "public.internal.example.com")
    assert [is_allowed(domains, f"https://{host}/") for host in hosts] == [True, False, False, True]


@pytest.mark.parametrize("text", ["", "  ", "a b", "http://", "exam ple.com", "-a.com", "…", "a..b", "x" * 300])
def test_what_is_no_domain_is_not_taken_for_one(text: str) -> None:
    assert parse_domain(text) == ""
