"""Every subject, stream, group and bucket name, built and parsed here and nowhere else (E-019)."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

__all__ = [
    "CONFIG_REVISION_ACTIVATED",
    "CONFIG_REVISION_APPLIED",
    "NOTIFICATIONS_INBOUND",
    "NOTIFY_INBOUND_GROUP",
    "ORPHANS_GROUP",
    "ORPHAN_ADVISORIES",
    "STREAM_ADVISORIES",
    "STREAM_AGENT",
    "STREAM_CONFIG",
    "STREAM_DLQ",
    "STREAM_EVENTS",
    "STREAM_JOURNAL",
    "STREAM_NOTIFICATIONS",
    "STREAM_ROOM_PROBE",
    "acknowledgement",
    "agent_control",
    "agent_inbox",
    "agent_reflect",
    "agent_topics",
    "bucket",
    "bucket_stream",
    "bucket_subject",
    "control_group",
    "dead_letter",
    "durable_name",
    "event_topic",
    "holds_mailboxes",
    "inbox_group",
    "inbox_handle",
    "journal",
    "matches",
    "namespace",
    "namespace_stream",
    "question",
    "reflect_group",
    "seat_handle",
    "stream_subjects",
]

_ROOT: Final = "crewlet"
_ONE_TOKEN: Final = re.compile(r"[^\s.*>\x00-\x1f]+")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")

STREAM_AGENT: Final = "CREWLET_AGENT"
STREAM_NOTIFICATIONS: Final = "CREWLET_NOTIFICATIONS"
STREAM_EVENTS: Final = "CREWLET_EVENTS"
STREAM_CONFIG: Final = "CREWLET_CONFIG"
STREAM_DLQ: Final = "CREWLET_DLQ"
STREAM_JOURNAL: Final = "CREWLET_JOURNAL"
STREAM_ADVISORIES: Final = "CREWLET_ADVISORIES"
STREAM_ROOM_PROBE: Final = "CREWLET_ROOM"

NOTIFICATIONS_INBOUND: Final = f"{_ROOT}.notifications.inbound"
CONFIG_REVISION_ACTIVATED: Final = f"{_ROOT}.config.revision_activated"
CONFIG_REVISION_APPLIED: Final = f"{_ROOT}.config.revision_applied"
NOTIFY_INBOUND_GROUP: Final = "notify-inbound"

_MAX_DELIVERIES: Final = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"
ORPHAN_ADVISORIES: Final = f"{_MAX_DELIVERIES}.>"
"""Where the broker says that it will offer a message no more, by stream and consumer."""
ORPHANS_GROUP: Final = "orphans"

_STREAM_SUBJECTS: Final = {
    STREAM_AGENT: f"{_ROOT}.agent.>",
    STREAM_NOTIFICATIONS: f"{_ROOT}.notifications.>",
    STREAM_EVENTS: f"{_ROOT}.events.>",
    STREAM_CONFIG: f"{_ROOT}.config.>",
    STREAM_DLQ: "dlq.>",
    STREAM_JOURNAL: f"{_ROOT}.journal.>",
    STREAM_ADVISORIES: ORPHAN_ADVISORIES,
}


def stream_subjects(stream: str) -> str:
    """The subject filter of one of the engine's own streams. Raises ``KeyError`` for another."""
    return _STREAM_SUBJECTS[stream]


def agent_inbox(handle: str) -> str:
    """Where all work of a seat arrives."""
    return f"{_ROOT}.agent.{_one_token(handle)}.inbox"


def agent_control(handle: str) -> str:
    """Where starts and completions of a seat's detached runs arrive."""
    return f"{_ROOT}.agent.{_one_token(handle)}.control"


def agent_reflect(handle: str) -> str:
    """Where a seat's finished turns are put before reflection."""
    return f"{_ROOT}.agent.{_one_token(handle)}.reflect"


def agent_topics(handle: str) -> str:
    """The pattern of all topics of a seat."""
    return f"{_ROOT}.agent.{_one_token(handle)}.>"


def seat_handle(topic: str) -> str | None:
    """The seat that ``topic`` belongs to, or ``None`` where it is no seat's."""
    parts = topic.split(".")
    return parts[2] if len(parts) > 3 and parts[:2] == [_ROOT, "agent"] else None  # noqa: PLR2004 - the grammar


