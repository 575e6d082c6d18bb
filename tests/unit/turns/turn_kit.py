"""What the turn tests share: a model that plays its part, a tool surface, a fence that counts, a keeper of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from crewlet.base.errors import Fenced
from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId, WorkKey
from crewlet.base.trace import Trace
from crewlet.events import Body, Event, decode, encode, new_event
from crewlet.events.types import AgentPhaseCompleted, AgentTurnCompleted, ExternalNotification
from crewlet.inbox import NoJournal, Reply, Trigger, TurnJournal, TurnOutcome
from crewlet.llm import (
    AssistantMessage,
    FailureKind,
    Fallback,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
    StopReason,
    ToolCall,
    Usage,
)
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import Annotations, CallContext, Hint, ServerSummary, Tool, ToolResult, ToolRow
from crewlet.tracing import SpanSink, Tracer
from crewlet.turns import CompanyBrief, NoteBox, SeatBrief, TurnConfig, TurnEngine, TurnSetup

B = TypeVar("B", bound=Body)

TRIGGER_TRACE = Trace("a" * 32, "b" * 16)
USAGE = Usage(input_tokens=10, output_tokens=2, cache_read_tokens=4, cache_write_tokens=1)


def call(tool: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id=f"call-{tool}-{len(arguments)}", name=tool, arguments=arguments)


def says(
    text: str, *calls: ToolCall, stop: StopReason | None = None, reasoning: str = "", model: str = "model-1"
) -> ModelReply:
    numbered = tuple(ToolCall(f"{each.id}-{n}", each.name, each.arguments, each.raw) for n, each in enumerate(calls))
    return ModelReply(
        message=AssistantMessage(text=text, calls=numbered, reasoning=reasoning),
        stop_reason=stop or (StopReason.TOOL_USE if calls else StopReason.END),
        usage=USAGE,
        model=model,
        provider_key="first",
    )


def submits(summary: str = "the answer", outcome: str = "delivered", **more: object) -> ModelReply:
    return says("", call("submit_work", outcome=outcome, summary=summary, **more))


def reviews(decision: str = "done", **more: object) -> ModelReply:
    return says("", call("submit_review", decision=decision, **more), model="model-2")


def failure(kind: FailureKind = FailureKind.SERVER) -> ModelFailure:
    return ModelFailure(kind, f"the vendor said {kind}", provider_key="first")


Line = ModelReply | Exception | Callable[[ModelRequest], ModelReply]


class PlayedModel:
    """Plays its lines in order: a reply, an error, or a function of the request. Keeps every request it got."""

    def __init__(self, *lines: Line, deltas: Sequence[str] = (), fallbacks: Sequence[Fallback] = ()) -> None:
        self._lines = list(lines)
        self._deltas = deltas
        self._fallbacks = fallbacks
        self.requests: list[ModelRequest] = []

    @property
    def keys(self) -> tuple[str, ...]:
        return ("first", "second")

    @property
    def is_real(self) -> bool:
        return False

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        self.requests.append(request)
        for each in self._fallbacks:
            assert on_fallback is not None
            on_fallback(each)
        if on_delta is not None:
            for piece in self._deltas:
                on_delta(piece)
        line = self._lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, ModelReply) else line(request)


class PlayedTool:
    """A tool that answers with its result, raises its error, or does what its function says."""

    def __init__(
        self,
        name: str,
        does: ToolResult | Exception | Callable[[Mapping[str, object], CallContext], ToolResult] | None = None,
        *,
        server: str = "",
        schema: Mapping[str, object] | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self._does = does or ToolResult("done")
        self._row = ToolRow(
            name=name,
            description=f"The tool {name}.",
            input_schema=schema or {"type": "object"},
            origin=f"mcp:{server}" if server else "builtin",
            server=server,
            annotations=annotations or Annotations(),
        )
        self.calls: list[tuple[Mapping[str, object], CallContext]] = []

    @property
    def row(self) -> ToolRow:
        return self._row

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        self.calls.append((arguments, context))
        if isinstance(self._does, Exception):
            raise self._does
        return self._does if isinstance(self._does, ToolResult) else self._does(arguments, context)


def ask_tool(channel: str = "channel-1") -> PlayedTool:
    result = ToolResult("asked", ends_turn=True, ask=channel)
    return PlayedTool("a2a_ask", result, annotations=Annotations(open_world=Hint.YES))


class Surface:
    """The tools of a seat: those without a server are built in."""

    def __init__(self, *tools: PlayedTool, failed_servers: Sequence[str] = ()) -> None:
        self._tools = tools
        self._failed = failed_servers

    def builtins(self) -> list[Tool]:
        return [tool for tool in self._tools if not tool.row.server]

    def servers(self) -> list[ServerSummary]:
        names = dict.fromkeys(tool.row.server for tool in self._tools if tool.row.server)
        served = [ServerSummary(name, len(self.server_tools(name))) for name in names]
        return [*served, *(ServerSummary(name, 0, "it did not start") for name in self._failed)]

    def server_tools(self, server: str) -> list[ToolRow]:
        return [tool.row for tool in self._tools if tool.row.server == server]

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.row.name == name), None)


class CountingFence:
    """A fence that closes at its ``closes_at``-th check (from 1)."""

    def __init__(self, closes_at: int = 0, error: Fenced | None = None) -> None:
        self._closes_at = closes_at
        self._error = error or Fenced("the seat moved")
        self.checks = 0

    @property
    def epoch(self) -> int:
        return 7

    def check(self) -> None:
        self.checks += 1
        if self.checks == self._closes_at:
            raise self._error


def operator_says(text: str = "what now?", **more: Any) -> Event:  # noqa: ANN401 - any field of the body
    body = ExternalNotification(
        integration="operator", agent_handle="ceo", sender="operator:local", body=text, salient_body=text, **more
    )
    return event_of(body)


def event_of(body: Body) -> Event:
    return new_event(body, trace=TRIGGER_TRACE, now=datetime(2030, 1, 1, tzinfo=UTC), ids=SeededIds(1))


def trigger_from(*events: Event, reply: Reply = Reply.ENGINE, depth: int = 0, headroom: int = 5) -> Trigger:
    return Trigger(
        handle="ceo",
        events=events or (operator_says(),),
        work_key=WorkKey("work-1"),
        reply=reply,
        trace=TRIGGER_TRACE,
        conversation_key="conversation-1",
        delegation_depth=depth,
        task="what now?",
        headroom=headroom,
    )


@dataclass
class Stage:
    """One engine and everything around it. ``refuse`` decides which publishes fail, and how."""

    executor: PlayedModel = field(default_factory=lambda: PlayedModel(submits()))
    reviewer: PlayedModel = field(default_factory=lambda: PlayedModel(reviews()))
    tools: Sequence[PlayedTool] = ()
    failed_servers: Sequence[str] = ()
    config: TurnConfig = field(default_factory=TurnConfig)
    sink: SpanSink | None = None
    journal: TurnJournal | None = None
    notes: NoteBox = field(default_factory=NoteBox)
    refuse: Callable[[Event], Exception | None] = lambda _event: None
    published: list[Event] = field(default_factory=list[Event])
    live: list[Event] = field(default_factory=list[Event])

    async def run(self, trigger: Trigger | None = None, fence: Fence | None = None) -> TurnOutcome:
        clock, ids = VirtualClock(), SeededIds()
        tracer = Tracer(clock, ids, self.sink)
        engine = TurnEngine(self._publish, clock, ids, self.config, tracer=tracer, publish_live=self._publish_live)
        journal = self.journal or NoJournal(TurnId(str(ids.uuid())))
        return await engine.run(trigger or trigger_from(), fence or CountingFence(), self.setup(), journal)

    def setup(self) -> TurnSetup:
        return TurnSetup(
            seat=SeatBrief(handle="ceo", name="Chief Executive", agent_id="agent-1", goal="Lead."),
            company=CompanyBrief(name="Acme"),
            executor=self.executor,
            reviewer=self.reviewer,
            tools=Surface(*self.tools, failed_servers=self.failed_servers),
            notes=self.notes,
        )

    def all_of(self, body: type[B]) -> list[B]:
        return [event.data for event in self.published if isinstance(event.data, body)]

    def only(self, body: type[B]) -> B:
        found = self.all_of(body)
        assert len(found) == 1, f"{len(found)} events of {body.__name__}"
        return found[0]

    def phase(self, name: str, iteration: int = 1) -> AgentPhaseCompleted:
        found = [p for p in self.all_of(AgentPhaseCompleted) if (p.phase, p.iteration) == (name, iteration)]
        assert len(found) == 1, f"{len(found)} records of {name} {iteration}"
        return found[0]

    @property
    def completed(self) -> AgentTurnCompleted:
        return self.only(AgentTurnCompleted)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.published if event.type != "agent_turn_progress"]

    async def _publish(self, topic: str, event: Event) -> Event:
        assert topic == f"crewlet.events.{event.type}"
        refusal = self.refuse(event)
        if refusal is not None:
            raise refusal
        self.published.append(decode(encode(event)))
        return event

    async def _publish_live(self, topic: str, event: Event) -> Event:
        await self._publish(topic, event)
        self.live.append(event)
        return event
