"""A turn whose process can be killed between any two steps, and the processes that go on with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from crewlet.backends.memory import MemoryLog, MemoryLogStream
from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId
from crewlet.events import Event, decode
from crewlet.events.types import AgentTurnCompleted
from crewlet.inbox import Decision, RunTurn, Trigger, TurnJournal, TurnOutcome
from crewlet.inbox.journal_state import LastTurn
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.taking_over import Fate, fate_of
from crewlet.llm import AssistantMessage, ModelReply, ModelRequest, OnDelta, OnFallback, ToolResultMessage
from crewlet.queue import Log, Logged, LogRecord, Tail
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import Annotations, CallContext, Hint, ToolResult
from crewlet.turns import CompanyBrief, SeatBrief, TurnEngine, TurnSetup
from crewlet.turns.meter import Meter, Spent
from tests.unit.turns.turn_kit import CountingFence, PlayedTool, Surface, call, reviews, says, submits, trigger_from

_BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process is no more; what it would still do does not happen."""


class Process:
    """One process: it dies at its ``dies_at``-th step (from 1) and does nothing after that."""

    def __init__(self, dies_at: int = 0) -> None:
        self._dies_at = dies_at
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self._dies_at and self.steps >= self._dies_at:
            raise Killed


@dataclass
class World:
    """What outlives every process: the journal, what reached outside, what was billed and what was told."""

    log: MemoryLogStream = field(default_factory=lambda: MemoryLogStream(VirtualClock()))
    comments: Counter[str] = field(default_factory=Counter[str])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    charges: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    completions: dict[str, AgentTurnCompleted] = field(default_factory=dict[str, AgentTurnCompleted])
    model_calls: int = 0
    epoch: int = 0
    meter: Callable[[World, Process], Meter] = field(default_factory=lambda: WorldMeter)


class KillableLog:
    """The log, a step before and after each verb."""

    def __init__(self, log: Log, process: Process) -> None:
        self._log = log
        self._process = process

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        self._process.step()
        sequence = await self._log.append(seat, records, expected=expected)
        self._process.step()
        return sequence

    async def tail(self, seat: str) -> Tail:
        self._process.step()
        return await self._log.tail(seat)

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        self._process.step()
        return await self._log.read(seat, after=after)

    async def trim(self, seat: str, *, through: int) -> None:
        self._process.step()
        await self._log.trim(seat, through=through)

    async def purge(self, seat: str) -> None:
        await self._log.purge(seat)


class WorldMeter:
    """Counts each reply once by its lane and number, as the budgets' lanes do."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    async def admit(self) -> None:
        self._process.step()

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self._process.step()
        check()
        tokens = spent.usage.input_tokens + spent.usage.output_tokens
        self._world.charges.setdefault((spent.lane, spent.number), tokens)
        self._process.step()


class Planner:
    """A model that goes by the conversation alone: two comments, one look inside, an end."""

    def __init__(self, world: World, process: Process, plan: Sequence[Callable[[ModelRequest], ModelReply]]) -> None:
        self._world = world
        self._process = process
        self._plan = plan

    @property
    def keys(self) -> tuple[str, ...]:
        return ("first",)

    @property
    def is_real(self) -> bool:
        return False

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        self._process.step()
        require_valid(request)
        self._world.model_calls += 1
        self._world.requests.append(request)
        said = sum(isinstance(message, AssistantMessage) for message in request.messages)
        self._process.step()
        return self._plan[said](request)


def require_valid(request: ModelRequest) -> None:
    """Each call of a reply is answered before anything else is said, once: no vendor takes another transcript."""
    open_calls: list[str] = []
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            assert message.call_id in open_calls, f"a result without its call: {message}"
            open_calls.remove(message.call_id)
        else:
            assert not open_calls, f"calls without a result: {open_calls}"
            if isinstance(message, AssistantMessage):
                open_calls = [each.id for each in message.calls]
    assert not open_calls, f"calls without a result: {open_calls}"


PLAN: Sequence[Callable[[ModelRequest], ModelReply]] = (
    lambda _: says("", call("activate_tool", name="comment"), call("notes")),
    lambda _: says("first", call("comment", text="one"), call("comment", text="two", n=2)),
    lambda _: says("", call("notes", page=2)),
    lambda _: submits("two comments are there"),
)


def executor_plan(world: World, process: Process) -> Planner:
    return Planner(world, process, PLAN)


def reviewer_plan(world: World, process: Process) -> Planner:
    return Planner(world, process, (lambda _: reviews(),))


async def live(world: World, process: Process, *, idempotent: Hint = Hint.UNKNOWN) -> TurnOutcome | None:
    """One process's life: take the seat's journal over, go on with what is there or begin, end the turn.

    Returns the outcome; ``None`` where the turn had ended before. Raises ``Killed``.
    """
    clock, ids = born(world)
    journal = journal_of(world, process, clock)
    found = await journal.take_over()
    turn, trigger = _turn_of(journal, found.turn, ids)
    if turn is None:
        return None
    outcome = await runner_of(world, process, clock, ids, idempotent=idempotent)(trigger, CountingFence(), turn)
    await turn.end(outcome="ack", decision=str(outcome.decision), ids=tuple(each.id for each in trigger.events))
    process.step()
    return outcome


def born(world: World) -> tuple[VirtualClock, SeededIds]:
    """A new process's clock and ids; it begins an hour after the last one, so that what it tells reads differently."""
    world.epoch += 1
    return VirtualClock(started=_BEGAN + timedelta(hours=world.epoch)), SeededIds(world.epoch)


