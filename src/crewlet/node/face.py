"""The node's public face: what the HTTP API and the commands may ask of a running node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crewlet.base.errors import CrewletError
from crewlet.base.trace import Trace
from crewlet.events import Event
from crewlet.node.budget_views import BudgetsView
from crewlet.node.company_change import AppliedCompany, CheckedCompany, CompanyView
from crewlet.node.coverage import WHOLE, Coverage
from crewlet.node.fleet_tools import ToolsView
from crewlet.node.fleet_views import FleetView
from crewlet.node.pause_views import PauseControl, PauseView
from crewlet.node.record_views import RecordPage, RecordView, SlotView
from crewlet.node.steering import SteerControl
from crewlet.queue import DeadLetters, StreamSubscription
from crewlet.store import EventFilter, StoredEvent

__all__ = [
    "AskView",
    "CompanyControl",
    "Health",
    "MailboxView",
    "MessageState",
    "MessageView",
    "NoSuchSeat",
    "NoSuchSlot",
    "NodeFace",
    "NotAnAgent",
    "Readiness",
    "SeatView",
    "SentMessage",
    "SharedRecords",
    "TurnView",
]


class NoSuchSeat(CrewletError):
    """No seat of the company has this handle; ``known`` lists those that do."""

    def __init__(self, handle: str, known: Sequence[str]) -> None:
        self.handle = handle
        self.known = tuple(known)
        super().__init__(f"no seat has the handle {handle!r}")


class NoSuchSlot(CrewletError):
    """No slot of the coordination store has this name; ``known`` lists those that do."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"no slot is called {name!r}")


class NotAnAgent(CrewletError):
    """The seat is a person's: it has no inbox here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What this process says of itself; always answered while it lives.

    ``unproven_seconds``: for how long the teardown of a seat has failed, by handle; there only while one has.
    """

    status: str
    node: str
    roles: tuple[str, ...]
    company: str
    configured: bool
    in_flight: int
    shutting_down: bool
    seats: tuple[str, ...]
    version: str
    started_at: datetime
    queue_backend: str
    stream_in_memory: bool
    models_are_real: bool
    problems: tuple[str, ...] = ()
    unproven_seconds: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this node should be sent work; ``reasons`` is empty when it should."""

    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatView:
    """One seat as an operator sees it. ``activity``: ``working``, ``stopped`` or ``idle``; people have none.

    ``stopped_reason``: ``paused``, ``pauses_unknown``, ``unplaced``, ``budget`` or ``provider`` where it is stopped,
    else null.
    ``paused``: the pause that stands, whether or not its last turn still runs.
    """

    handle: str
    name: str
    kind: str
    unit: str
    manager: str
    agent_id: str
    held_here: bool
    epoch: int | None
    activity: str | None
    stopped_reason: str | None
    paused: PauseView | None
    turn_id: str | None
    last_turn_id: str | None
    last_error: str | None
    models: tuple[str, ...]
    models_are_real: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxView:
    """One durable mailbox: how much waits, how much is held, since when; ``seat`` is empty where it is no seat's.

    ``attached`` is ``here``, ``elsewhere`` (another node asks for its mail), ``unknown`` (nobody asks, and somebody
    holds a delivery) or ``nobody``.
    """

    topic: str
    group: str
    seat: str
    pending: int
    held: int
    oldest: datetime | None
    attached: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """One run: which seat, what woke it, and how it stands.

    ``state`` is ``running``, ``done``, ``skipped``, ``failed``, ``stopped`` or ``redelivered``. ``cost_usd`` is
    ``None`` where a price is not known, before the end too.
    """

    turn_id: str
    handle: str
    trigger_id: str
    trigger_type: str
    started_at: datetime
    ended_at: datetime | None
    state: str
    artifact: str
    error: str
    error_kind: str
    asks: tuple[str, ...]
    tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskView:
    """One ask of the chain, as the channel's record has it: ``open``, ``answered`` or ``closed``."""

    channel_id: str
    requester: str
    target: str
    status: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that the broker has, and the trace that everything it causes belongs to."""

    id: str
    trace_id: str


class MessageState:
    """How a message stands; ``ANSWERED``, ``FAILED`` and ``SKIPPED`` are final."""

    WAITING = "waiting"
    WORKING = "working"
    ANSWERED = "answered"
    FAILED = "failed"
    SKIPPED = "skipped"
    FINAL = frozenset({ANSWERED, FAILED, SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message, the turns it led to over all asks, and the last answer (final once ``state`` is).

    ``coverage``: which nodes' logs that is read from. What a node that did not answer knows is missing.
    """

    id: str
    trace_id: str
    handle: str
    text: str
    sender: str
    state: str
    answer: str
    reason: str
    turns: tuple[TurnView, ...]
    asks: tuple[AskView, ...]
    coverage: Coverage = WHOLE


