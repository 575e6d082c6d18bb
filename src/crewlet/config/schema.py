"""JSON Schema of the two files, for editors: what `crewlet schema` prints."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from typing import Any, Final, cast

from crewlet.config.node_file import NodeFile
from crewlet.org import CompanyDocument, DocumentPart

__all__ = ["company_schema", "node_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_Schema = dict[str, Any]


def company_schema() -> _Schema:
    """The schema of the company document, described with the words that stand beside its fields."""
    return _schema_of(CompanyDocument)


def node_schema() -> _Schema:
    """The schema of the node file, described likewise."""
    return _schema_of(NodeFile)


def _schema_of(root: type[DocumentPart]) -> _Schema:
    schema = root.model_json_schema()
    models = {model.__name__: model for model in _subclasses(DocumentPart)}
    for part in (schema, *cast("dict[str, _Schema]", schema.get("$defs", {})).values()):
        _describe(part, models)
    return {"$schema": _DIALECT, **schema}


def _describe(part: _Schema, models: dict[str, type[DocumentPart]]) -> None:
    for mapping in (part, *cast("list[_Schema]", part.get("anyOf", []))):
        model = models.get(str(mapping.get("title")))
        if model is not None:
            words = dict(_field_words(model))
            for name, field in cast("dict[str, _Schema]", mapping.get("properties", {})).items():
                if name in words:
                    field.setdefault("description", words[name])


def _subclasses(model: type[DocumentPart]) -> Iterator[type[DocumentPart]]:
    for each in model.__subclasses__():
        yield each
        yield from _subclasses(each)


def _field_words(model: type[DocumentPart]) -> Iterator[tuple[str, str]]:
    """Each field of a class body that a text follows, with that text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, after in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            words = ast.literal_eval(after.value)
            yield field.target.id, str(words).replace("``", "`")
