"""Records as JSON that only grows: what this build does not know of a record survives its rewrite (D10)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from crewlet.base.errors import Unavailable

__all__ = ["SharedRecord", "decode_record", "encode_record"]


class SharedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The base of every shared record, and of a part of one: ``unknown`` holds the fields that another build wrote."""

    unknown: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for an instant without an offset, which compares with none that has one."""
        for name in _instants(type(self)):
            at: datetime | None = getattr(self, name)
            if at is not None and at.tzinfo is None:
                raise ValueError(f"{name}: {at} has no offset")


_RecordT = TypeVar("_RecordT", bound=SharedRecord)


def encode_record(record: SharedRecord) -> bytes:
    """The record's JSON, the unknown fields beside its own."""
    return msgspec.json.encode(_merged(record), order="sorted")


def decode_record(kind: type[_RecordT], value: bytes) -> _RecordT:
    """The record in ``value``. Raises ``Unavailable`` where this build cannot read it: what it says is not known."""
    try:
        raw = msgspec.json.decode(value, type=dict[str, Any])
        return msgspec.convert(_turned(kind, raw), kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unavailable(f"a {kind.__name__} record cannot be read: {error}") from error


def _merged(record: SharedRecord) -> dict[str, Any]:
    """The record's fields beside the unknown ones, the records within it likewise; all else is left to the encoder."""
    kind = type(record)
    fields: dict[str, Any] = {**record.unknown}
    nested = _fields_with_records(kind)
    for name in _own_fields(kind):
        value = getattr(record, name)
        fields[name] = _merged_inside(value) if name in nested else value
    return fields


def _merged_inside(value: Any) -> Any:  # noqa: ANN401 - whatever a field that has records holds
    if isinstance(value, SharedRecord):
        return _merged(value)
    if isinstance(value, list | tuple):
        return [_merged_inside(each) for each in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {name: _merged_inside(each) for name, each in cast("dict[str, Any]", value).items()}
    return value


def _parted(kind: type[SharedRecord], raw: dict[str, Any]) -> dict[str, Any]:
    unknown = {name: raw.pop(name) for name in raw.keys() - _own_fields(kind)}
    raw["unknown"] = unknown
    return raw


def _turned(kind: Any, raw: Any) -> Any:  # noqa: ANN401 - the JSON of whatever type a field has
    """``raw`` with every record in it parted, the records within records first; ``kind`` says where they are."""
    if isinstance(kind, type) and issubclass(kind, SharedRecord):
        if not isinstance(raw, dict):
            return raw
        for name, part in _fields_with_records(kind).items():
            if name in raw:
                raw[name] = _turned(part, raw[name])
        return _parted(kind, cast("dict[str, Any]", raw))
    part = next((each for each in get_args(kind) if _has_records(each)), None)
    if part is None or raw is None:
        return raw
    if isinstance(raw, list | tuple):
        return [_turned(part, each) for each in cast("Sequence[Any]", raw)]
    if get_origin(kind) is dict:
        parts = cast("dict[str, Any]", raw)
        return {name: _turned(part, each) for name, each in parts.items()} if isinstance(raw, dict) else raw
    return _turned(part, raw)


@cache
def _own_fields(kind: type[SharedRecord]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__) - {"unknown"}


@cache
def _instants(kind: type[SharedRecord]) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(kind).items() if datetime in (hint, *get_args(hint)))


@cache
def _fields_with_records(kind: type[SharedRecord]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in _own_fields(kind) if _has_records(hints[name])}


def _has_records(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    if isinstance(kind, type) and issubclass(kind, SharedRecord):
        return True
    return any(_has_records(each) for each in get_args(kind))
