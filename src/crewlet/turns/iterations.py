"""The work of one turn: execute, review, and again while the review sends it back and no guard objects.

A seat that is new at its place in the company is onboarded first.
"""

from __future__ import annotations

from collections.abc import Mapping

from crewlet.base.errors import CrewletError
from crewlet.events.types import TurnGuardBreach
from crewlet.inbox import Decision, Opening, Reply
from crewlet.tools import Tool
from crewlet.turns.builtin_delegate import Delegate
from crewlet.turns.builtin_submit_review import ReviewDecision, SubmitReview
from crewlet.turns.builtin_submit_work import SubmitWork, WorkOutcome, WorkSubmission
from crewlet.turns.builtin_tool_discovery import ActivateTool, ListServerTools
from crewlet.turns.delivery import claim_problem, obligation_of, undelivered
from crewlet.turns.onboarding import ONBOARDING, Onboarding
from crewlet.turns.phase import Phase, PhaseEnd
from crewlet.turns.phase_plan import Extension, PhasePlan
from crewlet.turns.phase_record import PhaseClosing, PhaseRecord
from crewlet.turns.prior_work import PriorIteration
from crewlet.turns.prompt_messages import executor_message, reviewer_message, task_text
from crewlet.turns.prompts import executor_system, reviewer_system
from crewlet.turns.repeats import REPEATED_CALL, RepeatedCall
from crewlet.turns.round_step import Step
from crewlet.turns.setup import TurnSetup
from crewlet.turns.time_limit import SCHEDULED_TIMEOUT, TimeSpent
from crewlet.turns.toolbox import Toolbox
from crewlet.turns.turn_end import Breach, TurnEnd, ended_by_guard, guard_after
from crewlet.turns.turn_scope import TurnScope

__all__ = ["EXECUTE", "REVIEW", "Iterations"]

EXECUTE = "execute"
REVIEW = "review"


