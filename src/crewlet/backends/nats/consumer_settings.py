"""How a durable mailbox is written down at the broker, and what its delivery marks say. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ConsumerConfig, ConsumerInfo, ns
from crewlet.base import limits
from crewlet.queue import QueueConfig, Subscription

__all__ = ["DeliveryMark", "came_alone", "consumer_differences", "delivery_mark", "mailbox_settings", "recorded_pair"]

_COMPARED: Final = (
    "durable_name",
    "deliver_policy",
    "ack_policy",
    "ack_wait",
    "max_deliver",
    "backoff",
    "filter_subject",
    "filter_subjects",
    "max_ack_pending",
    "inactive_threshold",
    "num_replicas",
    "deliver_subject",
    "headers_only",
)
_MARK: Final = "$JS.ACK."
_SHORT_MARK: Final = 9
_DELIVERIES: Final = 4
_PENDING: Final = 8
_LONG_MARK: Final = 11


def mailbox_settings(subscription: Subscription, config: QueueConfig) -> ConsumerConfig:
    """A durable pull consumer: from the first message on, explicit acks, never reaped (E-027, S-139).

    The pair is kept in the metadata, since the name cannot be turned back into it.
    """
    return ConsumerConfig(
        durable_name=topics.durable_name(subscription.topic, subscription.group),
        deliver_policy="all",
        ack_policy="explicit",
        ack_wait=ns(config.ack_wait_of(subscription)),
        max_deliver=config.max_deliver,
        max_ack_pending=limits.ACK_PENDING_MAX,
        filter_subject=subscription.topic,
        metadata={"topic": subscription.topic, "group": subscription.group},
    )


def consumer_differences(wanted: ConsumerConfig, found: ConsumerConfig) -> dict[str, tuple[object, object]]:
    """The settings in which ``found`` is not as ``wanted``: by name, what is wanted and what there is."""
    differences: dict[str, tuple[object, object]] = {}
    for name in _COMPARED:
        want, have = getattr(wanted, name), getattr(found, name)
        if want != have:
            differences[name] = (want, have)
    # The broker adds entries of its own.
    for key, want in wanted.metadata.items():
        if found.metadata.get(key) != want:
            differences[f"metadata.{key}"] = (want, found.metadata.get(key))
    return differences


def recorded_pair(info: ConsumerInfo) -> Subscription | None:
    """The pair a mailbox was made for, believed only where it derives the mailbox's own name (E-029)."""
    topic, group = info.config.metadata.get("topic", ""), info.config.metadata.get("group", "")
    return Subscription(topic, group) if topics.durable_name(topic, group) == info.name else None


@dataclass(frozen=True, slots=True)
class DeliveryMark:
    """What a delivery's reply subject says: where the message is stored, and which delivery of it this is (from 1)."""

    stream: str
    consumer: str
    deliveries: int
    stream_seq: int
    consumer_seq: int


def delivery_mark(reply: str) -> DeliveryMark | None:
    """The mark in ``$JS.ACK.…``, with or without domain and account; ``None`` for any other subject."""
    tokens = _mark_tokens(reply)
    if tokens is None:
        return None
    _, _, stream, consumer, deliveries, stream_seq, consumer_seq, *_ = tokens
    try:
        return DeliveryMark(stream, consumer, int(deliveries), int(stream_seq), int(consumer_seq))
    except ValueError:
        return None


def came_alone(reply: str) -> bool:
    """Whether the broker had no other message for the mailbox as it made this delivery, the first of its message.

    What comes back to a mailbox is not among those: beside a delivery that did there may be more.
    """
    tokens = _mark_tokens(reply)
    return tokens is not None and tokens[_DELIVERIES] == "1" and tokens[_PENDING] == "0"


def _mark_tokens(reply: str) -> list[str] | None:
    if not reply.startswith(_MARK):
        return None
    tokens = reply.split(".")
    if len(tokens) >= _LONG_MARK:
        del tokens[2:4]
    return tokens if len(tokens) >= _SHORT_MARK else None
