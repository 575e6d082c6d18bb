"""Which of the two files a key belongs to, and what to say when it stands in the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from crewlet.base.errors import ConfigError, Problem
from crewlet.config.node_file import NodeFile
from crewlet.config.yaml_source import Source
from crewlet.org import CompanyDocument

__all__ = ["COMPANY_KEYS_ELSEWHERE", "NODE_KEYS_ELSEWHERE", "FileKind", "kind_of", "refuse_the_other"]

FileKind = Literal["company", "node"]

COMPANY_KEYS_ELSEWHERE: Final = dict.fromkeys(
    CompanyDocument.model_fields, "this key belongs into the company document (company.yaml)"
)
NODE_KEYS_ELSEWHERE: Final = dict.fromkeys(NodeFile.model_fields, "this key belongs into the node file (crewlet.yaml)")


def kind_of(keys: Iterable[str]) -> FileKind | None:
    """The file whose keys these mostly are; ``None`` when as many or none are of either. No key is of both."""
    keys = tuple(keys)
    company = sum(key in CompanyDocument.model_fields for key in keys)
    node = sum(key in NodeFile.model_fields for key in keys)
    if company == node:
        return None
    return "company" if company > node else "node"


def refuse_the_other(source: Source, wanted: FileKind) -> None:
    """Raise ``ConfigError`` where the two files were confused, which two keys show; a single one may be misplaced."""
    found = kind_of(source.values)
    if found is None or found == wanted or len(source.values) == 1:
        return
    names: dict[FileKind, str] = {"company": "company document", "node": "node file"}
    usual: dict[FileKind, str] = {"company": "company.yaml", "node": "crewlet.yaml"}
    problem, remedy = f"is a {names[found]}, not a {names[wanted]}", f"give the {names[wanted]}: {usual[wanted]}"
    raise ConfigError(Problem("", problem, remedy, 1), file=source.file)
