"""The event queue's contract; what implements it lives in ``backends``."""

from crewlet.queue.contract import (
    Ack,
    Defer,
    Delivery,
    EventQueue,
    Handler,
    Nak,
    Outcome,
    PublishListener,
    QueueConfig,
    StreamHandler,
    StreamSubscription,
    Subscription,
    nak_backoff_s,
)

__all__ = [
    "Ack",
    "Defer",
    "Delivery",
    "EventQueue",
    "Handler",
    "Nak",
    "Outcome",
    "PublishListener",
    "QueueConfig",
    "StreamHandler",
    "StreamSubscription",
    "Subscription",
    "nak_backoff_s",
]
