"""Keep the domains that the bot may add pages from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from bunko.errors import SourceError
from bunko.protocols import DomainStore
from bunko.runtime.package_errors import package_errors
from bunko.sources.web.ssrf_guard import Guard
from bunko.types.records import DomainRule

ALL = "*"
_DOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")


class AllowedDomains:
    """The domains whose pages may be added; each stands for its subdomains, too.

    Without any, all are allowed. As soon as there is a rule, what no rule allows is not allowed, so that taking back
    the last permission does not permit everything.
    """

    def __init__(self, store: DomainStore, configured: Sequence[str], private_hosts: Sequence[str] = ()) -> None:
        self._store, self._private_hosts = store, tuple(private_hosts)
        self._configured = [domain for domain in map(parse_domain, configured) if domain]

    def rules(self) -> dict[str, bool]:
        """Return whether each domain is allowed; empty if all are."""
        rules = dict.fromkeys(self._configured, True)
        return rules | {rule.domain: rule.is_allowed for rule in self._store.all()}

    def check(self, url: str) -> tuple[str, bool]:
        """Return the host of a URL, and whether its pages may be added."""
        rules = self.rules()
        host = self._host(url)
        if not rules:
            return host, True
        labels = host.split(".") if host else []
        for start in range(len(labels)):
            if (is_allowed := rules.get(".".join(labels[start:]))) is not None:
                return host, is_allowed
        return host or url, bool(host) and rules.get(ALL, False)

    def allow(self, domain: str, user: str) -> None:
        """Allow a domain; if all are allowed, those whose permission was taken back are, too."""
        refused = [name for name, is_allowed in self.rules().items() if not is_allowed] if domain == ALL else []
        for name in [domain, *refused]:
            self._put(name, True, user)

    def disallow(self, domain: str, user: str) -> None:
        """Take back the permission of a domain; if all were allowed, the others stay so."""
        if not self.rules():
            self._put(ALL, True, user)
        self._put(domain, False, user)

    def _put(self, domain: str, is_allowed: bool, user: str) -> None:
        self._store.put(DomainRule(domain, is_allowed, user, datetime.now(UTC).isoformat(timespec="seconds")))

    def _host(self, url: str) -> str:
        """Return the host that the crawler would connect to, or an empty string if it would refuse the URL."""
        try:
            host = urlsplit(Guard(self._private_hosts).canonical_url(url)).hostname
        except (SourceError, ValueError):
            return ""
        return (host or "").rstrip(".").lower()


def parse_domain(text: str) -> str:
    """Return a domain as rules name it, from a domain or an address, or an empty string if it is none."""
    text = text.strip().casefold()
    if text == ALL:
        return ALL
    text = re.sub(r"\A[a-z][a-z0-9+.-]*://", "", text).partition("/")[0].partition(":")[0]
    text = text.removeprefix("*.").strip(".")
    if not text.isascii():
        with package_errors("idna"):
            import idna

        try:
            text = idna.encode(text, uts46=True).decode()
        except idna.IDNAError:
            return ""
    return text if _DOMAIN.fullmatch(text) else ""
