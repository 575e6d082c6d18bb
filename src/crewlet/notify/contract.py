"""What a source of notifications is: it turns one raw delivery into copies for named recipients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from crewlet.base.errors import CrewletError
from crewlet.events import Event
from crewlet.events.types import RawWebhook

__all__ = ["Directory", "PayloadRefused", "Routed", "Seat", "SkipReason", "Source"]


class SkipReason(StrEnum):
    """The fixed phrases of a delivery that reached nobody; what was particular about it goes into ``detail``."""

    UNREADABLE = "payload cannot be read"
    NO_SOURCE = "no parser for this source"
    REFUSED = "parser refused the payload"
    NO_SEAT = "no seat matches the recipient"
    HUMAN = "the recipient is a person"
    TOO_LARGE = "too large for an inbox"
    SPENT = "its deliveries are spent; the delivery is a dead letter now"


class PayloadRefused(CrewletError):
    """A source's parser refused a delivery; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """One copy of a delivery, for one recipient."""

    recipient: str
    notification_type: str
    sender: str
    salient_body: str
    body: str
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    addressed: bool = False
    requires_recon: bool = False
    reply: str = "none"
    partition_key: str = ""
    conversation_identity: str = ""


class Source(Protocol):
    """One kind of outside."""

    @property
    def name(self) -> str:
        """The name that raw deliveries carry as their ``integration``."""
        ...

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Routed, ...]:
        """The copies to route. Pure; raises ``PayloadRefused``."""
        ...


@dataclass(frozen=True, slots=True)
class Seat:
    """What routing needs of a seat."""

    handle: str
    agent_id: str
    is_agent: bool


class Directory(Protocol):
    """Who is in the company, from the document current at the time of the question."""

    def resolve(self, identity: str) -> Seat | None:
        """The seat behind a handle, role name, agent id or email, or ``None``."""
        ...
