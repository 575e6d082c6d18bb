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
from crewlet.inbox.verdict import (
    Verdict,
    verdict_of,
)

__all__ = [
    "LEDGERED",
    "Admission",
    "CompletionLedger",
    "Decision",
    "Reply",
    "RunTurn",
    "SeatInbox",
    "SeatInboxParts",
    "Settle",
    "Trigger",
    "TurnOutcome",
    "UnreadableTrigger",
    "Verdict",
    "trigger_of",
    "verdict_of",
    "work_key_of",
]
