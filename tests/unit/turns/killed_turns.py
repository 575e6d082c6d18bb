"""A turn whose process can be killed between any two steps, and the processes that go on with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from crewlet.backends.memory import MemoryBucket, MemoryLog, MemoryLogStream, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId
from crewlet.coordination import POSITIONS, OnboardingClaim, Onboardings
from crewlet.events import Event, decode
from crewlet.events.types import AgentPhaseCompleted, AgentTurnCompleted, AgentTurnSteered, ExternalNotification
from crewlet.inbox import Decision, Note, Reply, RunTurn, Trigger, TurnJournal, TurnOutcome
from crewlet.inbox.journal_state import LastTurn
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.taking_over import Fate, fate_of
from crewlet.llm import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
    StopReason,
    ToolResultMessage,
    UserMessage,
)
from crewlet.queue import Log, Logged, LogRecord, Tail
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import Annotations, CallContext, Hint, ToolResult
from crewlet.turns import CompanyBrief, DelegationConfig, NoteBox, SeatBrief, TurnConfig, TurnEngine, TurnSetup
from crewlet.turns.meter import Meter, Spent
from tests.unit.turns.turn_kit import (
    CountingFence,
    PlayedTool,
    Surface,
    call,
    event_of,
    failure,
    reviews,
    says,
    submits,
    trigger_from,
)

_OPEN_READ = Annotations(read_only=Hint.YES, open_world=Hint.YES)
_ASKED = ExternalNotification(integration="board", agent_handle="ceo", sender="ada", body="what now?", reply="tool")
NOTE = Note(note_id="note-1", text="leave the invoice alone", by="operator:ada")
_BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The process is no more; what it would still do does not happen."""


class Process:
    """One process: it dies at its ``dies_at``-th step (from 1) and does nothing after that.

    What it adds to the log at its ``cut_at``-th step does not get there; at its ``lost_at``-th the log is lost. What it
    adds at its ``unheard_at``-th gets there, and it hears nothing of that.
    """

    def __init__(self, dies_at: int = 0, *, cut_at: int = 0, lost_at: int = 0, unheard_at: int = 0) -> None:
        self._dies_at = dies_at
        self._cut_at = cut_at
        self._unheard_at = unheard_at
        self._lost_at = lost_at
        self.steps = 0

    @property
    def is_cut(self) -> bool:
        return self.steps == self._cut_at

    @property
    def is_unheard(self) -> bool:
        return self.steps == self._unheard_at

    @property
    def is_lost(self) -> bool:
        return self.steps == self._lost_at

    def step(self) -> None:
        self.steps += 1
        if self._dies_at and self.steps >= self._dies_at:
            raise Killed


@dataclass
class World:
    """What outlives every process: the journal, what reached outside, what was billed and what was told.

    While the ``note_at``-th reply is on its way, somebody sends a note; ``accepted``: he was told that it is taken.
    """

    log: MemoryLogStream = field(default_factory=lambda: MemoryLogStream(VirtualClock()))
    comments: Counter[str] = field(default_factory=Counter[str])
    places: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    searches: Counter[str] = field(default_factory=Counter[str])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    charges: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    completions: dict[str, AgentTurnCompleted] = field(default_factory=dict[str, AgentTurnCompleted])
    phases: dict[str, AgentPhaseCompleted] = field(default_factory=dict[str, AgentPhaseCompleted])
    model_calls: int = 0
    note_at: int = 0
    accepted: bool = False
    box: NoteBox = field(default_factory=NoteBox)
    steers: dict[str, AgentTurnSteered] = field(default_factory=dict[str, AgentTurnSteered])
    epoch: int = 0
    meter: Callable[[World, Process], Meter] = field(default_factory=lambda: WorldMeter)
    long_notes: str = ""
    marks: MemoryBucket = field(default_factory=lambda: MemoryBucket(POSITIONS, VirtualClock()))
    revision: str = ""


class KillableLog:
    """The log, a step before and after each verb."""

    def __init__(self, log: MemoryLog, process: Process) -> None:
        self._log = log
        self._process = process

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        self._process.step()
        if self._process.is_cut:
            raise Unavailable("the log does not answer")
        if self._process.is_lost:
            self._log.stream.lose()
        sequence = await self._log.append(seat, records, expected=expected)
        if self._process.is_unheard:
            raise Unavailable("the log does not answer")
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

    async def remaining(self) -> int | None:
        return None

    async def admit(self) -> None:
        self._process.step()

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self._process.step()
        # Others come between a reply's record and its charge, as they do where a charge is written to a store.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._process.step()
        check()
        tokens = spent.usage.input_tokens + spent.usage.output_tokens
        self._world.charges.setdefault((spent.lane, spent.number), tokens)
        self._process.step()


