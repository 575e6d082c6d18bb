"""Fields of parts that do not exist yet: all of them, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from crewlet.config import company_schema, node_schema
from crewlet.org import DocumentPart, Later

_OTHER_VALUES: tuple[object, ...] = (True, False, 0, 1, -1, 0.0, "x", ["x"], {"x": 1})


def _parts(part: type[DocumentPart] = DocumentPart) -> Iterator[type[DocumentPart]]:
    for each in part.__subclasses__():
        yield each
        yield from _parts(each)


def _fields() -> Iterator[tuple[str, Later, object]]:
    for part in _parts():
        for name, field in part.model_fields.items():
            for mark in field.metadata:
                if isinstance(mark, Later):
                    yield f"{part.__name__}.{name}", mark, field.default


_LATER = {where: (mark, default) for where, mark, default in _fields()}


@pytest.mark.parametrize("where", _LATER)
def test_a_later_field_takes_its_own_default_alone(where: str) -> None:
    mark, default = _LATER[where]
    field: TypeAdapter[object] = TypeAdapter(Annotated[object, mark])

    taken = field.validate_python(default)
    assert (type(taken), taken) == (type(default), default)
    for other in _OTHER_VALUES:
        if not (type(other) is type(default) and other == default):
            with pytest.raises(ValidationError, match="not supported yet"):
                field.validate_python(other)


def test_the_schema_says_of_each_later_field_that_it_is_one() -> None:
    said: list[dict[str, Any]] = [
        field
        for schema in (company_schema(), node_schema())
        for part in (schema, *schema["$defs"].values())
        for mapping in (part, *part.get("anyOf", []))
        for field in mapping.get("properties", {}).values()
        if field.get("description") == "Not supported yet."
    ]

    assert len(said) == len(_LATER)
    assert all("const" in field for field in said)