def journal_of(world: World, process: Process, clock: VirtualClock) -> SeatJournal:
    """The seat's journal as this process writes it; its lease always stands."""
    log: Log = KillableLog(MemoryLog(world.log), process)

    async def standing() -> bool:
        return True

    return SeatJournal("ceo", log, epoch=world.epoch, writer=f"w{world.epoch}", standing=standing, clock=clock)


def runner_of(
    world: World, process: Process, clock: VirtualClock, ids: SeededIds, *, idempotent: Hint = Hint.UNKNOWN
) -> RunTurn:
    """A real engine whose every step outside is one of the process's."""

    def comment(arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        process.step()
        world.comments[str(arguments["text"])] += 1
        process.step()
        return ToolResult("commented")

    def notes(arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        process.step()
        return ToolResult(f"notes as process {world.epoch} reads them")

    async def publish(topic: str, event: Event) -> Event:
        process.step()
        if isinstance(event.data, AgentTurnCompleted):
            world.completions[event.id] = event.data
        return event

    engine = TurnEngine(publish, clock, ids)

    async def run(trigger: Trigger, fence: Fence, journal: TurnJournal) -> TurnOutcome:
        setup = TurnSetup(
            seat=SeatBrief(handle="ceo", name="Chief Executive", agent_id="agent-1"),
            company=CompanyBrief(name="Acme"),
            executor=executor_plan(world, process),
            reviewer=reviewer_plan(world, process),
            tools=Surface(
                PlayedTool("comment", comment, server="board", annotations=Annotations(idempotent=idempotent)),
                PlayedTool("notes", notes),
            ),
            meter=world.meter(world, process),
        )
        return await engine.run(trigger, fence, setup, journal)

    return run


def _turn_of(journal: SeatJournal, last: LastTurn | None, ids: SeededIds) -> tuple[JournalledTurn | None, Trigger]:
    trigger = trigger_from() if last is None else trigger_from(*(decode(bytes(raw)) for raw in last.opened.events))
    fate = fate_of(last, worked=(), event_ids=[each.id for each in trigger.events], stopped=False)
    match fate:
        case Fate.FINISH:
            return None, trigger
        case Fate.NOTHING | Fate.LEAVE | Fate.GIVE_UP:
            return JournalledTurn(journal, trigger, TurnId(str(ids.uuid()))), trigger
        case _:
            assert last is not None
            return JournalledTurn(journal, trigger, TurnId(last.opened.turn_id), last), trigger


__all__ = ["Decision", "Killed", "Process", "World", "born", "journal_of", "live", "runner_of"]
