"""What a body does not know of the object it was read from, at any depth: taken out on decode, put back on encode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

__all__ = ["put_back", "unknown_fields"]


def unknown_fields(known: msgspec.Struct, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``raw`` that ``known``, decoded from it, does not have; those of nested structs at their place."""
    rest: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in known.__struct_fields__:
            rest[name] = value
        elif inner := _unknown_inside(getattr(known, name), value):
            rest[name] = inner
    return rest


def put_back(known: object, rest: object) -> object:
    """``known``, as builtins, with what :func:`unknown_fields` took out; a known field is never overwritten.

    The rest of a tuple goes back by index, and is dropped where the tuple has since changed its length.
    """
    if isinstance(known, dict) and isinstance(rest, Mapping):
        fields, more = cast("dict[str, object]", known), cast("Mapping[str, object]", rest)
        return {**more, **{name: put_back(value, more.get(name)) for name, value in fields.items()}}
    if isinstance(known, tuple) and isinstance(rest, list):
        items, others = cast("tuple[object, ...]", known), cast("list[object]", rest)
        if len(items) == len(others):
            return [put_back(*pair) for pair in zip(items, others, strict=True)]
    return cast("object", known)


def _unknown_inside(known: object, raw: object) -> object:
    if isinstance(known, msgspec.Struct) and isinstance(raw, dict):
        return unknown_fields(known, cast("dict[str, Any]", raw))
    if isinstance(known, tuple) and isinstance(raw, list):
        pairs = zip(cast("tuple[object, ...]", known), cast("list[object]", raw), strict=True)
        inner = [_unknown_inside(*pair) for pair in pairs]
        return inner if any(inner) else None
    return None
