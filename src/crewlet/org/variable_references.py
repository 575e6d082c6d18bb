"""``${VAR}`` in a written text: what a reference looks like, which a text holds, and their values put in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = [
    "VARIABLE_REFERENCE",
    "has_reference",
    "is_whole_reference",
    "malformed_reference",
    "variable_names",
    "with_values",
]

VARIABLE_REFERENCE: Final = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
"""The pattern of one reference; its group is the variable's name."""

_REFERENCE: Final = re.compile(VARIABLE_REFERENCE)


def is_whole_reference(text: str) -> bool:
    """Whether ``text`` is one ``${VAR}`` and nothing else."""
    return _REFERENCE.fullmatch(text) is not None


def has_reference(text: str) -> bool:
    """Whether some part of ``text`` is a ``${VAR}``."""
    return _REFERENCE.search(text) is not None


def malformed_reference(text: str) -> bool:
    """Whether ``text`` holds a ``${`` that no reference begins: a typing error that would silently stay as it is."""
    return "${" in _REFERENCE.sub("", text)


def variable_names(text: str) -> tuple[str, ...]:
    """The variables that ``text`` refers to, once each, in order."""
    return tuple(dict.fromkeys(_REFERENCE.findall(text)))


def with_values(text: str, value_of: Callable[[str], str]) -> str:
    """``text`` with each reference replaced by what ``value_of`` says of its variable."""
    return _REFERENCE.sub(lambda found: value_of(found.group(1)), text)
