"""A node of a few dictionaries: what the API's tests stand it on, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx

from crewlet import topics
from crewlet.api import ApiConfig, ApiLimits, ApiServer, ApiToken
from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Problem
from crewlet.base.trace import Trace
from crewlet.coordination import Lease
from crewlet.coordination.slots import LEDGER, SECRETS
from crewlet.events import Body, Event, encode, new_event
from crewlet.node.budget_views import BudgetsView, budgets_view
from crewlet.node.company_change import AppliedCompany, CheckedCompany, CompanyChange, CompanyView
from crewlet.node.coverage import Coverage, NodeAnswered
from crewlet.node.face import (
    Health,
    MailboxView,
    MessageState,
    MessageView,
    NoSuchSeat,
    NotAnAgent,
    Readiness,
    SeatView,
    SentMessage,
)
from crewlet.node.fleet_tools import ToolsView
from crewlet.node.fleet_views import FleetView, fleet_view
from crewlet.node.pause_views import PausedSeat, PauseView, ResumedSeat
from crewlet.node.shared_records import StoredRecords
from crewlet.node.steering import Steered, SteerOutcome
from crewlet.queue import DeadLetter, DeadLetterPage, Redrive, RedriveOutcome
from crewlet.seats import PlacedSeat
from crewlet.store import EventFilter, StoredEvent
from crewlet.testing import SeededIds
from tests.unit.node.companies import acme

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

_HEALTH = Health(
    status="ok",
    node="node-0",
    roles=("ingress", "seats"),
    company="Acme",
    configured=True,
    in_flight=0,
    shutting_down=False,
    seats=("ceo",),
    version="0.1.0",
    started_at=NOW,
    queue_backend="memory",
    stream_in_memory=True,
    models_are_real=False,
)
_SEAT = SeatView(
    handle="ceo",
    name="Chief",
    kind="agent",
    unit="",
    manager="",
    agent_id="a-1",
    held_here=True,
    epoch=1,
    activity="idle",
    stopped_reason=None,
    paused=None,
    turn_id=None,
    last_turn_id=None,
    last_error=None,
    models=("scripted",),
    models_are_real=False,
)


class SmallDeadLetters:
    """A box of a few letters; those in ``orphans`` have no mailbox any more."""

    def __init__(self, trouble: Callable[[], Awaitable[None]]) -> None:
        self.letters: dict[str, DeadLetter] = {}
        self.orphans: set[str] = set()
        self.redriven: list[str] = []
        self.asked: list[tuple[int, str, str]] = []
        self._trouble = trouble

    async def page(self, *, limit: int, before: str = "", pattern: str = "") -> DeadLetterPage:
        await self._trouble()
        self.asked.append((limit, before, pattern))
        if before == "nonsense":
            raise ValueError("'nonsense' is not a `next` of an earlier page")
        known = sorted(self.letters.values(), key=lambda letter: int(letter.id), reverse=True)
        older = [letter for letter in known if not before or int(letter.id) < int(before)]
        page = tuple(letter for letter in older[:limit] if not pattern or topics.matches(pattern, letter.topic))
        return DeadLetterPage(page, older[limit - 1].id if len(older) > limit else None)

    async def get(self, letter_id: str) -> DeadLetter | None:
        await self._trouble()
        return self.letters.get(letter_id)

    async def redrive(self, letter_id: str) -> Redrive:
        await self._trouble()
        letter = self.letters.get(letter_id)
        if letter is None:
            return Redrive(RedriveOutcome.GONE)
        if letter_id in self.orphans:
            return Redrive(RedriveOutcome.MAILBOX_GONE, letter)
        self.redriven.append(letter_id)
        return Redrive(RedriveOutcome.REDRIVEN, self.letters.pop(letter_id))

    async def drop(self, letter_id: str) -> bool:
        await self._trouble()
        return self.letters.pop(letter_id, None) is not None


class Feed:
    """One subscription that the node handed out."""

    def __init__(self, deliver: Callable[[str, Event], None]) -> None:
        self.deliver = deliver
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class SmallCompany:
    """A company whose document is the word of the day; ``refusal`` is raised by a change of it."""

    def __init__(self) -> None:
        self.applied: list[tuple[str, str]] = []
        self.refusal: Exception | None = None
        self.trouble = ""

    def current(self) -> CompanyView:
        return CompanyView(company="Acme", epoch=len(self.applied) + 1, document="name: Acme", lasts=True)

    async def check(self, document: str) -> CheckedCompany:
        if self.refusal is not None:
            raise self.refusal
        change = CompanyChange(
            added=("dev",), removed=("ops",), changed=(), tools_renewed=("cto",), models=("fast",), tool_servers=()
        )
        return CheckedCompany(company="Acme", change=change, warnings=(Problem("roles[0]", "odd", "even", 3),))

    async def apply(self, document: str, *, by: str) -> AppliedCompany:
        checked = await self.check(document)
        self.applied.append((document, by))
        return AppliedCompany(checked=checked, epoch=len(self.applied) + 1, lasts=False, trouble=self.trouble)


class SmallSteering:
    """One running turn, one that has ended, and one that can take no more notes."""

    def __init__(self, trouble: Callable[[], Awaitable[None]]) -> None:
        self.taken: list[tuple[str, str, str]] = []
        self._trouble = trouble

    async def steer(self, turn_id: str, text: str, *, by: str, note_id: str = "") -> Steered:
        await self._trouble()
        ends = {"turn-1": SteerOutcome.ACCEPTED, "ended": SteerOutcome.CLOSED, "full": SteerOutcome.FULL}
        outcome = ends.get(turn_id, SteerOutcome.NO_SUCH_TURN)
        if outcome is SteerOutcome.ACCEPTED:
            self.taken.append((turn_id, text, by))
        return Steered(turn_id=turn_id, note_id=note_id or "note-1", outcome=outcome)


class SmallPauses:
    """The pauses of a company with one agent and one person."""

    def __init__(self, trouble: Callable[[], Awaitable[None]]) -> None:
        self.standing: dict[str, PauseView] = {}
        self._trouble = trouble

    async def pause(self, handle: str, *, by: str, reason: str = "", stop_running: bool = False) -> PausedSeat:
        await self._known(handle)
        changed = handle not in self.standing
        asked = PauseView(by=by, by_seat="", at=NOW, reason=reason, stop_running=stop_running)
        return PausedSeat(handle=handle, paused=self.standing.setdefault(handle, asked), changed=changed)

    async def resume(self, handle: str, *, by: str) -> ResumedSeat:
        assert by.startswith("operator:")
        await self._known(handle)
        return ResumedSeat(handle=handle, ended=self.standing.pop(handle, None))

    async def _known(self, handle: str) -> None:
        await self._trouble()
        if handle == "ada":
            raise NotAnAgent(handle)
        if handle != "ceo":
            raise NoSuchSeat(handle, ["ada", "ceo"])


BUDGETS = budgets_view(
    acme(roles=[{"name": "Chief", "handle": "ceo", "token_budget": {"day": 100}}], units=[], token_budget={"week": 9}),
    {},
    NOW,
)
"""A ceiling for the company's week and one for the ceo's day, and nothing spent."""


IN_PLACE = ToolsView(
    epoch=2, failures=(), pending=(), coverage=Coverage(nodes=(NodeAnswered(id="node-0", answered=True),))
)
"""Every tool server of the document serves."""


class SmallNode:
    """Satisfies ``NodeFace``. ``broken`` is raised by every call that may raise.

    ``standing`` is how its tools stand at one look after another, the last for good.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.parents: list[Trace | None] = []
        self.rows: list[StoredEvent] = []
        self.asked: list[EventFilter] = []
        self.reasons: tuple[str, ...] = ()
        self.broken: Exception | None = None
        self.hangs = False
        self.calls = 0
        self.draining = False
        self.feeds: list[Feed] = []
        self.to_call: list[Callable[[], None]] = []
        self.messages: dict[str, MessageView] = {}
        self.company = SmallCompany()
        self.dead_letters = SmallDeadLetters(self._trouble)
        self.pauses = SmallPauses(self._trouble)
        self.steering = SmallSteering(self._trouble)
        self.boxes: list[MailboxView] = []
        self.presence: list[Lease] = []
        self.leases: list[Lease] = []
        self.duties: list[Lease] = []
        self.buckets = {slot.name: MemoryBucket(slot, SystemClock()) for slot in (LEDGER, SECRETS)}
        self.stores = {name: MemoryRecordStore(bucket) for name, bucket in self.buckets.items()}
        self.records = StoredRecords(self.stores)
        self.budget = BUDGETS
        self.turn_id: str | None = None
        self.standing = [IN_PLACE]
        self.tools_asked = 0

    def health(self) -> Health:
        return replace(_HEALTH, shutting_down=self.draining)

    def ready(self) -> Readiness:
        return Readiness(self.reasons)

    def seats(self) -> tuple[SeatView, ...]:
        paused = self.pauses.standing.get("ceo")
        ceo = replace(_SEAT, activity="stopped", stopped_reason="paused", paused=paused) if paused else _SEAT
        if self.turn_id:
            ceo = replace(ceo, activity="working", turn_id=self.turn_id)
        return (ceo, replace(_SEAT, handle="ada", kind="human", activity=None, epoch=None, models=()))

    async def send_message(self, handle: str, text: str, *, principal: str, parent: Trace | None = None) -> SentMessage:
        await self._trouble()
        self.parents.append(parent)
        if handle == "ada":
            raise NotAnAgent(handle)
        if handle != "ceo":
            raise NoSuchSeat(handle, ["ada", "ceo"])
        self.sent.append((handle, text, principal))
        return SentMessage("m-1", "trace-1")

    async def message(self, message_id: str) -> MessageView | None:
        await self._trouble()
        return self.messages.get(message_id)

    async def events(self, wanted: EventFilter) -> list[StoredEvent]:
        await self._trouble()
        self.asked.append(wanted)
        older = [row for row in self.rows if wanted.before is None or row.cursor < wanted.before]
        return sorted(older, key=lambda row: row.cursor, reverse=True)[: wanted.limit]

    async def event(self, event_id: str) -> StoredEvent | None:
        await self._trouble()
        return next((row for row in self.rows if row.event.id == event_id), None)

    async def turn(self, turn_id: str) -> list[StoredEvent]:
        await self._trouble()
        return [row for row in self.rows if getattr(row.event.data, "turn_id", "") == turn_id]

    async def fleet(self) -> FleetView:
        await self._trouble()
        return fleet_view(
            "node-0",
            [PlacedSeat("ceo"), PlacedSeat("cto")],
            nodes=self.presence,
            seats=self.leases,
            duties=self.duties,
            now=NOW,
        )

    async def tools(self) -> ToolsView:
        await self._trouble()
        self.tools_asked += 1
        return self.standing.pop(0) if len(self.standing) > 1 else self.standing[0]

    async def budgets(self) -> BudgetsView:
        await self._trouble()
        return self.budget

    async def mailboxes(self, handle: str = "") -> tuple[MailboxView, ...]:
        await self._trouble()
        if " " in handle:
            raise ValueError(f"{handle!r} cannot be one token of a subject")
        return tuple(box for box in self.boxes if handle in ("", box.seat))

    async def follow(self, on_event: Callable[[str, Event], None]) -> Feed:
        await self._trouble()
        feed = Feed(on_event)
        self.feeds.append(feed)
        return feed

    def on_draining(self, call: Callable[[], None]) -> Callable[[], None]:
        self.to_call.append(call)
        return lambda: self.to_call.remove(call)

    def publish(self, event: Event) -> None:
        """Hand ``event`` to whoever follows, as a broker would."""
        for feed in self.feeds:
            if not feed.closed:
                feed.deliver(f"crewlet.events.{event.type}", event)

    def drain(self) -> None:
        self.draining = True
        for call in self.to_call:
            call()

    async def _trouble(self) -> None:
        self.calls += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.broken is not None:
            raise self.broken


