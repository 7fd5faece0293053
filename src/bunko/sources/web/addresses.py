"""Decide whether an IP address may be reached, from the IANA registries of special-purpose addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

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
    """Return why an address may not be reached, or an empty string; `allow_private` lets private ones through."""
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
