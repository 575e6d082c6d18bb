"""From pydantic's errors to problems that a person can act on: the path, the sentence, the remedy, the line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, get_args, get_origin

from pydantic import BaseModel, ValidationError

from crewlet.base.errors import Problem
from crewlet.config.document_paths import nearest_line, path_text

__all__ = ["fields_at", "located", "problems_of"]

_MUST_BE: Final[Mapping[str, tuple[str, str]]] = {
    "bool_type": ("must be true or false", ""),
    "bool_parsing": ("must be true or false", ""),
    "dict_type": ("must be a mapping of `key: value` lines", ""),
    "finite_number": ("must be a finite number", ""),
    "float_type": ("must be a number", ""),
    "float_parsing": ("must be a number", ""),
    "int_from_float": ("must be a whole number", ""),
    "int_parsing": ("must be a whole number", ""),
    "int_type": ("must be a whole number", ""),
    "missing": ("is required", ""),
    "model_type": ("must be a mapping of `key: value` lines", ""),
    "string_type": ("must be text", "put the value in quotes"),
    "tuple_type": ("must be a list", "begin each entry with `- `"),
}


class _Detail(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...  # noqa: ANN401 - pydantic's own typed dictionary
    def get(self, key: str, /) -> Any: ...  # noqa: ANN401 - as above


def problems_of(
    error: ValidationError, model: type[BaseModel], *, elsewhere: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Each thing wrong with a document read as ``model``. No value is repeated: it may be a secret.

    ``elsewhere`` names top-level keys that belong into another file, with the remedy to give.
    """
    return tuple(_problem(detail, model, elsewhere or {}) for detail in error.errors(include_url=False))


def located(problems: Iterable[Problem], lines: Mapping[str, int]) -> tuple[Problem, ...]:
    """The problems in the order of the file, each with its line where one is known."""
    found = [
        Problem(each.path, each.problem, each.remedy, each.line or nearest_line(each.path, lines)) for each in problems
    ]
    return tuple(sorted(found, key=lambda problem: problem.line))


def fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys that may stand in the mapping at ``location``; empty where any may."""
    here: object = model
    for part in location:
        if isinstance(here, type) and issubclass(here, BaseModel):
            found = here.model_fields.get(str(part))
            here = None if found is None else _inner(found.annotation)
        else:
            arguments = [each for each in get_args(here) if each is not Ellipsis]
            here = _inner(arguments[-1]) if arguments else None
    return tuple(here.model_fields) if isinstance(here, type) and issubclass(here, BaseModel) else ()


def _inner(annotation: object) -> object:
    """The type without ``Annotated`` around it."""
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    return annotation if isinstance(annotation, type) or get_origin(annotation) else None


def _problem(detail: _Detail, model: type[BaseModel], elsewhere: Mapping[str, str]) -> Problem:
    kind: str = detail["type"]
    location: tuple[str | int, ...] = tuple(part for part in detail["loc"] if part != "[key]")
    context: Mapping[str, Any] = detail.get("ctx") or {}
    path = path_text(location)
    if kind == "extra_forbidden":
        return Problem(path, "unknown key", _unknown_key_remedy(location, model, elsewhere))
    if "remedy" in context:
        return Problem(path, str(context["problem"]), str(context["remedy"]))
    if kind in _MUST_BE:
        problem, remedy = _MUST_BE[kind]
        return Problem(path, problem, remedy)
    if kind == "literal_error":
        return Problem(path, f"must be one of {context['expected']}")
    return Problem(path, str(detail["msg"]).replace("Input should be", "must be"))


def _unknown_key_remedy(location: tuple[str | int, ...], model: type[BaseModel], elsewhere: Mapping[str, str]) -> str:
    key = str(location[-1])
    if len(location) == 1 and key in elsewhere:
        return elsewhere[key]
    known = fields_at(model, location[:-1])
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(known)}"
