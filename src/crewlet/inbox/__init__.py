"""From a delivery to a trigger and back: the ledger, the slots, and what becomes of a broken turn."""

from crewlet.inbox.contract import (
    Decision,
    Reply,
    RunTurn,
    Trigger,
    TurnOutcome,
)
from crewlet.inbox.digest import Unmergeable, merged
from crewlet.inbox.partitions import conversation_of, partition_of
from crewlet.inbox.ports import (
    Admission,
    CompletionLedger,
    NoRefusal,
    Refusal,
    SeatInboxParts,
    Settle,
)
from crewlet.inbox.recorded_charges import RecordedCharge
from crewlet.inbox.said_once import note_word, said_once_id
from crewlet.inbox.seat_inbox import SeatInbox
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.thread_shown import ThreadShown
from crewlet.inbox.triggers import (
    LEDGERED,
    UnreadableTrigger,
    runs_turn,
    trigger_of,
    work_key_of,
)
from crewlet.inbox.turn_gate import TurnGate
from crewlet.inbox.turn_journal import CallAt, NoJournal, Note, Opening, RecordedReply, TurnJournal
from crewlet.inbox.unheard_mail import UnheardMail
from crewlet.inbox.verdict import (
    Verdict,
    ids_worked,
    verdict_of,
)

__all__ = [
    "LEDGERED",
    "Admission",
    "CallAt",
    "CompletionLedger",
    "Decision",
    "NoJournal",
    "NoRefusal",
    "Note",
    "Opening",
    "RecordedCharge",
    "RecordedReply",
    "Refusal",
    "Reply",
    "RunTurn",
    "SeatInbox",
    "SeatInboxParts",
    "SeatJournal",
    "Settle",
    "ThreadShown",
    "Trigger",
    "TurnGate",
    "TurnJournal",
    "TurnOutcome",
    "UnheardMail",
    "Unmergeable",
    "UnreadableTrigger",
    "Verdict",
    "conversation_of",
    "ids_worked",
    "merged",
    "note_word",
    "partition_of",
    "runs_turn",
    "said_once_id",
    "trigger_of",
    "verdict_of",
    "work_key_of",
]
