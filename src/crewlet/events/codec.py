"""Events to bytes and back: one flat JSON object; what this build does not know goes through untouched (D10)."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, cast

import msgspec

from crewlet.base.errors import CrewletError
from crewlet.events.body import ENVELOPE_FIELDS, Body, body_type
from crewlet.events.envelope import Event
from crewlet.events.unknown import put_back, unknown_fields

__all__ = ["MalformedEvent", "decode", "encode"]


class MalformedEvent(CrewletError):
    """Bytes that are no event: not a JSON object, or without an id, a type or a timestamp."""


class _Envelope(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    type: str
    timestamp: datetime
    source: str = ""
    node: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    delegation_depth: int = 0
    parent_turn_id: str = ""
    delegation_chain: tuple[str, ...] = ()
    payload: dict[str, Any] = {}


def encode(event: Event) -> bytes:
    """The event as one flat JSON object: what was kept of a successor's fields, then body, then envelope.

    Where two of them hold one name the later wins, so nothing can pass for an envelope's field (E-152).
    """
    envelope = _Envelope(
        id=event.id,
        type=event.type,
        timestamp=event.timestamp,
        source=event.source,
        node=event.node,
        trace_id=event.trace_id,
        span_id=event.span_id,
        parent_span_id=event.parent_span_id,
        delegation_depth=event.delegation_depth,
        parent_turn_id=event.parent_turn_id,
        delegation_chain=event.delegation_chain,
        payload=dict(event.payload),
    )
    if event.data is not None and not event.extra and _is_apart(type(event.data)):
        # What is neither merged nor replaced need not become a dictionary first; the bytes are the same.
        body, rest = msgspec.json.encode(event.data), msgspec.json.encode(envelope)
        return b"%b,%b" % (body[:-1], rest[1:]) if body != b"{}" else rest
    flat = cast("dict[str, Any]", msgspec.to_builtins(envelope))
    return msgspec.json.encode({**_fields_of(event), **flat})


def decode(raw: bytes) -> Event:
    """The event in ``raw``; a type or field this build does not know is kept in ``extra``.

    A known type whose fields do not fit keeps them in ``extra`` too, with ``data`` ``None``. Raises ``MalformedEvent``.
    """
    try:
        flat = msgspec.json.decode(raw, type=dict[str, Any])
        envelope = msgspec.convert({k: v for k, v in flat.items() if k in ENVELOPE_FIELDS}, _Envelope)
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"not an event: {error}"
        raise MalformedEvent(message) from error
    rest = {k: v for k, v in flat.items() if k not in ENVELOPE_FIELDS}
    body = _body_of(envelope.type, rest)
    return Event(
        id=envelope.id,
        type=envelope.type,
        timestamp=envelope.timestamp,
        source=envelope.source,
        node=envelope.node,
        trace_id=envelope.trace_id,
        span_id=envelope.span_id,
        parent_span_id=envelope.parent_span_id,
        delegation_depth=envelope.delegation_depth,
        parent_turn_id=envelope.parent_turn_id,
        delegation_chain=envelope.delegation_chain,
        payload=envelope.payload,
        data=body,
        extra=rest if body is None else unknown_fields(body, rest),
    )


@lru_cache(maxsize=1024)
def _is_apart(body: type[Body]) -> bool:
    """Whether no field of such a body has an envelope's name."""
    return ENVELOPE_FIELDS.isdisjoint(body.__struct_encode_fields__)


def _fields_of(event: Event) -> dict[str, Any]:
    body = {} if event.data is None else cast("dict[str, Any]", msgspec.to_builtins(event.data))
    if not event.extra:
        return body
    # What is left of a field that the body has since emptied would not decode on its own.
    emptied = () if event.data is None else {name for name in event.data.__struct_fields__ if name not in body}
    kept = {k: v for k, v in event.extra.items() if k not in ENVELOPE_FIELDS and k not in emptied}
    return cast("dict[str, Any]", put_back(body, kept))


def _body_of(event_type: str, fields: dict[str, Any]) -> Body | None:
    body = body_type(event_type)
    if body is None:
        return None
    try:
        return msgspec.convert(fields, body)
    except msgspec.ValidationError:
        return None
