"""Addresses as people write them: whether one is this machine's alone, and host and port apart."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

__all__ = ["WILDCARDS", "host_and_port", "is_loopback"]

WILDCARDS: Final = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 - to recognise them, not to listen there
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_PORT_MAX: Final = 65535


def is_loopback(host: str) -> bool:
    """Whether a listener on ``host`` is reachable from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_and_port(text: str) -> tuple[str, int] | None:
    """``host:port`` taken apart, an IPv6 host in its brackets; ``None`` where it is no such thing."""
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _PORT_MAX:
        return None
    return found[1], int(found[2])
