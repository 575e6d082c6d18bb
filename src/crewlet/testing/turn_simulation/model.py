"""A model that goes by the conversation alone, and does whatever models do: work, chatter, refuse, repeat itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from crewlet.llm import (
    AssistantMessage,
    FailureKind,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
    StopReason,
    ToolCall,
    Usage,
)
from crewlet.testing.turn_simulation.outside import Outside, conversation_key
from crewlet.testing.turn_simulation.plan import HANDLES
from crewlet.testing.turn_simulation.tools import OUTSIDE_TOOLS

__all__ = ["PlannedModel"]

_ROUNDS_LONG: Final = 6
_EXECUTED: Final[dict[str, int]] = {
    "post": 28,
    "mark": 14,
    "two": 10,
    "notes": 8,
    "submit": 24,
    "again": 8,
    "broken": 4,
    "slow": 1,
    "ask": 4,
    "prose": 4,
    "nothing": 1,
    "garbled": 2,
    "unknown": 2,
    "refusal": 2,
    "max_tokens": 1,
}
_SAID: Final[dict[str, tuple[str, StopReason | None]]] = {
    "prose": ("well,", None),
    "nothing": ("", None),
    "refusal": ("no", StopReason.REFUSAL),
    "max_tokens": ("so", StopReason.MAX_TOKENS),
}
_STUBBORN: Final = 0.8
"""How likely it is that a model which has repeated itself does so again."""
_ONBOARDED: Final[dict[str, int]] = {"mark_onboarded": 70, "prose": 20, "unknown": 4, "refusal": 3, "max_tokens": 3}
_REVIEWED: Final[dict[str, int]] = {"done": 78, "self_iterate": 12, "failed": 5, "prose": 4, "refusal": 1}


class PlannedModel:
    """One process's client of it. ``step`` is awaited before and after each call.

    On every other seed it says that it is real: its seats are onboarded then.
    """

    def __init__(self, seed: int, outside: Outside, step: Callable[[], Awaitable[None]], chance: Random) -> None:
        self._seed = seed
        self._outside = outside
        self._step = step
        self._chance = chance

    @property
    def keys(self) -> tuple[str, ...]:
        """The one entry behind it."""
        return ("default",)

    @property
    def is_real(self) -> bool:
        """Whether it says so."""
        return self._seed % 2 == 1

    async def complete(
        self,
        request: ModelRequest,
        *,
        on_delta: OnDelta | None = None,
        on_fallback: OnFallback | None = None,
    ) -> ModelReply:
        """One reply, after a moment. Raises ``ModelFailure`` while nobody answers, and now and then."""
        await self._step()
        self._outside.require_valid(request)
        key = conversation_key(self._seed, request)
        drawn = Random(key)
        await asyncio.sleep(drawn.choice((0.1, 0.5, 2.0, 6.0)))
        if self._outside.model_is_away or self._chance.random() < 0.02:  # noqa: PLR2004 - one call in fifty
            self._outside.happened["model failures"] += 1
            raise ModelFailure(FailureKind.SERVER, "nobody answers", provider_key="default")
        reply = self._reply(request, key, drawn)
        if on_delta is not None and reply.message.text:
            on_delta(reply.message.text)
        for call in reply.message.calls:
            if call.name in OUTSIDE_TOOLS and call.arguments is not None:
                self._outside.asked_for[str(call.arguments["token"])].add(f"{key} {call.id}")
        await self._step()
        return reply

    def _reply(self, request: ModelRequest, key: str, drawn: Random) -> ModelReply:
        phase = request.scenario.get("phase", "")
        said = [message for message in request.messages if isinstance(message, AssistantMessage)]
        if phase == "judge":
            return _said(drawn, text="extend 2\nit gets somewhere" if drawn.random() < 0.5 else "rescue\nno")  # noqa: PLR2004
        plan = {"execute": _EXECUTED, "onboarding": _ONBOARDED}.get(phase, _REVIEWED)
        does = drawn.choices([*plan], [*plan.values()])[0]
        if phase == "execute":
            if not said:
                opened = (_call(key, n, "activate_tool", name=each) for n, each in enumerate(OUTSIDE_TOOLS))
                return _said(drawn, *opened)
            if _repeats(said) and drawn.random() < _STUBBORN:
                does = "again"
            elif len(said) > _ROUNDS_LONG:
                does = "submit"
        self._outside.happened[f"model: {does}"] += 1
        return self._done(does, key, drawn, said)

    def _done(self, does: str, key: str, drawn: Random, said: list[AssistantMessage]) -> ModelReply:
        token = key[:16]
        if does == "again":
            return _said(drawn, _again(key, said))
        if does in _SAID:
            text, stop = _SAID[does]
            return _said(drawn, text=text and f"{text} {token}", stop=stop)
        calls = {
            "two": (_call(key, 0, "post", token=token), _call(key, 1, "mark", token=f"{token}-2")),
            "notes": (_call(key, 0, "notes", page=token),),
            "ask": (_call(key, 0, "a2a_ask", handle=drawn.choice(HANDLES), brief=f"what of {token}?"),),
            "submit": (_submission(key, drawn),),
            "garbled": (ToolCall(f"{token}-0", "post", None, '{"token": '),),
            "unknown": (_call(key, 0, "no_such_tool", token=token),),
            "mark_onboarded": (_call(key, 0, "mark_onboarded", notes=token),),
        }
        if does in calls:
            return _said(drawn, *calls[does])
        if does in _REVIEWED:
            return _said(drawn, _call(key, 0, "submit_review", decision=does, notes=f"since {token}"))
        return _said(drawn, _call(key, 0, does, token=token))


def _again(key: str, said: list[AssistantMessage]) -> ToolCall:
    """The last call to outside once more, or a first one."""
    before = said[-1].calls[-1] if said[-1].calls else None
    if before is None or before.name not in OUTSIDE_TOOLS:
        return _call(key, 0, "post", token=key[:16])
    return ToolCall(f"{key[:16]}-0", before.name, before.arguments, before.raw)


def _submission(key: str, drawn: Random) -> ToolCall:
    outcome = drawn.choices(("delivered", "no_action", "blocked"), (8, 1, 1))[0]
    more = {"evidence": "tried"} if outcome == "blocked" else {}
    return _call(key, 0, "submit_work", outcome=outcome, summary=f"answer {key[:16]}", **more)


def _repeats(said: list[AssistantMessage]) -> bool:
    last = [(each.calls[-1].name, each.calls[-1].arguments) for each in said[-2:] if each.calls]
    return len(last) > 1 and last[0] == last[1]


def _call(key: str, number: int, tool: str, /, **arguments: object) -> ToolCall:
    return ToolCall(f"{key[:16]}-{number}", tool, arguments)


def _said(drawn: Random, *calls: ToolCall, text: str = "", stop: StopReason | None = None) -> ModelReply:
    return ModelReply(
        message=AssistantMessage(text=text, calls=calls),
        stop_reason=stop or (StopReason.TOOL_USE if calls else StopReason.END),
        usage=Usage(input_tokens=drawn.randint(10, 90), output_tokens=drawn.randint(1, 20)),
        model="planned",
        provider_key="default",
    )