class Iterations:
    """Runs the phases of one turn in its scope, on prompts that are frozen when it opens."""

    def __init__(self, scope: TurnScope, setup: TurnSetup) -> None:
        self._scope = scope
        self._setup = setup
        self._onboarding = Onboarding(scope, setup)
        self._prompts: Mapping[str, str] = {}
        self._owed = obligation_of(scope.trigger, setup.tools)
        self._prior: list[PriorIteration] = []

    async def run(self) -> TurnEnd:
        """To an end of the turn's own. Raises what a phase raises."""
        try:
            return await self._run_on()
        except TimeSpent as spent:
            said = self._prior[-1].submission.summary if self._prior else ""
            return await self._breached(Breach(SCHEDULED_TIMEOUT, str(spent)), artifact=said)

    async def _run_on(self) -> TurnEnd:
        config = self._scope.config
        depth = self._scope.trigger.delegation_depth
        if depth >= config.delegation_depth_limit:
            breach = Breach("depth_cap", f"this ask is {depth} deep, the limit is {config.delegation_depth_limit}")
            return await self._breached(breach)
        opened = await self._open()
        self._prompts, self._owed = opened.prompts, self._owed.at(opened.owes)
        if opened.onboarding:
            await self._onboarding.run(opened.onboarding, opened.prompts[ONBOARDING])
        while True:
            try:
                iterated = await self._iterate(len(self._prior) + 1)
            except RepeatedCall as repeated:
                return await self._breached(Breach(REPEATED_CALL, str(repeated)))
            if isinstance(iterated, TurnEnd):
                return iterated
            self._prior.append(iterated)
            breach = guard_after(self._prior, max_iterations=config.max_iterations)
            if breach is not None:
                return await self._breached(breach, artifact=iterated.submission.summary)

    async def _open(self) -> Opening:
        """Fix what the turn works with, and whether it begins with an onboarding, for whoever goes on with it."""
        scope, setup = self._scope, self._setup
        place = "" if scope.journal.resumed else await self._onboarding.due()
        prompts = {EXECUTE: executor_system(setup, onboarding=bool(place)), REVIEW: reviewer_system(setup)}
        if place:
            prompts[ONBOARDING] = self._onboarding.system()
        try:
            return await scope.journal.open(
                Opening(prompts=prompts, revision=setup.revision, owes=self._owed.surface, onboarding=place)
            )
        except CrewletError:
            if place:
                await self._onboarding.give_back()
            raise

    async def _iterate(self, iteration: int) -> PriorIteration | TurnEnd:
        self._scope.iterations = iteration
        worked = await self._execute(iteration)
        if isinstance(worked, TurnEnd):
            return worked
        submission, record = worked
        if submission.outcome is WorkOutcome.NO_ACTION and self._scope.trigger.reply is Reply.NONE:
            return TurnEnd(decision=Decision.SKIPPED, finished=True, artifact=submission.summary)
        refuted = self._refuted(submission)
        if refuted:
            calls = tuple(record.executions)
            return PriorIteration(
                iteration=iteration,
                calls=calls,
                submission=submission,
                engine_notes=refuted,
                reads=self._scope.made.reads,
            )
        return await self._review(iteration, submission, record)

    def _refuted(self, submission: WorkSubmission) -> str:
        return claim_problem(submission, self._owed, self._scope.made)

    async def _execute(self, iteration: int) -> tuple[WorkSubmission, PhaseRecord] | TurnEnd:
        scope, setup = self._scope, self._setup
        work = SubmitWork(self._refuted)
        pair = (ListServerTools(setup.tools), ActivateTool(setup.tools, scope.activated))
        discovery = pair if setup.tools.servers() else ()
        plan = PhasePlan(
            phase=EXECUTE,
            iteration=iteration,
            model=setup.executor,
            system=self._prompts[EXECUTE],
            user=executor_message(scope.trigger, self._prior, now=scope.clock.now(), owed=self._owed),
            toolbox=Toolbox(
                work,
                [*discovery, *self._delegate(iteration), *setup.tools.builtins()],
                surface=setup.tools,
                activated=scope.activated,
            ),
            max_rounds=scope.config.max_tool_rounds,
            streams=True,
            reads_notes=True,
            extension=self._extension(),
        )
        end, record = await self._run(plan)
        if end.step is Step.WAITING:
            await scope.close_phase(PhaseClosing(decision="waiting"))
            said = end.text if work.submission is None else work.submission.summary
            return TurnEnd(decision=Decision.DONE, finished=True, artifact=said, asks=end.asks)
        rescued = work.submission is None
        submission = work.submission or WorkSubmission(outcome=WorkOutcome.INCOMPLETE, summary=end.text)
        await scope.close_phase(PhaseClosing(decision=str(submission.outcome), rescued=rescued))
        return submission, record

    def _delegate(self, iteration: int) -> list[Tool]:
        scope, setup = self._scope, self._setup
        if setup.subagent is None:
            return []
        return [Delegate(scope, setup, setup.subagent, phase=EXECUTE, iteration=iteration)]

    def _extension(self) -> Extension | None:
        config, judge = self._scope.config, self._setup.judge
        if not config.extension_enabled or judge is None:
            return None
        ceiling, step = config.execute_max_tool_rounds_ceiling, config.extension_round_step
        return Extension(judge, ceiling, step, ask=task_text(self._scope.trigger))

    async def _review(
        self, iteration: int, submission: WorkSubmission, executed: PhaseRecord
    ) -> PriorIteration | TurnEnd:
        scope = self._scope
        submit = SubmitReview()
        plan = PhasePlan(
            phase=REVIEW,
            iteration=iteration,
            model=self._setup.reviewer,
            system=self._prompts[REVIEW],
            user=reviewer_message(scope.trigger, submission, executed.executions, self._prior),
            toolbox=Toolbox(submit),
            max_rounds=scope.config.review_max_rounds,
            reads_notes=True,
        )
        await self._run(plan)
        review = submit.review
        if review is None:
            error = "the review ended without a decision"
            await scope.close_phase(PhaseClosing(failed=True, error=error, error_kind="no_decision"))
            return _failed(submission.summary, error, "no_decision")
        await scope.close_phase(PhaseClosing(decision=str(review.decision), notes=review.notes))
        artifact = review.final_artifact or submission.summary
        if review.decision is ReviewDecision.FAILED:
            return _failed(artifact, review.notes, "judged_failed")
        is_done = review.decision is ReviewDecision.DONE
        overturned = undelivered(submission, self._owed, scope.made) if is_done else ""
        if is_done and not overturned:
            return TurnEnd(decision=Decision.DONE, finished=True, artifact=artifact)
        return PriorIteration(
            iteration=iteration,
            calls=tuple(executed.executions),
            submission=submission,
            review=review,
            engine_notes=overturned,
            reads=scope.made.reads,
        )

    async def _run(self, plan: PhasePlan) -> tuple[PhaseEnd, PhaseRecord]:
        end = await Phase(plan, self._scope).run()
        record = self._scope.open_phase
        assert record is not None
        return end, record

    async def _breached(self, breach: Breach, *, artifact: str = "") -> TurnEnd:
        events = self._scope.events
        await events.tell(TurnGuardBreach(**events.of_turn, kind=breach.kind, detail=breach.detail))
        return ended_by_guard(breach, artifact=artifact)


def _failed(artifact: str, error: str, kind: str) -> TurnEnd:
    return TurnEnd(decision=Decision.FAILED, finished=True, artifact=artifact, error=error, error_kind=kind)
