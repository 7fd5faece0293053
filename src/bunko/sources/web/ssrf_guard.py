"""Which addresses may be reached: a URL goes in, its one spelling or the checked addresses of its host come out."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from bunko.errors import AddressRefused, FetchFailed, SettingsError
from bunko.sources.web import addresses

# Long enough for any link that people share; servers seldom take more than this either.
MAX_URL_LENGTH = 8_000
DEFAULT_PORTS = {"http": 80, "https": 443}

# Ports where something else than the web listens, which a link could make us speak to: the list that browsers keep.
_BLOCKED_PORTS = frozenset(
    int(port)
    for port in (
        "1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 "
        "123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 "
        "990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6379 6566 6665 6666 6667 6668 6669 6679 6697 "
        "10080"
    ).split()
)

_URL_PATTERN = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NEEDS_ESCAPE = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]")

Resolver = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart by the only parser there is; nothing parses it again on the way to the socket."""

    scheme: str
    host: str  # a name in ASCII, or an address as `ipaddress` writes it, without brackets
    port: int
    path: str  # with its query

    @property
    def authority(self) -> str:
        """What the Host header says: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The beginning of the URL, up to the path."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.path


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a name, as the system answers."""
    # As bytes: a str would go through Python's own, older IDNA.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets public addresses through; private ones only of hosts that are named.

    `allowed_hosts` are names, addresses or `*.intra.example`, each with `:port` or for every port. What a name resolves
    to may then be private, but never link-local, multicast or a cloud's metadata: such an address must itself be named.
    """

    allowed_hosts: tuple[str, ...] = ()
    resolve: Resolver = field(default=resolve_host, compare=False)
    _allowed: frozenset[tuple[str, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", frozenset(map(_parse_allowed_host, self.allowed_hosts)))

    def canonical_url(self, url: str) -> str:
        """Return the one spelling of a URL, without its fragment; whatever may not be fetched is refused."""
        return str(self.target(url))

    def target(self, url: str) -> Target:
        """Return the parts of a URL; whatever may not be fetched is refused."""
        try:
            target = _parse_url(url)
        except _InvalidUrl as error:
            raise AddressRefused(f"{display_url(url)} is not fetched: {error}", hint=error.hint) from None
        allowed = self.allows(target.host, target.port)
        if target.port in _BLOCKED_PORTS and (target.host, target.port) not in self._allowed:
            raise AddressRefused(
                f"{display_url(url)} is not fetched: port {target.port} belongs to another service than the web",
                hint="Check the port. Browsers refuse it too.",
            )
        if reason := _host_objection(target.host, is_allowed=allowed, is_named=allowed):
            raise AddressRefused(
                f"{display_url(url)} is not fetched: {target.host} {reason}", hint=_allow_hint(target.host)
            )
        return target

    def link_target(self, source: Target, url: str) -> Target:
        """Return where a site sends us, if it may: a host of your own network is reached from there or by your word."""
        there = self.target(url)
        if self.allows(there.host, there.port) and not self.allows(source.host, source.port):
            raise AddressRefused(
                f"{display_url(url)} is not fetched: {source.host} sends us to a host of your own network",
                hint="Name that address itself if it is what you want.",
            )
        return there

    def redirect_target(self, source: Target, location: str) -> Target:
        """Return where a redirect leads, if a URL could lead there too; from https it never goes back to http."""
        there = self.link_target(source, location)
        if source.scheme == "https" and there.scheme == "http":
            raise AddressRefused(
                f"{display_url(str(source))} is not fetched: it redirects from https to http, {display_url(location)}",
                hint="Fetch that address itself if you trust the network.",
            )
        return there

    def allows(self, host: str, port: int) -> bool:
        """Say whether a host is named among the allowed ones."""
        if not self._allowed:
            return False
        names = [host, *(f"*.{host[dot + 1 :]}" for dot, letter in enumerate(host) if letter == ".")]
        return any((name, which) in self._allowed for name in names for which in (port, 0))

    def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, asked for once: all of them are fine, or the host is refused."""
        allowed = self.allows(host, port)
        if _parse_address(host) is not None:
            if reason := _host_objection(host, is_allowed=allowed, is_named=allowed):
                raise AddressRefused(f"{host} is not reached: it {reason}", hint=_allow_hint(host))
            return [host]
        try:
            found = list(dict.fromkeys(self.resolve(host, port)))
        except OSError as error:
            raise FetchFailed(
                f"{host} is not known: {error.strerror or error}",
                hint="Check the spelling of the host, and that this machine is online.",
            ) from error
        if not found:
            raise FetchFailed(f"{host} has no address", hint="Check the spelling of the host.")
        for one in found:
            # A host with one good address and one bad is not half good: it is how a site reaches inside.
            named = allowed and self.allows(one.partition("%")[0], port)
            if reason := _host_objection(one, is_allowed=allowed, is_named=named):
                raise AddressRefused(
                    f"{host} is not reached: its address {one} {reason}", hint=_allow_hint(one if allowed else host)
                )
        return found


def display_url(url: str) -> str:
    """Return a URL for a message: short, and without the password that it may carry."""
    url = re.sub(r"//[^/?#]*@", "//…@", url.strip())
    return url if len(url) <= 200 else f"{url[:200]}…"


