"""What is outside every process of a simulated company: it remembers each effect, each reply and each turn."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from crewlet.inbox import Reply, Trigger
from crewlet.llm import AssistantMessage, ModelRequest, ToolResultMessage
from crewlet.testing.turn_simulation.rules import Findings
from crewlet.tools import CallContext

__all__ = ["KnownTurn", "Outside", "conversation_key"]


def conversation_key(seed: int, request: ModelRequest) -> str:
    """One conversation, whoever leads it: the same words have the same key."""
    said = [str(seed), request.scenario.get("seat", ""), request.scenario.get("phase", "")]
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            said += ["reply", message.text, *(f"{each.id} {each.name} {each.arguments}" for each in message.calls)]
        elif isinstance(message, ToolResultMessage):
            said += ["result", message.call_id, message.content]
        else:
            said += ["told", message.text]
    return hashlib.sha256("\x00".join(said).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KnownTurn:
    """A turn that some process ran a part of: for which events of whom, and who was owed an answer."""

    handle: str
    events: tuple[str, ...]
    reply: Reply


@dataclass(slots=True)
class Outside:
    """``asked_for`` are the conversations in which a call with a token was asked for, ``effects`` who made it.

    ``model_is_away``: nobody answers; ``epochs`` are the highest under which each seat has acted. ``accepted_notes``
    are those whose sender was told that the turn takes them, each with its turn.
    """

    findings: Findings
    model_is_away: bool = False
    asked_for: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict[str, set[str]](set))
    effects: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))
    idempotent: set[str] = field(default_factory=set[str])
    epochs: Counter[str] = field(default_factory=Counter[str])
    acted_turns: set[str] = field(default_factory=set[str])
    turns: dict[str, KnownTurn] = field(default_factory=dict[str, KnownTurn])
    happened: Counter[str] = field(default_factory=Counter[str])
    accepted_notes: dict[str, str] = field(default_factory=dict[str, str])

    def acted(self, token: str, context: CallContext, owner: str, *, idempotent: bool) -> None:
        """A tool did what it does."""
        handle, epoch = context.handle, context.fence.epoch
        if epoch < self.epochs[handle]:
            what = f"{owner} acts for {handle} at epoch {epoch} after somebody did at {self.epochs[handle]}"
            self.findings.add("one turn", what)
        self.epochs[handle] = max(self.epochs[handle], epoch)
        self.happened["effects"] += 1
        self.acted_turns.add(context.turn_id)
        self.effects[token].append(owner)
        if idempotent:
            self.idempotent.add(token)
        wanted = len(self.asked_for[token])
        made = self.effects[token]
        if (idempotent and made.count(owner) > wanted) or (not idempotent and len(made) > wanted):
            what = f"call {token} of turn {context.turn_id} was asked for {wanted} times and made by {made}"
            self.findings.add("effects", what)

    def begins(self, turn_id: str, trigger: Trigger) -> None:
        """A process runs a turn, or the rest of one."""
        events = tuple(event.id for event in trigger.events)
        self.turns[turn_id] = KnownTurn(trigger.handle, events, trigger.reply)
        self.happened["turns"] += 1
        if trigger.digest is not None:
            self.happened["digests"] += 1
            self._look_at_digest(trigger)

    def require_valid(self, request: ModelRequest) -> None:
        """Each call of a reply has one result, before anything else is said: no vendor takes another transcript."""
        open_calls: list[str] = []
        for message in request.messages:
            if isinstance(message, ToolResultMessage):
                if message.call_id not in open_calls:
                    self.findings.add("transcript", f"a result without its call: {message.call_id} {message.name}")
                    return
                open_calls.remove(message.call_id)
                continue
            if open_calls:
                self.findings.add("transcript", f"calls without a result: {open_calls}")
                return
            if isinstance(message, AssistantMessage):
                open_calls = [each.id for each in message.calls]
        if open_calls or not request.messages or isinstance(request.messages[-1], AssistantMessage):
            self.findings.add("transcript", f"nothing is asked, or calls are open: {open_calls}")

    def _look_at_digest(self, trigger: Trigger) -> None:
        assert trigger.digest is not None
        ids = [event.id for event in trigger.events]
        told = [message.event_id for message in getattr(trigger.digest.data, "messages", ())]
        if len(ids) != len({*ids}) or sorted(told) != sorted(ids):
            self.findings.add("digest", f"a turn of {trigger.handle} for {ids} is told of {told}")
        for event in trigger.events:
            marker = getattr(event.data, "metadata", {}).get("marker", "")
            superseded = getattr(event.data, "notification_type", "") == "issue_updated"
            times = trigger.task.count(marker) if marker else 1
            if times > 1 or (times == 0 and not superseded):
                self.findings.add("digest", f"{marker} of {event.id} stands {times} times in the digest")
