"""docs/node-file.md has a line for each field of the node file, and for nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from crewlet.config.node_file import NodeFile
from crewlet.org import DocumentPart, Later

PAGE = Path(__file__).parents[3] / "docs" / "node-file.md"
FIELD = re.compile(r"^\| `([a-z_.]+)` \|", re.MULTILINE)


def fields(part: type[DocumentPart], above: str = "") -> Iterator[str]:
    for name, field in part.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, DocumentPart):
            yield from fields(kind, f"{above}{name}.")
        elif not any(isinstance(mark, Later) for mark in field.metadata):
            yield f"{above}{name}"


def test_the_page_names_every_field_that_is_supported_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert {*FIELD.findall(text)} == {*fields(NodeFile)}
