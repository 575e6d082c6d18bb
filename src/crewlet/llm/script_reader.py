"""Which rule of a script answers a request, and what its answer is. Pure but for the counts of limited rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from crewlet.llm.contract import (
    AssistantMessage,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from crewlet.llm.script import FailRule, ReplyRule, Script, WhenRule, fill

__all__ = ["SUBMIT_RESULT", "SUBMIT_REVIEW", "SUBMIT_WORK", "ScriptReader", "ScriptedAnswer"]

SUBMIT_WORK: Final = "submit_work"
SUBMIT_REVIEW: Final = "submit_review"
SUBMIT_RESULT: Final = "submit_result"

_DISCOVERY: Final = frozenset({"lookup_colleague", "list_mcp_server_tools", "activate_tool", SUBMIT_WORK})
"""Tools whose use delivers nothing."""

_NOTHING_FITS: Final = "No rule of the script fits, and this is not a real model, so there is nothing to say."
_CHARS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """What a script answers: a reply, or a failure; after a delay."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = StopReason.END
    usage: Usage = field(default_factory=Usage)
    fail: FailRule | None = None
    delay_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class _Scene:
    """A request as rules look at it."""

    request: ModelRequest
    trigger: str
    last_message: str
    last_tool_result: str
    after: str
    round: int

    def place(self, name: str) -> str:
        return self.request.scenario.get(name, "")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule, ready to be matched."""

    rule: ReplyRule
    text: re.Pattern[str] | None
    result: re.Pattern[str] | None
    system: re.Pattern[str] | None
    tools: frozenset[str]


class ScriptReader:
    """A script, ready to answer. Rules with ``times`` are counted here, in this process."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._rules = tuple(_compiled(rule) for rule in script.replies)
        self._left = {index: rule.times for index, rule in enumerate(script.replies) if rule.times is not None}

    def answer(self, request: ModelRequest) -> ScriptedAnswer:
        """What the first fitting rule says, or else a default that ends the phase."""
        scene = _scene_of(request)
        offered = frozenset(tool.name for tool in request.tools)
        for index, rule in enumerate(self._rules):
            if self._left.get(index, 1) <= 0 or not rule.tools <= offered:
                continue
            groups = _fits(rule, scene)
            if groups is not None:
                if index in self._left:
                    self._left[index] -= 1
                return _answer_of(rule.rule, scene, groups, offered, self._script.delay_ms)
        if not self._script.defaults:
            problem = FailRule(kind="bad_request")
            return ScriptedAnswer(text=_NOTHING_FITS, fail=problem)
        return _finished(scene, "", None, offered, delay_ms=self._script.delay_ms)


def _compiled(rule: ReplyRule) -> _Rule:
    when = rule.when
    tools = frozenset(call.tool for call in rule.call)
    return _Rule(rule, _pattern(when.text), _pattern(when.result), _pattern(when.system), tools)


def _pattern(text: str) -> re.Pattern[str] | None:
    return re.compile(text, re.DOTALL | re.MULTILINE) if text else None


def _scene_of(request: ModelRequest) -> _Scene:
    users = [message.text for message in request.messages if isinstance(message, UserMessage)]
    rounds = sum(isinstance(message, AssistantMessage) for message in request.messages) + 1
    results: list[ToolResultMessage] = []
    for message in reversed(request.messages):
        if not isinstance(message, ToolResultMessage):
            break
        results.append(message)
    written = request.scenario.get("round", "")
    return _Scene(
        request,
        trigger=users[0] if users else "",
        last_message=users[-1] if users else "",
        last_tool_result="\n".join(result.content for result in reversed(results)),
        after=results[0].name if results else _last_called(request),
        round=int(written) if written.isdecimal() else rounds,
    )


def _last_called(request: ModelRequest) -> str:
    names = (message.name for message in reversed(request.messages) if isinstance(message, ToolResultMessage))
    return next(names, "none")


def _fits(rule: _Rule, scene: _Scene) -> Mapping[str, str] | None:
    """The named groups of a rule that fits, ``None`` where it does not."""
    when = rule.rule.when
    if not _stands_there(when, scene):
        return None
    groups: dict[str, str] = {}
    for pattern, text in (
        (rule.text, scene.last_message),
        (rule.result, scene.last_tool_result),
        (rule.system, scene.request.system),
    ):
        if pattern is None:
            continue
        found = pattern.search(text)
        if found is None:
            return None
        groups.update({name: value or "" for name, value in found.groupdict().items()})
    return groups


