"""Holds a call's arguments against the tool's JSON Schema, in words that a model can act on. Pure.

Deliberately partial: it refuses what a schema plainly forbids, and lets what it does not understand (unions,
references, formats) through to the tool, which knows better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

__all__ = ["argument_problems"]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}


def argument_problems(schema: Mapping[str, object], arguments: Mapping[str, object]) -> tuple[str, ...]:
    """What is wrong with ``arguments``, one sentence a field, each with its remedy; empty when they fit."""
    return tuple(_object_problems(cast("Mapping[str, Any]", schema), arguments, ""))


def _object_problems(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[str]:
    fields = schema.get("properties")
    properties: Mapping[str, Any] = cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}
    for name in _texts(schema.get("required")):
        if name not in value:
            yield f"`{path}{name}` is missing: give {_wanted(_part(properties, name))}"
    for name, given in value.items():
        if name in properties:
            yield from _value_problems(_part(properties, name), given, f"{path}{name}")
        elif schema.get("additionalProperties") is False:
            yield f"`{path}{name}` is not known here: leave it out (known: {', '.join(properties) or 'none'})"


def _value_problems(schema: Mapping[str, Any], value: object, path: str) -> Iterator[str]:
    if not _fits(schema, value):
        yield f"`{path}` is {_kind(value)}: give {_wanted(schema)}"
        return
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        yield f"`{path}` is {value!r}: give {_wanted(schema)}"
    elif isinstance(value, Mapping):
        yield from _object_problems(schema, cast("Mapping[str, Any]", value), f"{path}.")
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _value_problems(_part(schema, "items"), item, f"{path}[{index}]")


def _fits(schema: Mapping[str, Any], value: object) -> bool:
    names = _type_names(schema)
    if not names or any(name not in _TYPES for name in names):
        return True
    if isinstance(value, bool):
        return "boolean" in names
    if isinstance(value, float) and value.is_integer() and "integer" in names:
        return True
    return any(isinstance(value, _TYPES[name]) for name in names)


def _wanted(schema: Mapping[str, Any]) -> str:
    allowed = schema.get("enum")
    if isinstance(allowed, list):
        return "one of " + ", ".join(str(one) for one in cast("list[Any]", allowed))
    return " or ".join(f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in _type_names(schema)) or "a value"


def _type_names(schema: Mapping[str, Any]) -> Sequence[str]:
    said = schema.get("type")
    return [said] if isinstance(said, str) else list(_texts(said))


def _part(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = schema.get(name)
    return cast("Mapping[str, Any]", part) if isinstance(part, Mapping) else {}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from (item for item in cast("Sequence[object]", value) if isinstance(item, str))


def _kind(value: object) -> str:
    for name, types in _TYPES.items():
        if isinstance(value, types) and not (isinstance(value, bool) and name != "boolean"):
            return f"a value of type {name}"
    return f"a {type(value).__name__}"
