"""The opening messages of the phases: what woke the turn, who waits for it, what was done so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from crewlet.events import Event
from crewlet.events.types import A2aMessage, A2aRequest, ExternalNotification, TaskAssigned, ToolExecution
from crewlet.inbox import Reply, Trigger
from crewlet.turns.builtin_submit_work import WorkSubmission
from crewlet.turns.delivery import Obligation, how_to_answer
from crewlet.turns.prior_work import PriorIteration, render_calls, render_prior, render_submission

__all__ = ["executor_message", "reviewer_message", "task_text"]

_OWED: Final = {
    Reply.ENGINE: "Your `summary` is sent back as the answer, as it stands: write it to the one who asked.",
    Reply.TOOL: "An answer is expected where the message came from: your `summary` goes nowhere.",
    Reply.NONE: "Nobody waits for an answer. If nothing has to be done, say `no_action`.",
}


def executor_message(
    trigger: Trigger, prior: Sequence[PriorIteration], *, now: datetime, owed: Obligation | None = None
) -> str:
    """What the executor is told first in an iteration."""
    owed = owed or Obligation(trigger.reply)
    answer = f"{_OWED[trigger.reply]} {how_to_answer(owed)}" if owed.by_tool else _OWED[trigger.reply]
    parts = [f"It is {now:%Y-%m-%d %H:%M} UTC.", task_text(trigger), f"## Your answer\n{answer}"]
    if prior:
        parts.append(f"## Work so far in this turn\n{render_prior(prior)}")
    return "\n\n".join(parts)


def reviewer_message(
    trigger: Trigger,
    submission: WorkSubmission,
    calls: Sequence[ToolExecution],
    prior: Sequence[PriorIteration],
) -> str:
    """What the reviewer is told: the task, the work, the record behind it, and what was sent back before."""
    parts = [
        task_text(trigger),
        f"## Owed to the asker (as the one who did the work was told)\n{_OWED[trigger.reply]}",
        f"## The work\n{render_submission(submission)}",
        f"## The record\n{render_calls(calls, with_results=True)}",
    ]
    if prior:
        parts.append(f"## Earlier iterations\n{render_prior(prior)}")
    return "\n\n".join(parts)


def task_text(trigger: Trigger) -> str:
    """What woke the turn, in words: the one event, or the digest of several, and the thread around it."""
    task = f"## Task\n{_told(trigger.told)}"
    if trigger.thread is None:
        return task
    return f"{task}\n\n## The thread that it is in\n{_quoted(trigger.thread.text)}"


def _told(event: Event) -> str:
    match event.data:
        case ExternalNotification(integration="operator") as said:
            return f"A person who runs this company writes to you:\n{_quoted(said.body or said.salient_body)}"
        case ExternalNotification() as said:
            return _notified(said)
        case A2aRequest() as asked:
            return f"Your colleague `{asked.requester}` asks you:\n{_quoted(asked.brief)}"
        case A2aMessage() as answer:
            return _answered(answer)
        case TaskAssigned() as task:
            by = f", from {task.assigned_by}" if task.assigned_by else ""
            return f"A task for you{by}:\n{_quoted(task.task)}"
        case _:
            return f"An event of type `{event.type}`:\n{_quoted(event.summary)}"


def _notified(said: ExternalNotification) -> str:
    if said.messages:
        return f"Several notifications through {said.integration}, as one:\n{_quoted(said.body)}"
    sender = f" from {said.sender}" if said.sender else ""
    return f"A notification{sender} through {said.integration}:\n{_quoted(said.body or said.salient_body)}"


def _answered(answer: A2aMessage) -> str:
    how = "could not answer, and says" if answer.failed else "answers"
    told = f"You asked your colleague `{answer.responder}`:\n{_quoted(answer.brief)}\n\n"
    told += f"`{answer.responder}` {how}:\n{_quoted(answer.content)}"
    if answer.task:
        told += f"\n\nYou asked it while working on this, which you now finish:\n{_quoted(answer.task)}"
    return told


def _quoted(text: str) -> str:
    """Set off line by line, so that what others wrote cannot pass for a heading of ours."""
    return "\n".join(f"> {line}" for line in text.splitlines()) or "> (nothing)"