class Chronicle:
    """Makes events with ids of their own, one second apart."""

    def __init__(self) -> None:
        self._ids = SeededIds(7)
        self._made = 0

    def event(self, body: Body) -> Event:
        self._made += 1
        now = NOW.replace(second=self._made % 60, minute=self._made // 60)
        return new_event(body, trace=Trace("trace-1", "span-1", ""), now=now, ids=self._ids, source="node-0")

    def row(self, body: Body) -> StoredEvent:
        event = self.event(body)
        return StoredEvent(f"crewlet.events.{event.type}", event)


def letter(number: int, *, seat: str = "ceo", payload: bytes = b"", reason: str = "no such tool") -> DeadLetter:
    """A letter of the seat's inbox; of an event named after it unless a payload is given."""
    event = Event(id=f"e-{number}", type="probe", timestamp=NOW, trace_id="trace-1")
    return DeadLetter(
        id=str(number),
        topic=topics.agent_inbox(seat),
        group=topics.inbox_group(seat),
        event=None if payload else event,
        payload=payload or encode(event),
        reason=reason,
        deliveries=25,
        at=NOW,
        stream=topics.STREAM_AGENT,
        stream_seq=100 + number,
    )


def config(folder: Path, *, tokens: tuple[ApiToken, ...] | None = None, **changes: object) -> ApiConfig:
    """A configuration on a free loopback port, with one token unless told otherwise."""
    known = (ApiToken("tester", TOKEN),) if tokens is None else tokens
    whole = ApiConfig(host="127.0.0.1", port=0, token_file=folder / "operator-token", tokens=known)
    return replace(whole, **changes)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def serving(node: SmallNode, settings: ApiConfig) -> AsyncGenerator[ApiServer]:
    """The API over ``node``, for as long as the block lasts."""
    server = ApiServer(node, settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(grace_s=0.3)


@asynccontextmanager
async def asking(server: ApiServer, **headers: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of ``server``; with the tests' token unless headers are given."""
    async with httpx.AsyncClient(base_url=server.url, headers=headers or BEARER, trust_env=False, timeout=5) as client:
        yield client


def tight(**changes: object) -> ApiLimits:
    """The API's bounds, with some of them changed."""
    return replace(ApiLimits(), **changes)  # pyright: ignore[reportArgumentType]


def answered(message_id: str = "m-1") -> MessageView:
    """A message that was answered without a turn worth showing."""
    return MessageView(
        id=message_id,
        trace_id="trace-1",
        handle="ceo",
        text="hi",
        sender="operator:tester",
        state=MessageState.ANSWERED,
        answer="hello",
        reason="",
        turns=(),
        asks=(),
    )
