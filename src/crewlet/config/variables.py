"""``${VAR}``: where the values come from, how a text gets them late, and which a document refers to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crewlet.base.errors import ConfigError, Problem
from crewlet.config.document_paths import path_text, texts
from crewlet.org import CompanyDocument, variable_names, with_values

__all__ = ["PYTHON_VARIABLE", "Reference", "Variables", "references", "unset"]

PYTHON_VARIABLE: Final = "CREWLET_PYTHON"
"""Always set: the interpreter that runs the engine, so that an example's tool server needs no path of its own."""

Reference = tuple[str, str]
"""Where a variable is referred to, and its name."""


class Variables:
    """A ``Resolve`` over a mapping. Values leave it only through the resolved text; its repr shows none."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str], *, python: str = sys.executable) -> None:
        self._values = MappingProxyType({**values, PYTHON_VARIABLE: python})

    def __repr__(self) -> str:
        return f"Variables({len(self._values)} names)"

    def __call__(self, text: str) -> str:
        """``text`` with each ``${VAR}`` replaced. Raises ``ConfigError`` naming every variable that is not set."""
        missing = tuple(name for name in variable_names(text) if not self.is_known(name))
        if missing:
            raise ConfigError(*(unset(name) for name in missing))
        return with_values(text, self._values.__getitem__)

    def is_known(self, name: str) -> bool:
        """Whether the variable exists, be it empty."""
        return name in self._values


def unset(name: str, path: str = "") -> Problem:
    """The problem of a variable that is not set."""
    return Problem(path, f"the variable {name} is not set", f"set it in the environment: export {name}=…")


def references(document: CompanyDocument) -> tuple[Reference, ...]:
    """Every ``${VAR}`` of a company document with its path, in the document's order."""
    written = document.model_dump(exclude_defaults=True)
    return tuple((path_text(location), name) for location, text in texts(written) for name in variable_names(text))