class WorldMarks:
    """Whether the seat was onboarded, as the fleet's record has it."""

    def __init__(self, world: World, process: Process, clock: VirtualClock) -> None:
        self._process = process
        self._marks = Onboardings(MemoryRecordStore(world.marks), clock)

    async def due(self, turn_id: str) -> str:
        self._process.step()
        claim = await self._marks.claim("agent-1", PLACE, claimant=turn_id)
        self._process.step()
        return PLACE if claim is OnboardingClaim.CLAIMED else ""

    async def mark(self, turn_id: str, chain_hash: str) -> bool:
        self._process.step()
        await self._marks.mark("agent-1", chain_hash, claimant=turn_id)
        self._process.step()
        return True

    async def give_back(self, turn_id: str) -> None:
        self._process.step()
        await self._marks.give_back("agent-1", claimant=turn_id)
        self._process.step()


class Planner:
    """A model that goes by the conversation alone: two comments, one look inside, an end."""

    def __init__(
        self,
        world: World,
        process: Process,
        plan: Sequence[Callable[[ModelRequest], ModelReply]],
        *,
        is_real: bool = False,
    ) -> None:
        self._world = world
        self._process = process
        self._plan = plan
        self._is_real = is_real

    @property
    def keys(self) -> tuple[str, ...]:
        return ("first",)

    @property
    def is_real(self) -> bool:
        return self._is_real

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        self._process.step()
        require_valid(request)
        self._world.model_calls += 1
        self._world.requests.append(request)
        said = sum(isinstance(message, AssistantMessage) for message in request.messages)
        if self._world.model_calls == self._world.note_at:
            self._world.accepted = await self._world.box.accept(NOTE)
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


def reviewer_plan(world: World, process: Process) -> Planner:
    return Planner(world, process, (lambda _: reviews(),))


@dataclass(frozen=True)
class Scene:
    """What is played: the models by whom they speak for, what is owed, and within which bounds."""

    executor: Sequence[Callable[[ModelRequest], ModelReply]] = PLAN
    without: str = ""
    reply: Reply = Reply.ENGINE
    config: TurnConfig = field(default_factory=TurnConfig)
    onboarder: Sequence[Callable[[ModelRequest], ModelReply]] = ()
    judge: Sequence[Callable[[ModelRequest], ModelReply]] = ()
    workers: Mapping[str, Sequence[Callable[[ModelRequest], ModelReply]]] = field(
        default_factory=dict[str, Sequence[Callable[[ModelRequest], ModelReply]]]
    )


PLACE = "place-1"
PLAIN = Scene()
NEW = Scene(
    onboarder=(
        lambda _: says("", call("list_mcp_server_tools", server="web"), call("activate_tool", name="search")),
        lambda _: says("I look around.", call("search", q="around")),
        lambda _: says("", call("mark_onboarded")),
    )
)
"""A seat that is new at its place: it looks around outside, and then works."""
CUT_OFF = Scene(onboarder=(lambda _: says("", stop=StopReason.MAX_TOKENS),))
"""One whose looking around ends without the mark."""
WHOLE = Scene(
    executor=(
        lambda _: says(
            "",
            call("activate_tool", name="comment"),
            call("delegate", tasks=[_task("x"), _task("y"), _task("z", after=["x", "y"])]),
        ),
        lambda _: submits("claimed too early", deliveries=["comment"]),
        lambda _: says("first", call("comment", text="one")),
        lambda _: says("", call("notes", page=2)),
        lambda _: submits("it is there", deliveries=["comment"]),
    ),
    reply=Reply.TOOL,
    config=TurnConfig(max_tool_rounds=4, delegation=DelegationConfig(max_parallel=2)),
    judge=(lambda _: says("extend 2\nIt is nearly there."),),
    workers={
        "x": (lambda _: says("", call("search", q="x")), lambda _: says("", call("submit_result", result="X"))),
        "y": (
            lambda _: says("", call("notes")),
            lambda _: says("", call("search", q="y")),
            lambda _: says("", call("submit_result", result="Y")),
        ),
        "z": (lambda _: says("", call("submit_result", result="Z")),),
    },
)
"""All that a turn can have: workers side by side, a claim that is sent back, a judge, an answer through a tool."""


def _unavailable(_request: ModelRequest) -> ModelReply:
    raise failure()


UNJUDGED = Scene(
    executor=(
        lambda _: says("", call("activate_tool", name="comment")),
        lambda _: says("first", call("comment", text="one")),
        lambda _: says("second", call("notes")),
    ),
    config=TurnConfig(max_tool_rounds=3),
    judge=(_unavailable,),
)
"""An execution that is out of rounds, and a judge that does not answer."""


def _task(name: str, after: Sequence[str] = ()) -> dict[str, object]:
    tools = ["search", "notes"]
    return {"id": name, "prompt": name, "system_prompt": "You look.", "tools": tools, "after": list(after)}


