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
from crewlet.queue.dead_letters import DeadLetter, DeadLetterPage, DeadLetters, Redrive, RedriveOutcome
from crewlet.queue.deliveries import Ack, Defer, Delivery, Handler, Nak, Outcome, Subscription

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
    "nak_backoff_s",
    "partitions_of",
]
