"""The shapes of the API's answers and questions, for validation and for OpenAPI; views come from the node's face."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from crewlet.base import limits
from crewlet.events import Category
from crewlet.node.face import MailboxView, SeatView, TurnView
from crewlet.node.record_views import SlotView

__all__ = [
    "CompanyApplied",
    "CompanyChecked",
    "DeadLetterContent",
    "DeadLetterDropped",
    "DeadLetterList",
    "DeadLetterQuery",
    "DeadLetterRedriven",
    "DeadLetterRow",
    "EventPage",
    "EventQuery",
    "EventRecord",
    "EventRow",
    "Mailboxes",
    "MessageAccepted",
    "NewCompany",
    "NewMessage",
    "NewNote",
    "NewPause",
    "NotReady",
    "Ready",
    "RecordQuery",
    "RefusalEnvelope",
    "Seats",
    "Slots",
    "TurnRecord",
]


class RefusalEnvelope(BaseModel):
    """Why a request was refused; further fields help with single codes."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(description="A code for programs, such as `no_such_seat`.")
    message: str = Field(description="A sentence for people.")


class Ready(BaseModel):
    """The node should be sent work."""

    ready: bool = True


class NotReady(RefusalEnvelope):
    """The node should not be sent work, and why."""

    reasons: list[str]


class NewMessage(BaseModel):
    """What an operator writes to a seat."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(min_length=1, pattern=r"\S", description="What the seat should do or answer.")]


class NewPause(BaseModel):
    """Why a person pauses a seat, and whether what it works on ends too."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: Annotated[
        str, Field(max_length=limits.PAUSE_REASON_MAX_CHARS, description="Shown wherever the pause is.")
    ] = ""
    stop_running: Annotated[bool, Field(description="End the running turn at its next step, for good.")] = False


class NewNote(BaseModel):
    """What a person tells a running turn."""

    model_config = ConfigDict(extra="forbid", strict=True)

    note: Annotated[
        str,
        Field(
            min_length=1,
            max_length=limits.STEER_NOTE_MAX_CHARS,
            pattern=r"\S",
            description="What its model reads.",
        ),
    ]
    note_id: Annotated[
        str, Field(max_length=100, pattern=r"^[!-~]*$", description="The caller's own id of this note, for repeats.")
    ] = ""


class NewCompany(BaseModel):
    """A whole company document."""

    model_config = ConfigDict(extra="forbid", strict=True)

    document: Annotated[str, Field(min_length=1, description="The document's text, YAML or JSON.")]


