"""What a fake model server may answer: replies, refusals by status, and the ways in which a line breaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Answer", "CallOut", "Hang", "HttpError", "ServerReply", "reply_that"]


@dataclass(frozen=True, slots=True)
class CallOut:
    """A tool call in a reply. ``arguments`` go out as they stand, so they may be no JSON at all."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply that goes through, or begins to.

    ``stop`` is the vendor's own word (``length``, ``refusal``, ``pause_turn``, …); empty: the one that fits; ``none``:
    the reply does not say. ``cut`` ends the stream cleanly before the reply is complete, ``reset`` breaks the
    connection there. ``unstreamed`` answers a request for a stream with a plain body.
    """

    text: str = ""
    calls: tuple[CallOut, ...] = ()
    thinking: str = ""
    signature: str = "signed-by-the-fake"
    stop: str = ""
    refusal: str = ""
    refusal_category: str = ""
    input_tokens: int = 11
    output_tokens: int = 7
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    delay_ms: float = 0.0
    unstreamed: bool = False
    cut: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpError:
    """A refusal by status. ``body`` replaces the vendor-shaped one; ``in_stream`` sends the error after a 200."""

    status: int
    message: str = "no"
    code: str = ""
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None
    in_stream: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer, until the client gives up. ``reset`` breaks the connection instead, before a byte was sent."""

    reset: bool = False


ServerReply = Answer | HttpError | Hang


_TOO_LONG = "prompt is too long: this model's maximum context length is exceeded"

_BY_KIND: dict[str, ServerReply] = {
    "payment": HttpError(status=402, message="pay first", type="billing_error"),
    "auth": HttpError(status=401, message="who are you", type="authentication_error"),
    "timeout": Hang(),
    "network": Hang(reset=True),
    "bad_request": HttpError(status=400, message="malformed", type="invalid_request_error"),
    "context_exceeded": HttpError(
        status=400, message=_TOO_LONG, code="context_length_exceeded", type="invalid_request_error"
    ),
    "server": HttpError(status=500, message="it broke", type="api_error"),
}


def reply_that(kind: str, retry_after_s: float | None = None) -> ServerReply:
    """The server's side of a failure kind, as a script names them."""
    if kind == "rate_limited":
        headers = {} if retry_after_s is None else {"retry-after": f"{retry_after_s:g}"}
        return HttpError(status=429, message="slow down", type="rate_limit_error", headers=headers)
    return _BY_KIND[kind]
