"""Records as JSON that only grows: what this build does not know of a record survives its rewrite (D10)."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from crewlet.base.errors import Unavailable

__all__ = ["SharedRecord", "decode_record", "encode_record"]


class SharedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The base of every shared record: ``unknown`` holds the fields that another build wrote into it."""

    unknown: dict[str, Any] = {}


_RecordT = TypeVar("_RecordT", bound=SharedRecord)


def encode_record(record: SharedRecord) -> bytes:
    """The record's JSON, the unknown fields beside its own."""
    known: dict[str, Any] = msgspec.to_builtins(record)
    unknown = known.pop("unknown")
    return msgspec.json.encode({**unknown, **known}, order="sorted")


def decode_record(kind: type[_RecordT], value: bytes) -> _RecordT:
    """The record in ``value``. Raises ``Unavailable`` where this build cannot read it: what it says is not known."""
    try:
        raw = msgspec.json.decode(value, type=dict[str, Any])
        unknown = {name: raw.pop(name) for name in [*raw] if name not in _own_fields(kind)}
        return msgspec.convert({**raw, "unknown": unknown}, kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"a {kind.__name__} record cannot be read: {error}") from error


def _own_fields(kind: type[SharedRecord]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__) - {"unknown"}