class SeatChanges(BaseModel):
    """Handles of seats that came, that left, and that are not what they were."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class CompanyWarning(BaseModel):
    """Something in a document that has no effect."""

    path: str
    problem: str
    remedy: str
    line: int


class CompanyChecked(BaseModel):
    """What a document changes about the company in force."""

    company: str
    seats: SeatChanges
    tools_renewed: list[str] = Field(description="Seats whose own tool servers changed: they are established anew.")
    models: list[str] = Field(description="Entries of `providers.llm` that came, left or changed.")
    tool_servers: list[str] = Field(description="Entries of `mcp_servers` that came, left or changed.")
    ceilings: bool = Field(description="Whether a token ceiling changed, or the clock that cuts the windows.")
    warnings: list[CompanyWarning]


class CompanyApplied(CompanyChecked):
    """What a document changed, and its number."""

    epoch: int
    trouble: str = Field(description="What failed here once the document was in force; empty where nothing did.")
    lasts: bool = Field(description="False where the next start of this node runs its own file again.")


class MessageAccepted(BaseModel):
    """The broker has the message."""

    id: str
    href: str = Field(description="Where to read how the message stands.")
    trace_id: str = Field(description="The trace that everything the message causes belongs to.")


class Seats(BaseModel):
    """Every seat of the company, people included, in the order of its document."""

    seats: list[SeatView]


class EventQuery(BaseModel):
    """Which events, newest first; what is left out is any."""

    model_config = ConfigDict(extra="forbid")

    type: list[str] = Field(
        default_factory=list[str], max_length=limits.EVENT_FILTER_TYPES_MAX, description="Repeat it for several types."
    )
    category: Category | None = None
    seat: str = Field("", description="A handle; events that are about this seat.")
    trace_id: str = ""
    turn_id: str = ""
    conversation: str = Field("", description="The `conversation_key` of a turn; events of all turns in it.")
    failed: bool | None = None
    since: datetime | None = Field(None, description="Included. UTC where no zone is given.")
    until: datetime | None = Field(None, description="Not included. UTC where no zone is given.")
    limit: int = Field(50, ge=1, le=limits.EVENT_PAGE_MAX)
    before: str = Field("", description="The `next` of an earlier page.")


class EventRow(BaseModel):
    """The facts of one event."""

    id: str
    type: str
    timestamp: datetime
    source: str
    actor: str
    summary: str
    category: str
    trace_id: str
    span_id: str
    parent_span_id: str
    topic: str
    failed: bool
    node: str
    turn_id: str
    work_key: str
    agent_handle: str
    tags: dict[str, str] = Field(
        description="What it is filed under besides, where it is: `actor_seat`, `tool`, `dir`, `integration`,"
        " `conversation_key`, `partition_key`."
    )


class EventRecord(EventRow):
    """One event with all that was published."""

    payload: dict[str, Any] = Field(description="The event as it was published: envelope and body, flat.")


class EventPage(BaseModel):
    """A page of the event log, newest first."""

    events: list[EventRow]
    next: str | None = Field(description="Give it as `before` for the page after; null is the end.")


class TurnRecord(BaseModel):
    """One run of a turn: how it stands, and every event of it, oldest first."""

    turn: TurnView | None = Field(description="Null where the run's beginning is not in this node's log any more.")
    events: list[EventRecord]


class Slots(BaseModel):
    """Every slot of the coordination store."""

    slots: list[SlotView]


class RecordQuery(BaseModel):
    """Which records of a slot, and how many."""

    model_config = ConfigDict(extra="forbid")

    key_class: str = Field("", alias="class", description="Only keys that begin with this.")
    after: str = Field("", description="Only keys behind this one: the `next` of an earlier page.")
    limit: int = Field(limits.RECORD_PAGE, ge=1, le=limits.RECORD_PAGE_MAX)


class Mailboxes(BaseModel):
    """Every durable mailbox, by topic."""

    mailboxes: list[MailboxView]


class DeadLetterQuery(BaseModel):
    """Which letters, newest first; what is left out is any."""

    model_config = ConfigDict(extra="forbid")

    seat: str = Field("", description="A handle; letters of this seat's topics.")
    topic: str = Field("", description="A topic, or a pattern of topics with `*` and `>`.")
    limit: int = Field(50, ge=1, le=limits.DEAD_LETTER_PAGE_MAX)
    before: str = Field("", description="The `next` of an earlier page.")


class DeadLetterRow(BaseModel):
    """One message that was given up, without what it holds. What names the event is empty where it is none."""

    id: str
    at: datetime = Field(description="When it was given up.")
    topic: str
    group: str
    seat: str
    reason: str
    deliveries: int
    stream: str = Field(description="Where the message had been stored, with `stream_seq`.")
    stream_seq: int
    size_bytes: int
    event_id: str
    event_type: str
    trace_id: str
    summary: str


class DeadLetterContent(DeadLetterRow):
    """One letter with its message."""

    payload: Any = Field(description="The message as JSON, or as text where it is no JSON.")


class DeadLetterList(BaseModel):
    """A page of letters, newest first; it may be empty and not the last."""

    letters: list[DeadLetterRow]
    next: str | None = Field(description="Give it as `before` for older ones; null is the end.")


class DeadLetterRedriven(BaseModel):
    """The broker has the message again, and the letter is removed."""

    id: str
    topic: str
    event_id: str = Field(description="The event's own id; empty where the message is no event.")


class DeadLetterDropped(BaseModel):
    """The letter is removed."""

    id: str
