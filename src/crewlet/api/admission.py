"""Whether a request may pass, decided from its head alone. Pure; every route stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from crewlet.api.addresses import AllowedHosts
from crewlet.api.refusals import NO_TOKEN, WRONG_TOKEN, Refusal, method_not_allowed, wrong_host, wrong_origin
from crewlet.api.tokens import ANONYMOUS, Tokens

__all__ = ["OPEN_PATHS", "READS", "STREAM_PATH", "WRITES", "Admission", "Head"]

OPEN_PATHS: Final = frozenset({"/health", "/ready"})
"""Probes ask here, and are answered whatever token they show."""
STREAM_PATH: Final = "/ws/stream"
"""The one path that takes its token from the query too: a browser's socket cannot set headers."""
READS: Final = frozenset({"GET", "HEAD"})
WRITES: Final = frozenset({"DELETE", "PATCH", "POST", "PUT"})


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its body. ``method`` is ``GET`` for a socket's handshake."""

    method: str
    path: str
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]

    def all_of(self, name: bytes) -> list[bytes]:
        """Every value of one header; ``name`` in lower case."""
        return [value for key, value in self.headers if key == name]

    def one_of(self, name: bytes) -> str:
        """The header's value, or ``""`` where it is missing or said twice."""
        said = self.all_of(name)
        return said[0].decode("latin-1") if len(said) == 1 else ""


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules of the door."""

    hosts: AllowedHosts
    tokens: Tokens
    allow_anonymous_read: bool = False
    disabled: bool = False

    def decide(self, head: Head) -> str | Refusal:
        """The id of who asks, or why the request is turned away."""
        host = head.one_of(b"host")
        if not self.hosts.allows_host(host):
            return wrong_host(host)
        for origin in head.all_of(b"origin"):
            said = origin.decode("latin-1")
            if not self.hosts.allows_origin(said, host):
                return wrong_origin(said)
        if head.method not in READS | WRITES:
            return method_not_allowed(head.method, ", ".join(sorted(READS | WRITES)))
        return self._who(head)

    def _who(self, head: Head) -> str | Refusal:
        if self.disabled or head.path in OPEN_PATHS:
            return ANONYMOUS
        shown = _shown(head)
        if shown is None:
            is_open = self.allow_anonymous_read and head.method in READS
            return ANONYMOUS if is_open else NO_TOKEN
        return self.tokens.id_of(shown) or WRONG_TOKEN


def _shown(head: Head) -> bytes | None:
    """The token shown, empty where what is shown is none; ``None`` where nothing is shown."""
    said = head.all_of(b"authorization")
    if said:
        scheme, _, token = said[0].partition(b" ")
        return token.strip() if len(said) == 1 and scheme.lower() == b"bearer" else b""
    if head.path == STREAM_PATH:
        asked: Mapping[bytes, list[bytes]] = parse_qs(head.query, keep_blank_values=True)
        if b"token" in asked:
            return asked[b"token"][0]
    return None
