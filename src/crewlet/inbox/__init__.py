"""From a delivery to a trigger and back: the ledger, the gate, and what becomes of a broken turn."""

from crewlet.inbox.contract import (
    Decision,
    Reply,
    RunTurn,
    Trigger,
    TurnOutcome,
)
from crewlet.inbox.seat_inbox import (
    Admission,
    CompletionLedger,
    SeatInbox,
    SeatInboxParts,
    Settle,
)
from crewlet.inbox.triggers import (
    LEDGERED,
    UnreadableTrigger,
    trigger_of,
    work_key_of,
)
from crewlet.inbox.turn_journal import CallAt, NoJournal, Opening, RecordedReply, TurnJournal
from crewlet.inbox.verdict import (
    Verdict,
    verdict_of,
)

__all__ = [
    "LEDGERED",
    "Admission",
    "CallAt",
    "CompletionLedger",
    "Decision",
    "NoJournal",
    "Opening",
    "RecordedReply",
    "Reply",
    "RunTurn",
    "SeatInbox",
    "SeatInboxParts",
    "Settle",
    "Trigger",
    "TurnJournal",
    "TurnOutcome",
    "UnreadableTrigger",
    "Verdict",
    "trigger_of",
    "verdict_of",
    "work_key_of",
]