def _stands_there(when: WhenRule, scene: _Scene) -> bool:
    return (
        (not when.seat or when.seat == scene.place("seat"))
        and (not when.phase or when.phase == scene.place("phase"))
        and (not when.woken_by or when.woken_by == scene.place("trigger"))
        and (when.iteration is None or str(when.iteration) == scene.place("iteration"))
        and (when.round is None or when.round == scene.round)
        and (not when.after or when.after == scene.after)
    )


def _answer_of(
    rule: ReplyRule, scene: _Scene, groups: Mapping[str, str], offered: frozenset[str], delay_ms: float
) -> ScriptedAnswer:
    delay_ms = rule.delay_ms or delay_ms
    if rule.fail is not None:
        return ScriptedAnswer(fail=rule.fail, delay_ms=delay_ms)
    values = {
        "trigger": scene.trigger,
        "last_message": scene.last_message,
        "last_tool_result": scene.last_tool_result,
        "seat": scene.place("seat"),
        "phase": scene.place("phase"),
        "iteration": scene.place("iteration"),
        "round": str(scene.round),
        **groups,
    }
    text = cast("str", fill(rule.say, values))
    usage = None if rule.usage is None else Usage(rule.usage.input_tokens, rule.usage.output_tokens)
    stop = None if rule.stop_reason is None else StopReason(rule.stop_reason)
    if not rule.call and rule.finish and stop is None:
        return _finished(scene, text, rule.outcome, offered, usage=usage, delay_ms=delay_ms)
    calls = [(call.tool, cast("dict[str, object]", fill(call.arguments, values))) for call in rule.call]
    return _reply(scene, text, calls, usage=usage, stop=stop, delay_ms=delay_ms)


def _finished(
    scene: _Scene,
    text: str,
    outcome: str | None,
    offered: frozenset[str],
    *,
    usage: Usage | None = None,
    delay_ms: float = 0.0,
) -> ScriptedAnswer:
    """The reply that ends the phase which asks: by its submitting tool, or as plain text where it has none."""
    calls: list[tuple[str, dict[str, object]]] = []
    if SUBMIT_REVIEW in offered:
        # Without an artifact of its own, a review lets the executor's summary stand.
        artifact = text or scene.place("artifact")
        calls = [(SUBMIT_REVIEW, {"decision": "done", **({"final_artifact": artifact} if artifact else {})})]
    elif SUBMIT_RESULT in offered:
        calls = [(SUBMIT_RESULT, {"result": text or _NOTHING_FITS})]
    elif SUBMIT_WORK in offered:
        delivered = sorted({*_delivering_calls(scene.request)})
        summary = text or _NOTHING_FITS
        work: dict[str, object] = {
            "outcome": outcome or ("delivered" if text or delivered else "no_action"),
            "summary": summary,
            "deliveries": delivered,
        }
        if outcome == "blocked":
            work["evidence"] = summary
        calls = [(SUBMIT_WORK, work)]
    else:
        text = text or _NOTHING_FITS
    return _reply(scene, text, calls, usage=usage, stop=None, delay_ms=delay_ms)


def _delivering_calls(request: ModelRequest) -> Iterator[str]:
    for message in request.messages:
        if isinstance(message, ToolResultMessage) and not message.is_error and message.name not in _DISCOVERY:
            yield message.name


def _reply(
    scene: _Scene,
    text: str,
    calls: list[tuple[str, dict[str, object]]],
    *,
    usage: Usage | None,
    stop: StopReason | None,
    delay_ms: float,
) -> ScriptedAnswer:
    # The same conversation asks for the same ids, whoever runs it again.
    place = len(scene.request.messages)
    made = tuple(ToolCall(f"scripted-{place}-{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
    if stop is None:
        stop = StopReason.TOOL_USE if made else StopReason.END
    return ScriptedAnswer(text, made, stop, usage or _guessed_usage(scene.request, text), delay_ms=delay_ms)


def _guessed_usage(request: ModelRequest, text: str) -> Usage:
    chars = len(request.system)
    for message in request.messages:
        chars += len(message.content) if isinstance(message, ToolResultMessage) else len(message.text)
    return Usage(input_tokens=chars // _CHARS_PER_TOKEN, output_tokens=len(text) // _CHARS_PER_TOKEN + 1)