class _InvalidUrl(Exception):
    """A URL that is wrong, or that two parsers would read differently."""

    def __init__(self, message: str, hint: str = "Write it as a browser's address bar shows it.") -> None:
        super().__init__(message)
        self.hint = hint


def _parse_url(url: str) -> Target:
    if len(url) > MAX_URL_LENGTH:
        raise _InvalidUrl(f"it is longer than {MAX_URL_LENGTH} characters")
    url = url.strip(" \t\r\n\f")
    if _CONTROL.search(url):
        raise _InvalidUrl("it has a control character")
    found = _URL_PATTERN.fullmatch(url)
    if found is None:
        raise _InvalidUrl("it is not http:// or https://", "Give the whole address, beginning with https://.")
    scheme, authority, path, query = found[1].lower(), found[2], found[3], found[4] or ""
    if "\\" in authority or "\\" in path:
        raise _InvalidUrl("it has a backslash")
    if "@" in authority:
        raise _InvalidUrl("it carries a user name or password", "Leave out what stands before the @.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise _InvalidUrl("its host or port cannot be read")
    port = int(parts[2]) if parts[2] else DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise _InvalidUrl(f"there is no port {port}")
    target = Target(scheme, _normalise_host(parts[1]), port, _normalise_path(path) + _percent_encode(query))
    if len(str(target)) > MAX_URL_LENGTH:
        raise _InvalidUrl(f"it is longer than {MAX_URL_LENGTH} characters")
    return target


def _normalise_host(host: str) -> str:
    """Return a host in its one spelling. Numbers that only some programs read as an address are refused."""
    if host.startswith("["):
        inside = host[1:-1]
        if not isinstance(found := _parse_address(inside), IPv6Address) or found.scope_id:
            raise _InvalidUrl("its IPv6 address cannot be read")
        return str(found)
    if not host:
        raise _InvalidUrl("it has no host")
    if isinstance(_parse_address(host), IPv4Address):
        return host
    if len(host) > 254:  # with the dot of the root
        raise _InvalidUrl("its host is longer than a name can be")
    name = host.lower() if host.isascii() else _ascii_host(host)
    # The dot of the root: example.com. is example.com, and is not to be a second page.
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise _InvalidUrl(
            f"{host} is an unusual spelling of an address", "Write an IPv4 address as four plain numbers."
        )
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _InvalidUrl("its host is not a name or an address")
    if any(label.startswith("xn--") and not _is_valid_punycode(label) for label in labels):
        raise _InvalidUrl("its host is not a name: the xn-- part means nothing")
    return name


def _ascii_host(host: str) -> str:
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise _InvalidUrl("its host is not a valid international name") from None


def _is_valid_punycode(label: str) -> bool:
    try:
        return not label[4:].encode("ascii").decode("punycode").isascii()
    except (UnicodeError, ValueError, OverflowError):
        return False


def _normalise_path(path: str) -> str:
    """Return a path without . and .., spelled in one way."""
    parts: list[str] = []
    segments = _percent_encode(path or "/").split("/")[1:]
    for segment in segments:
        if segment == "..":
            del parts[-1:]
        elif segment != ".":
            parts.append(segment)
    if segments[-1] in (".", ".."):
        parts.append("")
    return "/" + "/".join(parts)


def _percent_encode(text: str) -> str:
    """Return text with every character escaped that needs it, no other, in capitals; a lone % is an escaped %."""

    def escape(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%25"
        plain = chr(int(found[1], 16))
        return plain if plain in _UNRESERVED else f"%{found[1].upper()}"

    def encode(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in found[0].encode())

    try:
        return _NEEDS_ESCAPE.sub(encode, _ESCAPE.sub(escape, text) if "%" in text else text)
    except UnicodeEncodeError:
        raise _InvalidUrl("it is not valid Unicode") from None


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _host_objection(host: str, *, is_allowed: bool, is_named: bool) -> str:
    """Return what is wrong with a host, "" if nothing; a name is judged later, by its addresses."""
    found = _parse_address(host)
    if found is None:
        local = host == "localhost" or host.endswith(".localhost")
        return "is this machine" if local and not is_allowed else ""
    if is_named:
        return ""
    return addresses.objection(found, allow_private=is_allowed)


def _allow_hint(host: str) -> str:
    return f"To read pages of your own network, name {host} in crawl.allowed_hosts."


def _parse_allowed_host(entry: str) -> tuple[str, int]:
    """Return the host and port (0: every port) of one allowed host."""
    text = entry.strip()
    wild = text.startswith("*.")
    text = text[2:] if wild else text
    if isinstance(_parse_address(text), IPv6Address):
        text = f"[{text}]"
    try:
        parts = _AUTHORITY.fullmatch(text)
        if parts is None:
            raise _InvalidUrl("it is not a host")
        host = _normalise_host(parts[1])
        if wild and _parse_address(host) is not None:
            raise _InvalidUrl("an address has no names below it")
    except _InvalidUrl as error:
        raise SettingsError(
            f"{entry!r} cannot be an allowed host: {error}",
            hint="Write crawl.allowed_hosts as names or addresses: intra.example, 10.0.0.5:8080, *.intra.example.",
        ) from None
    return (f"*.{host}" if wild else host), int(parts[2] or 0)