class SharedRecords(Protocol):
    """What the company has agreed on, as a person reads it."""

    def slots(self) -> tuple[SlotView, ...]:
        """Every slot, with the age in force."""
        ...

    async def page(self, slot: str, key_class: str = "", *, after: str = "", limit: int) -> RecordPage:
        """Records of one class, or of all known. Raises ``NoSuchSlot``, ``ValueError``, ``Unavailable``."""
        ...

    async def get(self, slot: str, key: str) -> RecordView | None:
        """One record. Raises ``NoSuchSlot``, ``ValueError`` for what can be no key, ``Unavailable``."""
        ...


class CompanyControl(Protocol):
    """The company in force, and the way to another one."""

    def current(self) -> CompanyView:
        """The company in force."""
        ...

    async def check(self, document: str) -> CheckedCompany:
        """What applying the document would change. Raises ``ConfigError``."""
        ...

    async def apply(self, document: str, *, by: str) -> AppliedCompany:
        """Take the document into force. Raises ``ConfigError``, ``ApplyUnderWay``, ``Conflict``, ``Unavailable``."""
        ...


class NodeFace(Protocol):
    """A running node. Reads may raise ``Unavailable``."""

    def health(self) -> Health:
        """How the process stands."""
        ...

    def ready(self) -> Readiness:
        """Whether to send it work."""
        ...

    def seats(self) -> tuple[SeatView, ...]:
        """Every seat of the company, people included, in the document's order."""
        ...

    async def send_message(self, handle: str, text: str, *, principal: str, parent: Trace | None = None) -> SentMessage:
        """Put a message on its way to a seat; returns once the broker has it.

        ``parent`` is the caller's own span, whose trace everything then belongs to; without it a new one begins.

        Raises ``NoSuchSeat``, ``NotAnAgent``, ``PayloadTooLarge``, ``Unavailable``.
        """
        ...

    async def message(self, message_id: str) -> MessageView | None:
        """How a message stands, or ``None`` where no live node took it. Raises ``Unavailable`` where one is silent."""
        ...

    async def events(self, wanted: EventFilter) -> list[StoredEvent]:
        """Rows of the event log, newest first."""
        ...

    async def event(self, event_id: str) -> StoredEvent | None:
        """One row."""
        ...

    async def turn(self, turn_id: str) -> list[StoredEvent]:
        """Every row of one run, oldest first; empty where this node knows none."""
        ...

    @property
    def dead_letters(self) -> DeadLetters:
        """What the whole company could not work."""
        ...

    @property
    def pauses(self) -> PauseControl:
        """Pausing and resuming seats."""
        ...

    @property
    def steering(self) -> SteerControl:
        """Telling running turns something."""
        ...

    @property
    def company(self) -> CompanyControl:
        """The company in force, and the way to another one."""
        ...

    async def fleet(self) -> FleetView:
        """The live nodes, who runs which seat, duties, and what nobody can run. Raises ``Unavailable``."""
        ...

    async def budgets(self) -> BudgetsView:
        """Every token budget; where the counters cannot be read, it says so and is no error."""
        ...

    async def tools(self) -> ToolsView:
        """How the tool servers of the company in force stand on every live node. Raises ``Unavailable``."""
        ...

    @property
    def records(self) -> SharedRecords:
        """The shared records."""
        ...

    async def mailboxes(self, handle: str = "") -> tuple[MailboxView, ...]:
        """Every durable mailbox, or those of one seat. Raises ``Unavailable``, ``ValueError`` for no handle."""
        ...

    async def follow(self, on_event: Callable[[str, Event], None]) -> StreamSubscription:
        """Feed every event the company records from now on; the callback must not block."""
        ...

    def on_draining(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` once when this node begins to drain; returns what removes it."""
        ...
