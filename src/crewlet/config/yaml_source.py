"""A YAML file as plain values, with the line of each; what is wrong with it is said with the line and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.config.yaml_tree import parse_yaml

__all__ = ["Source", "read_source", "source_of"]

_REMEDIES: Final = (
    ("cannot start any token", "indent with spaces, not with tabs; a text that begins with @, % or ` needs quotes"),
    ("mapping values are not allowed", "a text that contains `: ` needs quotes"),
    ("could not find expected ':'", "each line of a mapping is `key: value`"),
    ("did not find expected", "check the indentation and the quotes just above"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """What a file says: its top mapping, the line (from 1) on which each path stands, and the text as written."""

    file: str
    values: Mapping[str, object]
    lines: Mapping[str, int]
    text: str = ""


def read_source(path: Path) -> Source:
    """Read one file. Raises ``ConfigError`` naming the file, the line and what to do."""
    try:
        with path.open("rb") as file:
            raw = file.read(limits.DOCUMENT_MAX_BYTES + 1)
    except FileNotFoundError:
        raise _wrong(path, "there is no such file", "write one, or start from `crewlet init DIR`") from None
    except IsADirectoryError:
        raise _wrong(path, "is a folder, not a file", "name the file inside it") from None
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}", "check the path and its permissions") from None
    if len(raw) > limits.DOCUMENT_MAX_BYTES:
        raise _wrong(path, f"is larger than {limits.DOCUMENT_MAX_BYTES} bytes", "is this the right file?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _wrong(path, "is not UTF-8 text", "save it as UTF-8", line) from None
    return source_of(text, str(path))


def source_of(text: str, file: str = "") -> Source:
    """The same for a text already in hand; ``file`` is what errors call it."""
    try:
        tree = parse_yaml(text)
    except ConfigError as error:
        raise ConfigError(*(_with_remedy(problem) for problem in error.problems), file=file) from None
    if tree is None:
        raise ConfigError(Problem("", "is empty", "start from `crewlet init DIR`"), file=file)
    values = tree.value
    if not isinstance(values, dict):
        raise ConfigError(Problem("", "must be a mapping of `key: value` lines", "", 1), file=file)
    return Source(file, cast("dict[str, object]", values), tree.lines, text)


def _wrong(path: Path, problem: str, remedy: str, line: int = 0) -> ConfigError:
    return ConfigError(Problem("", problem, remedy, line), file=str(path))


def _with_remedy(problem: Problem) -> Problem:
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in problem.problem), problem.remedy)
    return Problem(problem.path, problem.problem, problem.remedy or remedy, problem.line)
