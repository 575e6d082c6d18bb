"""How the API says no: one envelope for every route, with a code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from crewlet.base import limits
from crewlet.base.errors import CrewletError, MailboxFull, Unavailable

__all__ = ["Refusal", "Refused", "outcome_unknown", "unanswered", "unavailable"]

_RETRY_UNAVAILABLE_S: Final = 5
_RETRY_FULL_S: Final = 30


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status, a code, a sentence, what else helps, and the headers that belong to it."""

    status: int
    code: str
    message: str
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def body(self) -> bytes:
        """The envelope as JSON."""
        return msgspec.json.encode({"error": self.code, "message": self.message, **self.detail})

    def raw_headers(self, body: bytes) -> list[tuple[bytes, bytes]]:
        """The response's headers, as ASGI wants them."""
        said = {**self.headers, "content-type": "application/json", "content-length": str(len(body))}
        return [(name.lower().encode(), value.encode()) for name, value in said.items()]


class Refused(CrewletError):
    """A route says no; the envelope is the answer."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        detail: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.refusal = Refusal(status, code, message, detail or {}, headers or {})
        super().__init__(message)


def unavailable(message: str, *, retry_after_s: int = _RETRY_UNAVAILABLE_S, code: str = "unavailable") -> Refusal:
    """Waiting clears it."""
    return Refusal(503, code, message, headers={"Retry-After": str(retry_after_s)})


def outcome_unknown(message: str, *, cause: str = "") -> Refusal:
    """A write that may have happened: whoever repeats it may do it twice."""
    detail = {"outcome": "unknown", **({"cause": cause} if cause else {})}
    return Refusal(503, "unavailable", message, detail, {"Retry-After": str(_RETRY_UNAVAILABLE_S)})


def unanswered(error: Unavailable, *, is_write: bool) -> Refusal:
    """What the node stands on did not answer: a sentence for whoever asked, the cause for whoever operates it."""
    if isinstance(error, MailboxFull) and error.at_limit:
        return unavailable(str(error), code="mailbox_full", retry_after_s=_RETRY_FULL_S)
    if is_write:
        sentence = "the node's broker or store does not answer; it may have happened all the same: look first"
        return outcome_unknown(sentence, cause=str(error))
    sentence = "the node's broker or store does not answer just now; try again in a moment"
    return Refusal(503, "unavailable", sentence, {"cause": str(error)}, {"Retry-After": str(_RETRY_UNAVAILABLE_S)})


NO_TOKEN: Final = Refusal(
    401,
    "unauthorized",
    "this needs a bearer token: send `Authorization: Bearer …`",
    headers={"WWW-Authenticate": "Bearer"},
)
WRONG_TOKEN: Final = Refusal(
    401,
    "unauthorized",
    "the token is not one of this node's",
    headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
)
DRAINING: Final = unavailable("this node is shutting down and takes no new work", retry_after_s=30, code="draining")
INTERNAL: Final = Refusal(500, "internal_error", "the node failed to answer; its log says why")
BODY_LATE: Final = Refusal(
    408, "request_timeout", "the request did not arrive in time", headers={"Connection": "close"}
)
MALFORMED: Final = Refusal(400, "bad_request", "this is no HTTP request", headers={"Connection": "close"})
TOO_MANY_CONNECTIONS: Final = Refusal(
    503,
    "too_many_connections",
    "the node serves as many connections as it can",
    headers={"Retry-After": "5", "Connection": "close"},
)


def wrong_host(host: str) -> Refusal:
    """The request is addressed to a name that is not ours."""
    shown = host[: limits.HANDLE_MAX_CHARS]
    return Refusal(403, "wrong_host", f"{shown!r} is not a name of this node; use its address as `api.host` gives it")


def wrong_origin(origin: str) -> Refusal:
    """A page of somewhere else asks."""
    shown = origin[: limits.HANDLE_MAX_CHARS]
    return Refusal(403, "wrong_origin", f"pages of {shown!r} may not use this node")


def body_too_large(limit_bytes: int) -> Refusal:
    """More than the node takes."""
    return Refusal(413, "body_too_large", f"the body is larger than {limit_bytes} bytes", {"limit_bytes": limit_bytes})


def method_not_allowed(method: str, allowed: str = "") -> Refusal:
    """The route knows no such verb."""
    headers = {"Allow": allowed} if allowed else {}
    return Refusal(405, "method_not_allowed", f"{method} is not offered here", headers=headers)
