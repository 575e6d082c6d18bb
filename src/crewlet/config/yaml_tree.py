"""YAML read event by event into plain values: no recursion, no constructors, every size known before it is spent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import yaml

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.config.document_paths import Location, path_text

__all__ = ["Tree", "parse_yaml"]

_DEPTH_MAX: Final = 64
_NULL: Final = re.compile(r"~|null|Null|NULL|")
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_FLOAT: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]+|(?<=[0-9])\.?)([eE][-+]?[0-9]{1,3})?")
_PARSER: Final = cast("Any", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@dataclass(frozen=True, slots=True)
class Tree:
    """A document's value and the line of each path in it."""

    value: object
    lines: Mapping[str, int]


@dataclass(slots=True)
class _Open:
    """A mapping or list still being read. ``key`` waits for its value."""

    value: dict[str, object] | list[object]
    location: Location
    anchor: str | None
    size: int = 1
    key: str | None = None


def parse_yaml(text: str) -> Tree | None:
    """The one document in ``text``; ``None`` when it holds nothing. Raises ``ConfigError`` with the line."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line + 1
        raise ConfigError(Problem("", f"is not valid YAML: {error.problem}", "", line)) from None
    except yaml.YAMLError as error:
        raise ConfigError(Problem("", f"is not valid YAML: {str(error).splitlines()[0]}")) from None
    return builder.tree()


@dataclass(slots=True)
class _Builder:
    """Folds parser events into one value."""

    open: list[_Open] = field(default_factory=list[_Open])
    anchors: dict[str, tuple[object, int]] = field(default_factory=dict[str, tuple[object, int]])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    documents: int = 0
    root: object = None
    values: int = 0

    def tree(self) -> Tree | None:
        return None if self.root is None else Tree(self.root, self.lines)

    def take(self, event: Any) -> None:  # noqa: ANN401 - the parser's events share no useful type
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _refused("", "holds more than one document", "remove the `---` between them", line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(cast("str", event.anchor), line)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._start(event, line)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            ended = self.open.pop()
            self._remember(ended.anchor, ended.value, ended.size)
            if self.open:
                self.open[-1].size += ended.size

    def _start(self, event: Any, line: int) -> None:  # noqa: ANN401 - as above
        self._no_tag(event.tag, implicit=event.implicit, line=line)
        if len(self.open) >= _DEPTH_MAX:
            raise _refused(self._path(), f"is nested more than {_DEPTH_MAX} levels deep", "", line)
        value: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        location = self._here()
        self._place(value, line, 0)
        self.open.append(_Open(value, location, event.anchor))

    def _scalar(self, event: Any, line: int) -> None:  # noqa: ANN401 - as above
        self._no_tag(event.tag, implicit=any(event.implicit), line=line)
        text = cast("str", event.value)
        if "\0" in text:
            # No path, no argument of a program and no variable can hold one; said here, not by what meets it first.
            raise _refused(self._path(), "holds a NUL character", "remove it", line)
        is_plain = bool(event.implicit[0])
        if self._awaits_key():
            self._key(text, is_plain=is_plain, line=line)
        else:
            value = _plain_value(text) if is_plain else text
            self._place(value, line, 1)
            self._remember(event.anchor, value, 1)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self.anchors or self._awaits_key():
            raise _refused(self._path(), f"`*{anchor}` stands for nothing here", "", line)
        value, size = self.anchors[anchor]
        self._place(value, line, size)

    def _key(self, text: str, *, is_plain: bool, line: int) -> None:
        top = self.open[-1]
        path = path_text((*top.location, text))
        if is_plain and (text == "<<" or not isinstance(_plain_value(text), str)):
            raise _refused(path, f"the key `{text}` is no text", "put it in quotes", line)
        if text in cast("dict[str, object]", top.value):
            earlier = self.lines.get(path, 0)
            raise _refused(path, f"is written twice, first on line {earlier}", "keep one of them", line)
        self.lines[path] = line
        top.key = text

    def _place(self, value: object, line: int, size: int) -> None:
        """Put ``value`` where the document stands now. ``size`` counts the values in it, aliases spelled out."""
        if self._awaits_key():
            raise _refused(self._path(), "a key must be a text", "", line)
        self.values += max(size, 1)
        if self.values > limits.DOCUMENT_MAX_VALUES:
            raise _refused(self._path(), f"holds more than {limits.DOCUMENT_MAX_VALUES} values", "", line)
        self.lines.setdefault(path_text(self._here()), line)
        if not self.open:
            self.root = value
            return
        top = self.open[-1]
        top.size += size
        if isinstance(top.value, dict):
            assert top.key is not None
            top.value[top.key] = value
            top.key = None
        else:
            top.value.append(value)

    def _remember(self, anchor: str | None, value: object, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)

    def _awaits_key(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1].value, dict) and self.open[-1].key is None

    def _here(self) -> Location:
        if not self.open:
            return ()
        top = self.open[-1]
        if isinstance(top.value, list):
            return (*top.location, len(top.value))
        return top.location if top.key is None else (*top.location, top.key)

    def _path(self) -> str:
        return path_text(self._here())

    def _no_tag(self, tag: str | None, *, implicit: bool, line: int) -> None:
        if tag is not None and not implicit:
            raise _refused(self._path(), f"the tag {tag} is not supported", "remove it", line)


def _plain_value(text: str) -> object:
    """What an unquoted text means: null, true, false, a number, or itself (``no``, ``0600`` and dates stay text)."""
    if _NULL.fullmatch(text):
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _refused(path: str, problem: str, remedy: str, line: int) -> ConfigError:
    return ConfigError(Problem(path, problem, remedy, line))
