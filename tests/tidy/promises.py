"""Reads the numbers that tests claim, and the lines of docs/promises.md that stand for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

__all__ = ["claimed", "listed"]

_LINE = re.compile(r"- \*\*(?P<id>[A-Z]-\d{3})\*\* (?P<words>\S.*)")


def claimed(source: str) -> Iterator[str]:
    """Each argument of a ``mark.spec(...)`` in a test module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.spec"):
            yield from (_number(argument) for argument in node.args)


def listed(text: str) -> Iterator[tuple[str, str]]:
    """Each promise in the document: its number and our words for it."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None:
            yield found["id"], found["words"]


def _number(argument: ast.expr) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return ast.unparse(argument)
