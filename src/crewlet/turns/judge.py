"""The judge: whether a phase that is out of rounds and still at work gets some more. One call, two lines, no tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from crewlet.base import limits
from crewlet.base.trace import child_of
from crewlet.events.types import AgentPhaseStarted
from crewlet.llm import SCRIPTED_MODEL, AssistantMessage, ChainExhausted, ModelFailure, ModelReply, StopReason, Usage
from crewlet.turns.asking import Asking
from crewlet.turns.conversation import Conversation
from crewlet.turns.live_view import LiveView
from crewlet.turns.phase_plan import Extension, Host, PhasePlan
from crewlet.turns.phase_record import PhaseClosing, PhaseRecord
from crewlet.turns.prior_work import render_calls
from crewlet.turns.round_step import PHASE_ENDING_STOPS
from crewlet.turns.toolbox import Toolbox
from crewlet.turns.turn_scope import TurnScope

__all__ = ["JUDGE", "Judge", "Verdict", "verdict_of"]

JUDGE: Final = "judge"

_SYSTEM: Final = """\
You decide whether an agent at work gets more rounds of model calls. It has used up what it had and still calls tools.
Grant more when its latest calls bring it closer to what it was asked: new findings, steps done, an end in sight. Grant
none when it goes in circles, when its calls keep failing, or when nothing tells you what is left to do.
Answer in two lines and nothing else. The first: `extend N` with the number of rounds it needs, or `rescue` to end the
phase with what it has. The second: why, in one sentence."""

_EXTEND: Final = re.compile(r"^[\W_]*extend\b\D*(\d{1,6})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rounds granted, 0 for none, and why."""

    rounds: int
    notes: str = ""


def verdict_of(reply: ModelReply, *, most: int) -> Verdict:
    """What a judge's reply grants; whatever is not plainly ``extend`` grants nothing. Pure."""
    text = reply.message.text.strip()
    first, _, rest = text.partition("\n")
    notes = rest.strip() or text
    found = _EXTEND.match(first)
    if found is None or reply.stop_reason in PHASE_ENDING_STOPS:
        return Verdict(0, notes)
    return Verdict(min(most if found[1] is None else int(found[1]), most), notes)


class Judge:
    """Judges one phase, each time that it runs out of rounds; its own record is nested under the phase's."""

    def __init__(self, host: PhasePlan, scope: TurnScope, record: PhaseRecord) -> None:
        self._host = host
        self._scope = scope
        self._record = record
        self._times = 0

    async def more_rounds(self, round_num: int, granted: int) -> int:
        """How many rounds are added to ``granted``. A judge that fails adds none.

        Its reply is journalled and charged like any other, a failure of it in a reply's place: whoever goes on with
        the turn comes to the same. Raises ``BudgetExhausted``, ``Unavailable``, ``Fenced``.
        """
        extension = self._host.extension
        most = 0 if extension is None else min(extension.step, extension.ceiling - granted)
        if extension is None or most <= 0:
            return 0
        self._times += 1
        plan = self._plan(extension, round_num, granted, most)
        verdict = await self._judged(plan, most)
        return verdict.rounds

    async def _judged(self, plan: PhasePlan, most: int) -> Verdict:
        scope = self._scope
        record = PhaseRecord.of(plan, trace=child_of(self._record.trace, scope.ids), clock=scope.clock)
        scope.open_phases.append(record)
        conversation = Conversation(plan.user)
        view = LiveView(scope.events, record.trace, plan, model="")
        started = AgentPhaseStarted(
            **scope.events.of_turn,
            phase=plan.phase,
            iteration=plan.iteration,
            host_phase=self._host.phase,
            provider_key=record.provider_key,
            model="" if plan.model.is_real else SCRIPTED_MODEL,
        )
        await scope.events.tell(started, record.trace)
        with scope.tracer.span(f"agent.turn.{JUDGE}", record.trace, iteration=plan.iteration):
            try:
                reply = await Asking(plan, scope, conversation, record, view).reply(1)
            except (ChainExhausted, ModelFailure) as failed:
                await scope.journal.replied(plan.path, 1, conversation.news, _no_verdict(str(failed)))
                await scope.close_phase(PhaseClosing(decision="rescue", failed=True, error=str(failed)))
                return Verdict(0, str(failed))
        verdict = verdict_of(reply, most=most)
        await scope.close_phase(PhaseClosing(decision="extend" if verdict.rounds else "rescue", notes=verdict.notes))
        return verdict

    def _plan(self, extension: Extension, round_num: int, granted: int, most: int) -> PhasePlan:
        host = self._host
        calls = render_calls(self._record.executions[-limits.JUDGE_CALLS_SHOWN_MAX :], with_results=True)
        said = self._record.last_text[-limits.PRIOR_ARTIFACT_MAX_CHARS :]
        user = (
            f"The phase `{host.phase}` has used its {granted} rounds. You may grant at most {most} more.\n\n"
            f"## What it was asked\n{extension.ask}\n\n## Its latest calls\n{calls}\n\n"
            f"## What it said last\n{said or '(nothing)'}"
        )
        return PhasePlan(
            phase=JUDGE,
            iteration=self._times,
            model=extension.judge,
            system=_SYSTEM,
            user=user,
            toolbox=Toolbox(None),
            max_rounds=1,
            host=Host(host.path, host.phase, host.iteration, round_num),
        )


def _no_verdict(why: str) -> ModelReply:
    return ModelReply(
        message=AssistantMessage(text=f"rescue\nthe judge failed: {why}"),
        stop_reason=StopReason.END,
        usage=Usage(),
        model="",
        provider_key="",
        cost_usd=0.0,
    )
