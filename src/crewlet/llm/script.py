"""A script: what the scripted model answers to what. Read from YAML, checked whole, then only matched. No real model.

A rule applies where all of its ``when`` holds and the tools that it calls are offered; the first that applies answers.
Where none applies, the reply ends the phase that asks (see ``script_reader``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.llm.contract import FailureKind

__all__ = [
    "CallRule",
    "FailRule",
    "ReplyRule",
    "Script",
    "UsageRule",
    "WhenRule",
    "fill",
    "load_script",
    "parse_script",
]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_KNOWN = frozenset({"trigger", "last_message", "last_tool_result", "seat", "phase", "iteration", "round"})


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


_Texts = Annotated[tuple[str, ...], Field(strict=False)]


class WhenRule(_Part):
    """Where a rule applies: everything that is written must hold."""

    seat: str = ""
    phase: str = ""
    woken_by: str = ""
    """The type of the event that woke the turn."""
    iteration: int | None = None
    round: int | None = None
    """From 1, within one execution of a phase."""
    text: str = ""
    """A regular expression, searched in the last message of the user. Its named groups are placeholders."""
    result: str = ""
    """The same, for the tool results at the end of the conversation."""
    system: str = ""
    """The same, for the system prompt."""
    after: str = ""
    """The tool whose result stands last; ``none`` where no tool was called yet."""


class CallRule(_Part):
    """One tool call. Text anywhere in the arguments may hold placeholders."""

    tool: Annotated[str, Field(min_length=1)]
    arguments: Annotated[dict[str, object], Field(alias="with")] = {}


class UsageRule(_Part):
    """The tokens that a reply claims to have cost; without it they are guessed from the lengths."""

    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0


class FailRule(_Part):
    """A failure in place of a reply."""

    kind: Literal["rate_limited", "payment", "auth", "server", "timeout", "network", "bad_request", "context_exceeded"]
    retry_after_s: float | None = None

    @property
    def failure_kind(self) -> FailureKind:
        """The kind as callers know it."""
        return FailureKind(self.kind)


class ReplyRule(_Part):
    """One rule. ``say`` alone finishes the phase with that text, ``call`` asks for tools, ``fail`` does neither."""

    when: WhenRule = WhenRule()
    say: str = ""
    call: Annotated[tuple[CallRule, ...], Field(strict=False)] = ()
    fail: FailRule | None = None
    finish: bool = True
    """False: ``say`` is said as bare text, as a model does that forgets to end its phase."""
    outcome: Literal["delivered", "no_action", "blocked"] | None = None
    """What an execution that finishes reports; by default ``delivered``."""
    times: Annotated[int, Field(ge=1)] | None = None
    """How often the rule applies, in this process; afterwards it is passed over."""
    delay_ms: Annotated[float, Field(ge=0)] = 0
    usage: UsageRule | None = None
    stop_reason: Literal["end", "tool_use", "max_tokens", "refusal", "context_exceeded", "paused"] | None = None


class Script(_Part):
    """A file of rules, tried in order."""

    replies: Annotated[tuple[ReplyRule, ...], Field(strict=False)] = ()
    delay_ms: Annotated[float, Field(ge=0)] = 0
    """Waited before each reply whose rule says nothing else."""
    defaults: bool = True
    """Whether a request that no rule fits is answered by ending its phase. Otherwise it is a failure."""


def load_script(path: Path) -> Script:
    """The script in this file. Raises ``ConfigError`` naming each place that is wrong."""
    try:
        with path.open("rb") as file:
            written = file.read(limits.SCRIPT_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(Problem("", error.strerror or str(error), "check providers.llm"), file=str(path)) from None
    if len(written) > limits.SCRIPT_FILE_MAX_BYTES:
        raise ConfigError(Problem("", f"is larger than {limits.SCRIPT_FILE_MAX_BYTES} bytes"), file=str(path))
    return parse_script(written.decode(errors="replace"), file=str(path))


def parse_script(text: str, *, file: str = "") -> Script:
    """The script in ``text``. Raises ``ConfigError`` naming each place that is wrong."""
    try:
        document: object = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        problem = getattr(error, "problem", None) or "is no YAML"
        raise ConfigError(Problem("", str(problem), line=line), file=file) from None
    try:
        script = Script.model_validate({} if document is None else document)
    except ValidationError as error:
        problems = [
            _problem(_path_of(each["loc"]), each["type"], each["msg"]) for each in error.errors(include_url=False)
        ]
        raise ConfigError(*problems, file=file) from None
    found = [problem for index, rule in enumerate(script.replies) for problem in _problems_of(rule, index)]
    if found:
        raise ConfigError(*found, file=file)
    return script


_MUST_BE: Final = {
    "tuple_type": ("must be a list", "begin each entry with `- `"),
    "string_type": ("must be text", "put the value in quotes"),
    "model_type": ("must be a mapping of `key: value` lines", ""),
}


def _problem(path: str, kind: str, message: str) -> Problem:
    if kind in _MUST_BE:
        return Problem(path, *_MUST_BE[kind])
    if kind != "extra_forbidden":
        return Problem(path, message.replace("Input should be", "must be").replace("Field required", "is required"))
    parts = (Script, ReplyRule, WhenRule, CallRule, UsageRule, FailRule)
    known = [field.alias or name for part in parts for name, field in part.model_fields.items()]
    close = difflib.get_close_matches(path.rpartition(".")[2], known, n=1)
    return Problem(path, "unknown key", f"did you mean `{close[0]}`?" if close else "")


def _path_of(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.lstrip(".")


def _problems_of(rule: ReplyRule, index: int) -> Iterator[Problem]:
    where = f"replies[{index}]"
    groups: set[str] = set()
    for name in ("text", "result", "system"):
        pattern: str = getattr(rule.when, name)
        try:
            groups |= set(re.compile(pattern).groupindex)
        except re.error as error:
            yield Problem(f"{where}.when.{name}", f"is no regular expression: {error}")
    if rule.fail is None and not rule.say and not rule.call:
        yield Problem(where, "answers nothing", "write say, call or fail")
    if rule.fail is not None and (rule.say or rule.call):
        yield Problem(f"{where}.fail", "stands beside a reply", "write either fail, or say and call")
    written = [(f"{where}.say", rule.say)]
    for number, call in enumerate(rule.call):
        written += _texts_in(call.arguments, f"{where}.call[{number}].with")
    for path, text in written:
        for unknown in sorted(set(_PLACEHOLDER.findall(text)) - _KNOWN - groups):
            known = ", ".join(sorted(_KNOWN | groups))
            yield Problem(path, f"{{{unknown}}} stands for nothing", f"known are {known}")


def _texts_in(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _texts_in(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _texts_in(inner, f"{path}[{index}]")


def fill(value: object, values: Mapping[str, str]) -> object:
    """``value`` with its placeholders replaced, at any depth; what stands for nothing is left as it is."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), value) if "{" in value else value
    if isinstance(value, dict):
        return {key: fill(inner, values) for key, inner in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [fill(inner, values) for inner in cast("list[object]", value)]
    return value
