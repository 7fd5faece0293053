"""Protect against server-side request forgery: normalise URLs and refuse those that lead to private addresses."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from bunko.errors import AddressRefused, FetchFailed, SettingsError
from bunko.runtime.package_errors import package_errors

# Written out, because the registries in `ipaddress` differ between patch releases of one Python version. The flag marks
# networks where an allowed host of the intranet may be.
_SPECIAL_NETWORKS: tuple[tuple[str, str, bool], ...] = (
    ("0.0.0.0/8", "means no address", False),
    ("10.0.0.0/8", "is private", True),
    ("100.64.0.0/10", "is private (shared by a carrier's customers)", True),
    ("127.0.0.0/8", "is this machine", True),
    ("169.254.0.0/16", "is link-local, where clouds serve their metadata", False),
    ("172.16.0.0/12", "is private", True),
    ("192.0.0.0/24", "is reserved", False),
    ("192.0.2.0/24", "is for examples", False),
    ("192.88.99.0/24", "is a tunnel", False),
    ("192.168.0.0/16", "is private", True),
    ("198.18.0.0/15", "is for measurements", True),
    ("198.51.100.0/24", "is for examples", False),
    ("203.0.113.0/24", "is for examples", False),
    ("224.0.0.0/4", "is multicast", False),
    ("240.0.0.0/4", "is reserved", False),
    ("::/128", "means no address", False),
    ("::1/128", "is this machine", True),
    ("::ffff:0:0/96", "is an IPv4 address in disguise", False),
    ("::/96", "is an IPv4 address in disguise", False),
    ("64:ff9b:1::/48", "is an IPv4 address in disguise", False),
    ("2001::/32", "is a tunnel", False),
    ("2001::/23", "is reserved", False),
    ("2001:db8::/32", "is for examples", False),
    ("2002::/16", "is a tunnel", False),
    ("3fff::/20", "is for examples", False),
    ("fc00::/7", "is private", True),
    ("fe80::/10", "is link-local", False),
    ("fec0::/10", "is private", True),
    ("ff00::/8", "is multicast", False),
)
_IPV4 = [(IPv4Network(net), reason, private) for net, reason, private in _SPECIAL_NETWORKS if ":" not in net]
_IPV6 = [(IPv6Network(net), reason, private) for net, reason, private in _SPECIAL_NETWORKS if ":" in net]

# Metadata services of clouds outside link-local, which hand out keys and settings: AWS, Alibaba, Oracle, Azure.
_METADATA_ADDRESSES = frozenset({
    IPv6Address("fd00:ec2::254"), IPv6Address("fd20:ce::254"),
    IPv4Address("100.100.100.200"), IPv4Address("192.0.0.192"), IPv4Address("168.63.129.16"),
})  # fmt: skip

_GLOBAL_UNICAST = IPv6Network("2000::/3")  # all that has been assigned to networks
_NAT64 = IPv6Network("64:ff9b::/96")  # how a network without IPv4 reaches IPv4: judged by the embedded address
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # third quarter of an address whose last quarter is an IPv4 address


def objection(address: IPv4Address | IPv6Address, *, allow_private: bool = False) -> str:
    """Return the reason to refuse an address, or an empty string; `allow_private` lets private ones through."""
    if address in _METADATA_ADDRESSES:
        return "is a metadata service of a cloud"
    if isinstance(address, IPv4Address):
        for network, reason, is_private in _IPV4:
            if address in network:
                return "" if allow_private and is_private else reason
        return "" if address.is_global or allow_private else "is not public"
    return _ipv6_objection(address, allow_private=allow_private)


def _ipv6_objection(address: IPv6Address, *, allow_private: bool) -> str:
    if address.scope_id:
        return "is link-local"
    number = int(address)
    embedded = IPv4Address(number & 0xFFFF_FFFF)
    if address in _NAT64:
        return objection(embedded, allow_private=allow_private)
    for network, reason, is_private in _IPV6:
        if address in network:
            return "" if allow_private and is_private else reason
    if (number >> 32) & 0xFFFF_FFFF in _ISATAP and (reason := objection(embedded, allow_private=allow_private)):
        return f"holds an IPv4 address that {reason}"
    return "" if address in _GLOBAL_UNICAST else "is reserved"


# Long enough for any link that people share; few servers accept longer URLs.
MAX_URL_LENGTH = 8_000
DEFAULT_PORTS = {"http": 80, "https": 443}

# Ports of other services than the web, which a link could make us talk to: the list that browsers block.
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
    """A parsed URL; it is parsed only once, and not again on the way to the socket."""

    scheme: str
    host: str  # a name in ASCII, or an address as `ipaddress` writes it, without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """The value of the Host header; the port only if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The URL up to its path."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.path


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a name from the system resolver."""
    # As bytes: Python would encode a str with its older IDNA.
    results = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in results))


@dataclass(frozen=True, slots=True)
class Guard:
    """Allows public addresses, and private ones only for allowed hosts.

    `allowed_hosts` are names, addresses or `*.intra.example`, with a `:port` or for every port. An allowed name may
    resolve to a private address, but not to a link-local, multicast or cloud metadata address: such an address must
    itself be allowed.
    """

    allowed_hosts: tuple[str, ...] = ()
    resolve: Resolver = field(default=resolve_host, compare=False)
    _allowed: frozenset[tuple[str, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", frozenset(map(_parse_allowed_host, self.allowed_hosts)))

    def canonical_url(self, url: str) -> str:
        """Return the normalised URL, without its fragment; raise AddressRefused if it may not be fetched."""
        return str(self.target(url))

    def target(self, url: str) -> Target:
        """Return the parsed URL; raise AddressRefused if it may not be fetched."""
        try:
            target = parse_url(url)
        except InvalidUrl as error:
            message = f"{display_url(url)} is not fetched: {error}"
            raise AddressRefused(message, hint=error.hint, reason="invalid-url") from None
        allowed = self.allows(target.host, target.port)
        if target.port in _BLOCKED_PORTS and (target.host, target.port) not in self._allowed:
            raise AddressRefused(
                f"{display_url(url)} is not fetched: port {target.port} belongs to another service",
                hint="Check the port. Browsers block it too.",
                reason="port",
            )
        if reason := _host_objection(target.host, is_allowed=allowed, is_named=allowed):
            raise AddressRefused(
                f"{display_url(url)} is not fetched: {target.host} {reason}",
                hint=_allow_hint(target.host),
                reason="private-address",
            )
        return target

    def link_target(self, source: Target, url: str) -> Target:
        """Return the target of a link; only an allowed host may link to a host of your own network."""
        target = self.target(url)
        if self.allows(target.host, target.port) and not self.allows(source.host, source.port):
            raise AddressRefused(
                f"{display_url(url)} is not fetched: {source.host} links to a host of your own network",
                hint="To fetch it, give its address directly.",
            )
        return target

    def redirect_target(self, source: Target, location: str) -> Target:
        """Return the target of a redirect, checked like a link; a redirect from https to http is refused."""
        target = self.link_target(source, location)
        if source.scheme == "https" and target.scheme == "http":
            raise AddressRefused(
                f"{display_url(str(source))} is not fetched: it redirects from https to http, {display_url(location)}",
                hint="If you trust the network, fetch the http address directly.",
            )
        return target

    def allows(self, host: str, port: int) -> bool:
        """Return whether a host is one of the allowed hosts."""
        if not self._allowed:
            return False
        names = [host, *(f"*.{host[dot + 1 :]}" for dot, char in enumerate(host) if char == ".")]
        return any((name, allowed_port) in self._allowed for name in names for allowed_port in (port, 0))

    def addresses(self, host: str, port: int) -> list[str]:
        """Resolve a host once and return its addresses; raise AddressRefused if any of them may not be reached."""
        is_allowed = self.allows(host, port)
        if _parse_address(host) is not None:
            if reason := _host_objection(host, is_allowed=is_allowed, is_named=is_allowed):
                raise AddressRefused(
                    f"{host} is blocked: it {reason}", hint=_allow_hint(host), reason="private-address"
                )
            return [host]
        try:
            resolved = list(dict.fromkeys(self.resolve(host, port)))
        except OSError as error:
            raise FetchFailed(
                f"{host} cannot be resolved: {error.strerror or error}",
                hint="Check the spelling of the host, and that this machine is online.",
                reason="unresolved",
            ) from error
        if not resolved:
            raise FetchFailed(f"{host} has no address", hint="Check the spelling of the host.", reason="unresolved")
        for address in resolved:
            if _parse_address(address) is None:  # a socket would look it up by itself
                raise AddressRefused(f"{host} is blocked: {address!r}, its address, is not an address")
            # One bad address among good ones is enough to refuse: this is how a site attacks an internal network.
            is_named = is_allowed and self.allows(address.partition("%")[0], port)
            if reason := _host_objection(address, is_allowed=is_allowed, is_named=is_named):
                raise AddressRefused(
                    f"{host} is blocked: its address {address} {reason}",
                    hint=_allow_hint(address if is_allowed else host),
                    reason="private-address",
                )
        return resolved


def display_url(url: str) -> str:
    """Return a URL for a message, shortened and without credentials."""
    url = re.sub(r"//[^/?#]*@", "//…@", url.strip())
    return url if len(url) <= 200 else f"{url[:200]}…"


class InvalidUrl(Exception):
    """A URL that is invalid, or that two parsers would read differently."""

    def __init__(self, message: str, hint: str = "Write it as the address bar of a browser shows it.") -> None:
        super().__init__(message)
        self.hint = hint


def parse_url(url: str) -> Target:
    """Return a URL in its parts, whether or not it may be fetched; raise InvalidUrl."""
    if len(url) > MAX_URL_LENGTH:
        raise InvalidUrl(f"it is longer than {MAX_URL_LENGTH} characters")
    url = url.strip(" \t\r\n\f")
    if _CONTROL.search(url):
        raise InvalidUrl("it contains a control character")
    match = _URL_PATTERN.fullmatch(url)
    if match is None:
        raise InvalidUrl("it is not http:// or https://", "Give the whole address, starting with https://.")
    scheme, authority, path, query = match[1].lower(), match[2], match[3], match[4] or ""
    if "\\" in authority or "\\" in path:
        raise InvalidUrl("it contains a backslash")
    if "@" in authority:
        raise InvalidUrl("it contains a user name or password", "Remove the part before the @.")
    authority_match = _AUTHORITY.fullmatch(authority)
    if authority_match is None:
        raise InvalidUrl("its host or port is invalid")
    port = int(authority_match[2]) if authority_match[2] else DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise InvalidUrl(f"there is no port {port}")
    target = Target(scheme, _normalise_host(authority_match[1]), port, _normalise_path(path) + _percent_encode(query))
    if len(str(target)) > MAX_URL_LENGTH:
        raise InvalidUrl(f"it is longer than {MAX_URL_LENGTH} characters")
    return target


def _normalise_host(host: str) -> str:
    """Return the normalised host; raise on numbers that only some programs read as an address."""
    if host.startswith("["):
        inner = host[1:-1]
        if not isinstance(address := _parse_address(inner), IPv6Address) or address.scope_id:
            raise InvalidUrl("its IPv6 address is invalid")
        return str(address)
    if not host:
        raise InvalidUrl("it has no host")
    if isinstance(_parse_address(host), IPv4Address):
        return host
    if len(host) > 254:  # with the dot for the root
        raise InvalidUrl("its host name is too long")
    name = host.lower() if host.isascii() else _ascii_host(host)
    # The dot for the root: example.com. is example.com, and must not become a second page.
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise InvalidUrl(
            f"{host} is an unusual spelling of an address", "Write an IPv4 address as four decimal numbers."
        )
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidUrl("its host is neither a name nor an address")
    if any(label.startswith("xn--") and not _is_valid_punycode(label) for label in labels):
        raise InvalidUrl("its host is not a name: the xn-- part is invalid")
    return name


def _ascii_host(host: str) -> str:
    with package_errors("idna"):
        import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise InvalidUrl("its host is not a valid international name") from None


def _is_valid_punycode(label: str) -> bool:
    try:
        return not label[4:].encode("ascii").decode("punycode").isascii()
    except (UnicodeError, ValueError, OverflowError):
        return False


def _normalise_path(path: str) -> str:
    """Return a normalised path, without . and .. segments."""
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
    """Return text with exactly the characters escaped that need it, in upper case; a lone % becomes %25."""

    def normalise_escape(match: re.Match[str]) -> str:
        if match[1] is None:
            return "%25"
        char = chr(int(match[1], 16))
        return char if char in _UNRESERVED else f"%{match[1].upper()}"

    def encode(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())

    try:
        return _NEEDS_ESCAPE.sub(encode, _ESCAPE.sub(normalise_escape, text) if "%" in text else text)
    except UnicodeEncodeError:
        raise InvalidUrl("it is not valid Unicode") from None


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _host_objection(host: str, *, is_allowed: bool, is_named: bool) -> str:
    """Return the reason to refuse a host, or an empty string; a name is checked later, by its addresses."""
    address = _parse_address(host)
    if address is None:
        is_local = host == "localhost" or host.endswith(".localhost")
        return "is this machine" if is_local and not is_allowed else ""
    if is_named:
        return ""
    return objection(address, allow_private=is_allowed)


def _allow_hint(host: str) -> str:
    return f"To read pages of your own network, add {host} to crawl.allowed_hosts."


def _parse_allowed_host(entry: str) -> tuple[str, int]:
    """Return the host and port (0: every port) of an entry in crawl.allowed_hosts."""
    text = entry.strip()
    is_wildcard = text.startswith("*.")
    text = text[2:] if is_wildcard else text
    if isinstance(_parse_address(text), IPv6Address):
        text = f"[{text}]"
    try:
        match = _AUTHORITY.fullmatch(text)
        if match is None:
            raise InvalidUrl("it is not a host")
        host = _normalise_host(match[1])
        if is_wildcard and _parse_address(host) is not None:
            raise InvalidUrl("an address cannot have a wildcard")
    except InvalidUrl as error:
        raise SettingsError(
            f"{entry!r} is not a valid allowed host: {error}",
            hint="Write crawl.allowed_hosts as names or addresses: intra.example, 10.0.0.5:8080, *.intra.example.",
        ) from None
    return (f"*.{host}" if is_wildcard else host), int(match[2] or 0)
