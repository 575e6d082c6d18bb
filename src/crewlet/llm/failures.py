"""What a failed call means, decided at one place: whatever a vendor's SDK raises becomes a ``ModelFailure``.

Imports pydantic-ai: load it late.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import cast

import httpx2
from pydantic_ai import exceptions

from crewlet.llm.contract import FailureKind, ModelFailure
from crewlet.llm.redaction import redacted
from crewlet.llm.reset_headers import reset_after_s

__all__ = ["failure_of", "refuses_streaming"]

_BY_STATUS = {
    401: FailureKind.AUTH,
    402: FailureKind.PAYMENT,
    403: FailureKind.AUTH,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    425: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
}
_NOT_FOUND_STATUS = 404
_SERVER_STATUS_FROM = 500
_REQUEST_STATUS_FROM = 400

# pydantic-ai's categories know what a status alone does not say: a 400 that means an empty balance or a prompt that
# is too long, a 429 that means a spent quota. The first that fits counts, so the finer ones stand first.
_BY_CATEGORY: tuple[tuple[type[Exception], FailureKind], ...] = (
    (exceptions.ModelContextWindowExceededError, FailureKind.CONTEXT_EXCEEDED),
    (exceptions.ModelQuotaExceededError, FailureKind.PAYMENT),
    (exceptions.ModelRateLimitError, FailureKind.RATE_LIMITED),
    (exceptions.ModelAuthenticationError, FailureKind.AUTH),
    (exceptions.ModelTimeoutError, FailureKind.TIMEOUT),
    (exceptions.ModelRequestTimeout, FailureKind.TIMEOUT),
    (exceptions.ModelConnectionError, FailureKind.NETWORK),
    (exceptions.ModelUnavailableError, FailureKind.SERVER),
    (exceptions.ModelServerError, FailureKind.SERVER),
    (exceptions.ModelRequestRejectedError, FailureKind.BAD_REQUEST),
    (exceptions.UserError, FailureKind.BAD_REQUEST),
    (TimeoutError, FailureKind.TIMEOUT),
    (httpx2.TimeoutException, FailureKind.TIMEOUT),
    (httpx2.HTTPError, FailureKind.NETWORK),
    (OSError, FailureKind.NETWORK),
)

# How servers word a prompt that is too long, beside the wordings that pydantic-ai knows.
_TOO_LONG = ("context length", "context window", "prompt is too long", "input is too long", "too many tokens")


def failure_of(
    error: Exception, *, provider_key: str, has_address: bool, now: datetime, secrets: Iterable[str]
) -> ModelFailure:
    """The failure that ``error`` stands for; it keeps no reference to ``error`` and no secret in its text.

    ``has_address``: the entry names an endpoint of its own, so that is what a remedy may point to.
    """
    kind = _kind_of(error)
    headers = error.headers if isinstance(error, exceptions.ModelHTTPError) else None
    remedy = _remedy(kind, error, f"providers.llm.{provider_key}", has_address=has_address)
    return ModelFailure(
        kind,
        f"{provider_key}: {_words(kind)}: {redacted(_text_of(error), secrets).removesuffix('.')}{remedy}",
        provider_key=provider_key,
        retry_after_s=reset_after_s(headers, now) if headers else None,
    )


def refuses_streaming(error: Exception) -> bool:
    """Whether the endpoint turned the request away because it was to be streamed."""
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else 0
    return status in {400, 404, 405, 415, 422, 501} and "stream" in _text_of(error).lower()


def _kind_of(error: Exception) -> FailureKind:
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else 0
    if status in {400, 413, 422} and any(words in _text_of(error).lower() for words in _TOO_LONG):
        return FailureKind.CONTEXT_EXCEEDED
    for category, kind in _BY_CATEGORY:
        if isinstance(error, category):
            return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if _REQUEST_STATUS_FROM <= status < _SERVER_STATUS_FROM:
        return FailureKind.BAD_REQUEST
    # An answer that nobody can read is the server's fault, whatever its reader raised over it.
    return FailureKind.SERVER


def _remedy(kind: FailureKind, error: Exception, entry: str, *, has_address: bool) -> str:
    """What to look at, in brackets; nothing where the vendor's own words say it better. Addresses may hold secrets."""
    if kind is FailureKind.AUTH:
        return f" (check {entry}.api_keys)"
    if kind is FailureKind.NETWORK and has_address:
        return f" (does a server answer at {entry}.base_url?)"
    if kind is FailureKind.NETWORK:
        return " (does this machine reach the vendor?)"
    if isinstance(error, exceptions.ModelHTTPError) and error.status_code == _NOT_FOUND_STATUS:
        return f" (check {entry}.model{' and base_url' if has_address else ''})"
    return ""


def _words(kind: FailureKind) -> str:
    return kind.replace("_", " ")


def _text_of(error: Exception) -> str:
    said = _said_in(error.body) if isinstance(error, exceptions.ModelAPIError) else ""
    status = f"HTTP {error.status_code}" if isinstance(error, exceptions.ModelHTTPError) else ""
    if said or status:
        return ": ".join(part for part in (status, said) if part)
    return str(error) or type(error).__name__


def _said_in(body: object) -> str:
    """The vendor's own sentence in an error's body, which is an object, or an object within one, or plain text."""
    if isinstance(body, str):
        return body
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, object]", body)
    inner = fields.get("error", fields)
    if isinstance(inner, str):
        return inner
    message = cast("dict[str, object]", inner).get("message") if isinstance(inner, dict) else None
    return message if isinstance(message, str) else str(fields)
