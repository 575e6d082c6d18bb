"""What the schema of a worker's result may look like: an object of a few fields, not deep. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from crewlet.base import limits

__all__ = ["output_problems"]

_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")


def output_problems(schema: Mapping[str, object]) -> tuple[str, ...]:
    """What is wrong with it, one sentence a fault; empty for one that a worker can be asked for."""
    return tuple(_problems(cast("Mapping[str, Any]", schema)))


def _problems(schema: Mapping[str, Any]) -> Iterator[str]:
    fields = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(fields, Mapping):
        yield "must be an object with `properties`"
        return
    properties = cast("Mapping[str, Any]", fields)
    if not 1 <= len(properties) <= limits.WORKER_OUTPUT_FIELDS_MAX:
        yield f"must have 1 to {limits.WORKER_OUTPUT_FIELDS_MAX} properties"
    for name in cast("list[Any]", schema.get("required") or []):
        if name not in properties:
            yield f"`required` names {name!r}, which is no property"
    for name, field in properties.items():
        yield from _field(name, field, depth=1)


def _field(path: str, field: object, *, depth: int) -> Iterator[str]:
    if not isinstance(field, Mapping):
        yield f"`{path}` must be a mapping with a `type`"
        return
    written = cast("Mapping[str, Any]", field)
    if written.get("type") not in _TYPES:
        yield f"`{path}.type` must be one of {', '.join(_TYPES)}"
        return
    inner: list[tuple[str, object]] = []
    if isinstance(written.get("properties"), Mapping):
        inner += [(f"{path}.{name}", each) for name, each in written["properties"].items()]
    if "items" in written:
        inner.append((f"{path}[]", written["items"]))
    if inner and depth >= limits.WORKER_OUTPUT_DEPTH_MAX:
        yield f"`{path}` is too deep: {limits.WORKER_OUTPUT_DEPTH_MAX} levels are the most"
        return
    for name, each in inner:
        yield from _field(name, each, depth=depth + 1)