class WorkerPlanner(Planner):
    """Speaks for each worker by the task that it was given, after a moment, so that others come between."""

    def __init__(self, world: World, process: Process, scene: Scene) -> None:
        super().__init__(world, process, ())
        self._scene = scene

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        opening = request.messages[0]
        assert isinstance(opening, UserMessage)
        planner = Planner(self._world, self._process, self._scene.workers[opening.text.removeprefix("## Task\n")[0]])
        await asyncio.sleep(0)
        return await planner.complete(request)


async def live(
    world: World, process: Process, *, idempotent: Hint = Hint.UNKNOWN, scene: Scene = PLAIN
) -> TurnOutcome | None:
    """One process's life, see :func:`_live`; of workers killed side by side one death is told."""
    try:
        return await _live(world, process, idempotent, scene)
    except BaseExceptionGroup as group:
        if group.subgroup(Killed) is None:
            raise
        raise Killed from group


async def _live(world: World, process: Process, idempotent: Hint, scene: Scene) -> TurnOutcome | None:
    """One process's life: take the seat's journal over, go on with what is there or begin, end the turn.

    Returns the outcome; ``None`` where the turn had ended before. Raises ``Killed``.
    """
    clock, ids = born(world)
    journal = journal_of(world, process, clock)
    found = await journal.take_over()
    turn, trigger = _turn_of(journal, found.turn, ids, scene)
    if turn is None:
        return None
    run = runner_of(world, process, clock, ids, idempotent=idempotent, scene=scene)
    outcome = await run(trigger, CountingFence(), turn)
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
    world: World,
    process: Process,
    clock: VirtualClock,
    ids: SeededIds,
    *,
    idempotent: Hint = Hint.UNKNOWN,
    scene: Scene = PLAIN,
) -> RunTurn:
    """A real engine whose every step outside is one of the process's."""

    def comment(arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        process.step()
        world.comments[str(arguments["text"])] += 1
        world.places.setdefault(str(arguments["text"]), set()).add(context.ordinal)
        process.step()
        return ToolResult("commented")

    def search(arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        process.step()
        world.searches[str(arguments["q"])] += 1
        process.step()
        return ToolResult(f"found {arguments['q']}")

    def notes(arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        process.step()
        return ToolResult(f"notes as process {world.epoch} reads them{world.long_notes}")

    async def publish(topic: str, event: Event) -> Event:
        process.step()
        if isinstance(event.data, AgentTurnCompleted):
            # Stored once under its id, as every event is.
            world.completions.setdefault(event.id, event.data)
        if isinstance(event.data, AgentPhaseCompleted):
            world.phases.setdefault(event.id, event.data)
        if isinstance(event.data, AgentTurnSteered):
            world.steers.setdefault(event.id, event.data)
        return event

    engine = TurnEngine(publish, clock, ids, scene.config)
    tools = (
        PlayedTool("comment", comment, server="board", annotations=Annotations(idempotent=idempotent)),
        PlayedTool("notes", notes),
        PlayedTool("search", search, server="web", annotations=_OPEN_READ),
    )

    async def run(trigger: Trigger, fence: Fence, journal: TurnJournal) -> TurnOutcome:
        world.box = NoteBox(journal.noted)
        setup = TurnSetup(
            notes=world.box,
            seat=SeatBrief(handle="ceo", name="Chief Executive", agent_id="agent-1"),
            company=CompanyBrief(name="Acme"),
            executor=Planner(world, process, scene.executor),
            reviewer=reviewer_plan(world, process),
            onboarder=Planner(world, process, scene.onboarder, is_real=True) if scene.onboarder else None,
            onboarding=WorldMarks(world, process, clock),
            revision=world.revision,
            judge=Planner(world, process, scene.judge) if scene.judge else None,
            subagent=WorkerPlanner(world, process, scene) if scene.workers else None,
            tools=Surface(*(tool for tool in tools if tool.row.name != scene.without)),
            meter=world.meter(world, process),
        )
        return await engine.run(trigger, fence, setup, journal)

    return run


def _turn_of(
    journal: SeatJournal, last: LastTurn | None, ids: SeededIds, scene: Scene
) -> tuple[JournalledTurn | None, Trigger]:
    told = (event_of(_ASKED),) if scene.reply is Reply.TOOL else ()
    events = told if last is None else tuple(decode(bytes(raw)) for raw in last.opened.events)
    trigger = trigger_from(*events, reply=scene.reply)
    fate = fate_of(last, worked=(), event_ids=[each.id for each in trigger.events], stopped=False)
    match fate:
        case Fate.FINISH:
            return None, trigger
        case Fate.NOTHING | Fate.LEAVE | Fate.GIVE_UP:
            return JournalledTurn(journal, trigger, TurnId(str(ids.uuid()))), trigger
        case _:
            assert last is not None
            return JournalledTurn(journal, trigger, TurnId(last.opened.turn_id), last), trigger


__all__ = ["Decision", "Killed", "Process", "World", "WorldMeter", "born", "journal_of", "live", "runner_of"]
