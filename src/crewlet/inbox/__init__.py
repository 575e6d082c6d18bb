"""From a delivery to a trigger and back: the ledger, the gate, and what becomes of a broken turn."""

from crewlet.inbox.contract import (
    Decision,
    Reply,
    RunTurn,
    Trigger,
    TurnOutcome,
)

__all__ = [
    "Decision",
    "Reply",
    "RunTurn",
    "Trigger",
    "TurnOutcome",
]
