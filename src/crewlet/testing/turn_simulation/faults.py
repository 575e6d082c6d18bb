"""Planted faults of turns: each a way of being wrong that some rule has to find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crewlet.a2a import A2aService
from crewlet.coordination import Ledger
from crewlet.inbox import RecordedReply, SeatInbox, SeatJournal, UnheardMail, digest
from crewlet.inbox.counting import CountedReplies
from crewlet.inbox.digest_text import Said, digest_text
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.llm import Message, ToolResultMessage
from crewlet.node.seat_pausing import SeatPausing
from crewlet.queue import Ack, Batch, Defer, Outcome
from crewlet.seats import SeatFence
from crewlet.testing.simulated import Replacement, current_process
from crewlet.testing.turn_simulation.plan import TurnPlan
from crewlet.testing.turn_simulation.rules import Rule
from crewlet.turns.conversation import Conversation
from crewlet.turns.turn_scope import TurnScope

__all__ = ["NO_FAULT", "TURN_FAULTS", "TurnFault"]


_DAY = TurnPlan()


@dataclass(frozen=True, slots=True)
class TurnFault:
    """``replaced``: what stands where for the while. ``rules``: those that find it, in days of its ``plan``."""

    name: str
    rules: tuple[Rule, ...]
    replaced: tuple[Replacement, ...]
    plan: TurnPlan = _DAY


def _private(owner: object, name: str) -> Callable[..., Any]:
    return vars(owner)[name]


_HANDLE = _private(SeatInbox, "handle")
_REPLY_AT = _private(JournalledTurn, "reply_at")
_ADD = _private(Conversation, "add")


async def _acknowledged(inbox: SeatInbox, batch: Batch) -> Outcome:
    outcome = await _HANDLE(inbox, batch)
    return Ack() if isinstance(outcome, Defer) else outcome


async def _nothing(*_: object, **__: object) -> None:
    return


async def _worked_nothing(*_: object) -> frozenset[str]:
    return frozenset()


def _knows_nothing(*_: object) -> frozenset[str]:
    return frozenset()


def _no(*_: object) -> bool:
    return False


def _charged_before(turn: JournalledTurn, phase: str, round_num: int) -> RecordedReply | None:
    recorded = _REPLY_AT(turn, phase, round_num)
    return None if recorded is None else replace(recorded, is_last=False)


def _lane_of_its_own(scope: TurnScope) -> str:
    process = current_process()
    return f"{scope.events.turn_id} {'' if process is None else process.owner}"


def _never_checked(_fence: SeatFence) -> None:
    return


def _without_errors(conversation: Conversation, message: Message) -> None:
    if not (isinstance(message, ToolResultMessage) and message.is_error):
        _ADD(conversation, message)


def _without_the_first(earlier: Sequence[Said], newest: Said, told: str) -> str:
    return digest_text(earlier[1:], newest, told)


async def _not_answered(*_: object) -> bool:
    return True


async def _breaks(*_: object) -> None:
    raise ValueError("a planted fault")


async def _on_no_record(*_: object) -> bool:
    return True


NO_FAULT = TurnFault("none", (), ())
TURN_FAULTS: tuple[TurnFault, ...] = (
    TurnFault("what has to wait is acknowledged", ("ends",), ((SeatInbox, "handle", _acknowledged),)),
    TurnFault("giving up is silent", ("said",), ((TriggerNews, "given_up", _nothing),)),
    TurnFault("the ledger is not written", ("ledger",), ((Ledger, "record", _nothing),)),
    TurnFault("an intent says nothing", ("effects",), ((JournalledTurn, "was_intended", _no),)),
    TurnFault("a successor skips the last charge", ("counters",), ((JournalledTurn, "reply_at", _charged_before),)),
    TurnFault("a successor charges anew", ("counters",), ((TurnScope, "lane", property(_lane_of_its_own)),)),
    TurnFault(
        "nobody is fenced",
        ("one turn",),
        (
            (SeatFence, "check", _never_checked),
            (SeatJournal, "_require_standing", _nothing),
            (SeatJournal, "_require_ours", _nothing),
        ),
    ),
    TurnFault("a failed call has no result", ("transcript",), ((Conversation, "add", _without_errors),)),
    TurnFault("a digest forgets its first", ("digest",), ((digest, "digest_text", _without_the_first),)),
    TurnFault(
        "nobody knows what was worked",
        ("answers",),
        ((Ledger, "worked", _worked_nothing), (SeatJournal, "worked", _knows_nothing)),
    ),
    TurnFault("an ask is not answered", ("asks",), ((A2aService, "answer", _not_answered),)),
    TurnFault("a note is on no record", ("notes",), ((JournalledTurn, "noted", _on_no_record),)),
    TurnFault(
        "buried mail is nobody's",
        ("said",),
        ((UnheardMail, "heard", _nothing),),
        # What is handed back once is on its last delivery: more of that ends in nobody's hands.
        TurnPlan(max_deliver=2),
    ),
    TurnFault("an end counts nothing", ("counters",), ((CountedReplies, "count", _nothing),)),
    TurnFault("a call's outcome breaks the turn", ("whole",), ((JournalledTurn, "came_out", _breaks),)),
    TurnFault("a lifted pause leaves the seat held", ("rest",), ((SeatPausing, "_resumed", _nothing),)),
)
