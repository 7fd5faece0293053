"""Names, addresses and TLS: a connection goes only to a checked address."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from time import monotonic

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bunko.errors import AddressRefused, FetchFailed
from bunko.runtime.deadlines import RequestState
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.pinned_connection import PinnedBackend
from bunko.sources.web.ssrf_guard import Guard
from tests.site import Site, html


class Recorder(httpcore2.NetworkBackend):
    """A network where nobody answers; it keeps where a connection would have gone."""

    def __init__(self) -> None:
        self.went: list[str] = []

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        self.went.append(host)
        raise httpcore2.ConnectError("nobody there")


def test_a_second_answer_of_dns_changes_nothing() -> None:
    answers = [["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"], ["127.0.0.1"]]
    recorder, clock = Recorder(), RequestState()
    clock.deadline = monotonic() + 10
    pinned = PinnedBackend(Guard(resolve=lambda host, port: answers.pop(0)), clock, recorder)
    with pytest.raises(httpcore2.ConnectError):
        pinned.connect_tcp("rebinding.example", 80)
    assert recorder.went == ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]
    with pytest.raises(AddressRefused):
        pinned.connect_tcp("rebinding.example", 80)
    assert len(recorder.went) == 2


def test_a_name_is_resolved_once_and_still_told_to_the_server(site: Site) -> None:
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["8.8.8.8"]

    with Fetcher(Guard(("intra.example",), resolve=resolve)) as fetcher:
        for _ in range(3):
            fetcher.fetch(f"http://intra.example:{site.port}/")
    assert asked == [("intra.example", site.port)]
    assert {one.headers["host"] for one in site.asked} == {f"intra.example:{site.port}"}


def test_the_next_address_is_tried_when_one_is_down(site: Site) -> None:
    guard = Guard(("intra.example",), resolve=lambda host, port: ["127.0.0.99", "::1", "127.0.0.1"])
    with Fetcher(guard) as fetcher:
        assert fetcher.fetch(f"http://intra.example:{site.port}/").status == 200


def certificate(folder: Path, *names: str) -> Path:
    """Write a certificate that vouches for itself and its key; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = [
        x509.DNSName(one) if one[-1].isalpha() else x509.IPAddress(ip_address(one)) for one in names
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{names[0]}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[Site, ssl.SSLContext, list[str]]]:
    """A site over TLS whose certificate is for secure.example; who trusts it; the names that clients asked for."""
    file = certificate(tmp_path, "secure.example")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    told: list[str] = []
    serving.sni_callback = lambda _, name, __: told.append(str(name))
    with Site({"/": html("<p>secure")}, tls=serving) as site:
        yield site, ssl.create_default_context(cafile=str(file)), told


Secure = tuple[Site, ssl.SSLContext, list[str]]


def names(*allowed: str) -> Guard:
    return Guard(allowed, resolve=lambda host, port: ["127.0.0.1"])


def test_tls_is_for_the_name_though_the_connection_is_to_the_address(secure: Secure) -> None:
    site, trusting, told = secure
    with Fetcher(names("secure.example"), tls=trusting) as fetcher:
        assert fetcher.fetch(f"https://secure.example:{site.port}/").content == b"<p>secure"
    assert told == ["secure.example"]


@pytest.mark.parametrize("trusted", [False, True])
def test_a_certificate_must_be_trusted_and_for_this_name(secure: Secure, trusted: bool) -> None:
    site, trusting, _ = secure
    host = "other.example" if trusted else "secure.example"
    with Fetcher(names(host), tls=trusting if trusted else None) as fetcher, pytest.raises(FetchFailed) as failed:
        fetcher.fetch(f"https://{host}:{site.port}/")
    assert "certificate" in failed.value.hint
    assert site.asked == []


def test_a_tls_handshake_that_never_ends_is_left_when_the_time_is_over(site: Site) -> None:
    # A plain server waits for the end of our hello as if it were a request.
    with Fetcher(Guard((site.host,)), timeout=0.3) as fetcher, pytest.raises(FetchFailed, match="was not fetched"):
        fetcher.fetch(f"https://{site.host}/")
