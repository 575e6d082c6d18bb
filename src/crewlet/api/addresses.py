"""Which Host and Origin a request may carry, so that no page in a browser reaches the node under a name of its own.

Pure. A page that rebinds its own DNS name to this machine still says that name in ``Host``; a page of another origin
says so in ``Origin``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["AllowedHosts", "is_loopback"]

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether a listener on ``host`` is reachable from this machine alone."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The names a request may address the node by.

    The port is left free, since a tunnel or a container maps it and rebinding is about names. A listener that other
    machines reach also takes any address written in digits: a page cannot rebind those.
    """

    names: frozenset[str]
    any_address: bool

    @classmethod
    def of(cls, bind: str, further: Iterable[str] = ()) -> AllowedHosts:
        """The rule for a listener on ``bind``."""
        named = {_bare(name) for name in (bind, *further)}
        return cls(_LOOPBACK_NAMES | named, any_address=not is_loopback(bind))

    def allows_host(self, host: str) -> bool:
        """Whether a request with this ``Host`` is for us."""
        name = _name_of(host)
        if not name:
            return False
        return name in self.names or (self.any_address and _address(name) is not None)

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this ``Origin`` was served by the ``Host`` it now asks. ``null`` is nobody's."""
        scheme, mark, place = origin.lower().partition("://")
        return bool(mark) and scheme in ("http", "https") and place == host.lower()


def _name_of(host: str) -> str:
    try:
        split = urlsplit(f"//{host}")
        _ = split.port
    except ValueError:
        return ""
    is_bare = not (split.path or split.query or split.fragment or split.username is not None)
    return _bare(split.hostname or "") if is_bare else ""


def _bare(name: str) -> str:
    return name.strip("[]").rstrip(".").lower()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
