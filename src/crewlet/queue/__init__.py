"""The event queue's contract; what implements it lives in ``backends``."""

from crewlet.queue.batches import Batch, BatchHandler, BatchOptions, PartitionKey, partitions_of
from crewlet.queue.contract import (
    Answer,
    EventQueue,
    MailboxState,
    PublishListener,
    QueueConfig,
    Responder,
    StreamHandler,
    StreamSubscription,
    nak_backoff_s,
)
from crewlet.queue.copies import message_identity, put_back
from crewlet.queue.dead_letters import DeadLetter, DeadLetterPage, DeadLetters, Redrive, RedriveOutcome
from crewlet.queue.deliveries import Ack, Defer, Delivery, Handler, Nak, Outcome, Subscription
from crewlet.queue.log import Log, LogFull, Logged, LogRecord, LogUnreadable, Superseded, Tail, checked_records
from crewlet.queue.seat_mailboxes import control_of, inbox_of, mailboxes_of, owner_of_mailbox, reflect_of
from crewlet.queue.unheard import UnheardLetter, UnheardListener, UnheardListeners

__all__ = [
    "Ack",
    "Answer",
    "Batch",
    "BatchHandler",
    "BatchOptions",
    "DeadLetter",
    "DeadLetterPage",
    "DeadLetters",
    "Defer",
    "Delivery",
    "EventQueue",
    "Handler",
    "Log",
    "LogFull",
    "LogRecord",
    "LogUnreadable",
    "Logged",
    "MailboxState",
    "Nak",
    "Outcome",
    "PartitionKey",
    "PublishListener",
    "QueueConfig",
    "Redrive",
    "RedriveOutcome",
    "Responder",
    "StreamHandler",
    "StreamSubscription",
    "Subscription",
    "Superseded",
    "Tail",
    "UnheardLetter",
    "UnheardListener",
    "UnheardListeners",
    "checked_records",
    "control_of",
    "inbox_of",
    "mailboxes_of",
    "message_identity",
    "nak_backoff_s",
    "owner_of_mailbox",
    "partitions_of",
    "put_back",
    "reflect_of",
]
