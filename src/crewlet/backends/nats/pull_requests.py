"""What a durable consumer is asked for, how long it is waited for, and which answers end the asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from crewlet.backends.nats.jetstream_types import ns
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import CrewletError

__all__ = [
    "HEARTBEAT",
    "MailboxDeleted",
    "MailboxMissing",
    "PullTiming",
    "request_for_many",
    "request_for_one",
    "undelivered",
    "was_refused",
]

HEARTBEAT: Final = "100"
"""The status of a frame that says only that the request still waits."""
_EXPIRED: Final = "408"
_CONFLICT: Final = "409"
_NOBODY: Final = "503"
_LEFT_HEADER: Final = "Nats-Pending-Messages"


class MailboxDeleted(CrewletError):
    """The broker says that the durable consumer was deleted while we waited on it."""


class MailboxMissing(CrewletError):
    """Nobody at the broker answers for the durable consumer: it is gone, or it has no leader yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTiming:
    """How long one request waits at the broker, how often it shows that it still does, and when we stop believing.

    ``deaf_check_s``: how often the broker is asked whether it knows of the request, ``deaf_confirm_s`` later again.
    """

    expires_s: float = limits.PULL_EXPIRES_S
    heartbeat_s: float = limits.PULL_HEARTBEAT_S
    silence_max_s: float = limits.PULL_SILENCE_MAX_S
    deaf_check_s: float = limits.DEAF_CHECK_EVERY_S
    deaf_confirm_s: float = limits.DEAF_CONFIRM_S


def request_for_one(timing: PullTiming) -> bytes:
    """One message, waited for at the broker."""
    return msgspec.json.encode({"batch": 1, "expires": ns(timing.expires_s), "idle_heartbeat": ns(timing.heartbeat_s)})


def request_for_many(count: int, within_s: float) -> bytes:
    """Up to ``count`` messages: what is there now, or what comes within that time."""
    ask: dict[str, object] = {"batch": count, "max_bytes": limits.DRAIN_MAX_BYTES}
    return msgspec.json.encode(ask | ({"expires": ns(within_s)} if within_s > 0 else {"no_wait": True}))


def was_refused(consumer: str, end: Message) -> bool:
    """Whether the frame that ended a request is a refusal, to be met with a pause; else its time had just run out.

    Raises ``MailboxDeleted``, ``MailboxMissing``.
    """
    if end.status == _CONFLICT and "deleted" in end.description.lower():
        raise MailboxDeleted(f"{consumer}: {end.description}")
    if end.status == _NOBODY:
        raise MailboxMissing(f"{consumer}: nobody answers for it")
    return end.status != _EXPIRED


def undelivered(end: Message) -> int | None:
    """How many of the messages asked for the request that ``end`` ends was not given; ``None`` if it does not say."""
    left = end.headers.get(_LEFT_HEADER, "")
    return int(left) if left.isdecimal() else None
