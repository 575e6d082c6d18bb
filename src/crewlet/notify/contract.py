"""What a source of notifications is: it turns one raw delivery into copies for named recipients."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from crewlet.base.errors import CrewletError
from crewlet.events import Event
from crewlet.events.types import RawWebhook
from crewlet.notify.prompt import Notice, Prompt
from crewlet.notify.threads import ThreadReader

__all__ = ["Directory", "PayloadRefused", "Seat", "SkipReason", "Source", "Valve"]


class SkipReason(StrEnum):
    """The fixed phrases of a delivery that reached nobody; what was particular about it goes into ``detail``."""

    UNREADABLE = "payload cannot be read"
    NO_SOURCE = "no parser for this source"
    REFUSED = "parser refused the payload"
    NO_SEAT = "no seat matches the recipient"
    HUMAN = "the recipient is a person"
    RATE = "stopped by the seat's rate limit"
    TOO_LARGE = "too large for an inbox"
    SPENT = "its deliveries are spent; the delivery is a dead letter now"


class PayloadRefused(CrewletError):
    """A source's parser refused a delivery; the message says why."""


class Source(Protocol):
    """One kind of outside."""

    @property
    def name(self) -> str:
        """The name that raw deliveries carry as their ``integration``."""
        ...

    @property
    def prompt(self) -> Prompt:
        """What its notifications mean."""
        ...

    @property
    def threads(self) -> ThreadReader | None:
        """Who reads its threads, where it has any."""
        ...

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Notice, ...]:
        """The copies to route, each for a recipient as the source knows it. Pure; raises ``PayloadRefused``."""
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


class Valve(Protocol):
    """Lets so many notifications a second through to a seat, counted by the whole fleet; unknown is full."""

    async def admits(self, handle: str, *, cap: int) -> bool:
        """Whether one more may pass; it is counted then. A cap of 0 is no valve."""
        ...
