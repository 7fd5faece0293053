"""Safe Browsing lookups against a server on loopback that speaks its format, with its ways to fail."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bunko.errors import FetchFailed, SettingsError
from bunko.sources.web.safe_browsing import SafeBrowsing
from bunko.sources.web.site_cache import SiteCache
from tests.site import Answer, Asked, Raw, Reply, Site

KEY = "AIza-very-secret-0123456789"
PATH = "/v4/threatMatches:find"
BAD = {"http://malware.example/": "MALWARE", "https://phish.example/日本": "SOCIAL_ENGINEERING"}

Opened = Callable[..., SafeBrowsing]


def said(status: int, value: Any) -> Reply:
    return status, {"Content-Type": "application/json; charset=UTF-8"}, json.dumps(value).encode()


def well(asked: Asked) -> Reply:
    """Answer as the service does when all is well."""
    if asked.headers.get("x-goog-api-key") != KEY:
        return said(403, {"error": {"code": 403, "message": "The request is missing a valid API key."}})
    info = json.loads(asked.body)["threatInfo"]
    urls = [entry["url"] for entry in info["threatEntries"]]
    if len(urls) > 500 or not {"MALWARE", "SOCIAL_ENGINEERING"} <= set(info["threatTypes"]):
        return said(400, {"error": {"code": 400, "message": "Invalid value"}})
    matches = [
        {"threatType": BAD[url], "platformType": "ANY_PLATFORM", "threatEntryType": "URL", "threat": {"url": url},
         "cacheDuration": "300s"}
        for url in urls if url in BAD
    ]  # fmt: skip
    return said(200, {"matches": matches} if matches else {})


@pytest.fixture
def service() -> Iterator[Site]:
    with Site({PATH: well}) as service:
        yield service


@pytest.fixture
def opened(service: Site) -> Iterator[Opened]:
    """Open a client of the service."""
    clients: list[SafeBrowsing] = []

    def opener(**arguments: Any) -> SafeBrowsing:
        arguments = {"base_url": service.address, **arguments}
        clients.append(SafeBrowsing(arguments.pop("key", KEY), **arguments))
        return clients[-1]

    yield opener
    for client in clients:
        client.close()


def entries(asked: Asked) -> list[str]:
    return [entry["url"] for entry in json.loads(asked.body)["threatInfo"]["threatEntries"]]


def test_threats_are_named_and_everything_else_is_safe(service: Site, opened: Opened) -> None:
    assert opened().threats(["http://fine.example/", *BAD, *BAD]) == BAD
    assert opened().threats(["http://fine.example/"]) == {}
    assert opened().threats([]) == {}
    assert [(asked.method, asked.path) for asked in service.asked] == [("POST", PATH)] * 2
    assert service.asked[0].headers["content-type"] == "application/json"


def test_the_key_is_in_a_header_and_not_in_the_address(
    service: Site, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        opened().threats(["http://fine.example/"])
    assert caplog.records
    assert KEY not in caplog.text
    [asked] = service.asked
    assert asked.headers["x-goog-api-key"] == KEY
    assert KEY not in asked.path
    assert KEY.encode() not in asked.body


def test_answers_are_remembered_for_their_time(service: Site, opened: Opened) -> None:
    now = [0.0]
    client = opened(cache=SiteCache(now=lambda: now[0]), ttl=300)
    [bad] = list(BAD)[:1]
    for _ in range(3):
        assert client.threats([bad, "http://fine.example/"]) == {bad: "MALWARE"}
    assert len(service.asked) == 1
    now[0] = 299
    assert client.threats([bad, "http://new.example/"]) == {bad: "MALWARE"}
    assert entries(service.asked[1]) == ["http://new.example/"]
    now[0] = 300
    client.threats([bad, "http://fine.example/", "http://new.example/"])
    assert entries(service.asked[2]) == [bad, "http://fine.example/"]


def test_five_hundred_are_asked_at_a_time(service: Site, opened: Opened) -> None:
    urls = [f"http://{number}.example/" for number in range(1_100)]
    assert opened().threats([*urls, *BAD]) == BAD
    assert [len(entries(asked)) for asked in service.asked] == [500, 500, 102]


def error(status: int, message: str) -> Answer:
    return said(status, {"error": {"code": status, "message": message, "status": "FAILED"}})


TROUBLE: dict[str, Answer] = {
    "400": error(400, f"API key not valid: {KEY}. Please pass a valid API key."),
    "403": error(403, f"Requests from consumer 'api_key:{KEY}' are blocked."),
    "429": error(429, "Quota exceeded"),
    "503": (503, {"Content-Type": "text/html"}, b"<html>down</html>"),
    "empty": (200, {}, b""),
    "html": (200, {"Content-Type": "text/html"}, b"<html>"),
    "list": said(200, []),
    "matches": said(200, {"matches": 1}),
    "match": said(200, {"matches": [{"threatType": "MALWARE"}]}),
    "another": said(200, {"matches": [{"threatType": "MALWARE", "threat": {"url": "http://another.example/"}}]}),
    "truncated": Raw([b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"matches": [{"thr']),
    "garbage": Raw([b"\0\1\2\r\n\r\n"]),
    "moved": (302, {"Location": "http://10.0.0.1/"}, b""),
}


@pytest.mark.parametrize("trouble", [*TROUBLE, "slow", "gone"])
def test_trouble_is_a_warning_or_a_failure_as_set_and_never_shows_the_key(
    service: Site, opened: Opened, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    def slow(_: Asked) -> Reply:
        service.released.wait()
        return said(200, {})

    service.pages[PATH] = slow if trouble == "slow" else TROUBLE.get(trouble, well)
    if trouble == "gone":
        service.close()
    url, timeout = "http://fine.example/", 0.3 if trouble == "slow" else 30.0
    assert opened(timeout=timeout).threats([url]) == {}
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    with pytest.raises(FetchFailed) as failed:
        opened(timeout=timeout, fail_open=False).threats([url])
    assert failed.value.hint
    shown = "".join(traceback.format_exception(failed.value)) + warning.getMessage() + str(failed.value)
    assert KEY not in shown
    if trouble.isdecimal():
        assert failed.value.status == int(trouble)
        assert trouble in failed.value.message


def test_trouble_is_not_remembered(service: Site, opened: Opened) -> None:
    client = opened()
    service.pages[PATH] = error(503, "down")
    assert client.threats(BAD) == {}
    service.pages[PATH] = well
    assert client.threats(BAD) == BAD


def test_what_was_known_is_told_though_the_service_is_down(service: Site, opened: Opened) -> None:
    client = opened()
    client.threats(BAD)
    service.pages[PATH] = error(503, "down")
    assert client.threats([*BAD, "http://new.example/"]) == BAD


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_service_of_the_settings_may_be_on_this_machine(service: Site, opened: Opened, host: str) -> None:
    assert opened(base_url=f"http://{host}:{service.port}/", fail_open=False).threats(BAD) == BAD


@pytest.mark.parametrize("base_url", ["", "safebrowsing.example", "ftp://127.0.0.1/", "http://"])
def test_an_address_of_the_service_that_is_none_is_an_error_of_the_settings(base_url: str) -> None:
    with pytest.raises(SettingsError, match=r"safety\.base_url") as refused:
        SafeBrowsing(KEY, base_url=base_url)
    assert refused.value.hint
