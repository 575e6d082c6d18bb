"""What `crewlet validate` answers: which of the two files this is, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from crewlet.base.errors import ConfigError, Problem
from crewlet.config.company_loading import company_of
from crewlet.config.node_loading import node_of
from crewlet.config.other_file import FileKind, kind_of
from crewlet.config.yaml_source import read_source

__all__ = ["Report", "validate_file"]

_NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one file. ``kind`` is ``None`` where the file could not be told to be either."""

    file: str
    kind: FileKind | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return not self.problems

    def as_json(self) -> dict[str, object]:
        """The report as JSON values."""
        return {
            "file": self.file,
            "kind": self.kind,
            "ok": self.ok,
            "problems": [asdict(problem) for problem in self.problems],
            "warnings": [asdict(warning) for warning in self.warnings],
        }

    def lines(self) -> tuple[str, ...]:
        """The report as lines for a terminal."""
        found = [(problem, "") for problem in self.problems] + [(warning, "warning: ") for warning in self.warnings]
        places = [f"{self.file}:{each.line}" if each.line else self.file for each, _mark in found]
        lines = [f"{place}: {mark}{each}" for place, (each, mark) in zip(places, found, strict=True)]
        if self.ok:
            what = "company document" if self.kind == "company" else "node file"
            lines.append(f"{self.file}: a valid {what}")
        return tuple(lines)


def validate_file(path: Path | str, env: Mapping[str, str] = _NO_ENVIRONMENT) -> Report:
    """Check one file of either kind; never raises for what the file says. Only a node file needs ``env``."""
    kind: FileKind | None = None
    try:
        source = read_source(Path(path))
        kind = kind_of(source.values)
        if kind is None and source.values:
            neither = Problem(
                "", "is neither a company document nor a node file", "see `crewlet schema company|node`", 1
            )
            return Report(str(path), None, (neither,))
        warnings = company_of(source).warnings if kind == "company" else node_of(source, env).warnings
    except ConfigError as error:
        return Report(str(path), kind, error.problems)
    return Report(str(path), kind or "node", (), warnings)