def inbox_handle(topic: str) -> str | None:
    """The seat whose inbox ``topic`` is, or ``None`` for any other topic."""
    parts = topic.split(".")
    is_inbox = len(parts) == 4 and parts[:2] == [_ROOT, "agent"] and parts[3] == "inbox"  # noqa: PLR2004 - the grammar
    return parts[2] if is_inbox else None


def inbox_group(handle: str) -> str:
    """The one consumer group of a seat's inbox."""
    return f"agent-{handle}"


def control_group(handle: str) -> str:
    """The one consumer group of a seat's control topic."""
    return f"agent-{handle}-control"


def reflect_group(handle: str) -> str:
    """The one consumer group of a seat's reflect topic."""
    return f"agent-{handle}-reflect"


def journal(handle: str) -> str:
    """Where the journal of a seat's turns is kept, record by record."""
    return f"{_ROOT}.journal.{_one_token(handle)}"


def event_topic(event_type: str) -> str:
    """Where the engine records an event of this type about itself; a dotted type keeps its dots."""
    return f"{_ROOT}.events.{event_type}"


def dead_letter(topic: str, group: str) -> str:
    """Where poison of one subscription goes: the head is for reading, the digest is the identity (E-018)."""
    return f"dlq.{topic}.{_UNSAFE.sub('-', group)}.{_digest(topic, group)}"


def durable_name(topic: str, group: str) -> str:
    """The broker's name for a subscription's durable consumer: a lossy rewrite of the pair, and its digest."""
    head = _UNSAFE.sub("_", f"{topic}-{group}")[:120]
    return f"{head}-{_digest(topic, group)}"


def namespace(subject: str) -> str | None:
    """The namespace of a subject or pattern (``crewlet.agent``, ``dlq``), or ``None`` where it spans several."""
    if subject.startswith(f"{_MAX_DELIVERIES}."):
        return _MAX_DELIVERIES
    parts = subject.split(".")
    if parts[0] in ("*", ">"):
        return None
    if parts[0] != _ROOT:
        return parts[0]
    if len(parts) < 2 or parts[1] in ("*", ">"):  # noqa: PLR2004 - root and namespace
        return None
    return f"{_ROOT}.{parts[1]}"


@lru_cache(maxsize=4096)
def namespace_stream(subject: str) -> str | None:
    """The stream that carries a subject or pattern, one of ours or the name for one on demand; ``None``: several."""
    name = namespace(subject)
    if name is None:
        return None
    for stream, subjects in _STREAM_SUBJECTS.items():
        if subjects == f"{name}.>":
            return stream
    return _UNSAFE.sub("_", name).upper()


def holds_mailboxes(stream: str) -> bool:
    """Whether a stream of the account is one of ours that mailboxes live on (E-031)."""
    return stream.startswith("CREWLET_") and stream not in (STREAM_ADVISORIES, STREAM_JOURNAL)


def question(subject: str) -> str:
    """Where an ephemeral question is asked: below a namespace of its own, so that no stream covers it."""
    return f"{_ROOT}.questions.{subject}"


def acknowledgement(stream: str, consumer: str, *, deliveries: int, seq: int) -> str:
    """Where the end of a delivery is reported that nobody holds any more."""
    return f"$JS.ACK.{stream}.{consumer}.{deliveries}.{seq}.0.0.0"


def matches(pattern: str, topic: str) -> bool:
    """Whether a subject pattern (``*`` one token, ``>`` one or more at the end) covers ``topic``."""
    wanted, given = pattern.split("."), topic.split(".")
    for index, part in enumerate(wanted):
        if part == ">":
            return len(given) > index
        if index >= len(given) or part not in ("*", given[index]):
            return False
    return len(wanted) == len(given)


def bucket(slot: str) -> str:
    """The bucket that holds a slot of the coordination store."""
    return f"{_ROOT}_{slot}"


def bucket_stream(bucket_name: str) -> str:
    """The stream behind a bucket."""
    return f"KV_{bucket_name}"


def bucket_subject(bucket_name: str, key: str) -> str:
    """The subject that one key of a bucket is written on (``>`` for all of them)."""
    return f"$KV.{bucket_name}.{key}"


def _one_token(value: str) -> str:
    if not _ONE_TOKEN.fullmatch(value):
        message = f"{value!r} cannot be one token of a subject"
        raise ValueError(message)
    return value


def _digest(topic: str, group: str) -> str:
    return hashlib.sha256(f"{topic}\x00{group}".encode()).hexdigest()[:16]
