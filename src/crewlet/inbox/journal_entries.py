"""What a seat's journal keeps, entry by entry, as JSON that only grows (D10, D11)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from crewlet.base.errors import CrewletError
from crewlet.inbox.journal_messages import WireMessage, read_message, wire_message
from crewlet.inbox.turn_journal import Note
from crewlet.llm import ModelReply, StopReason, Usage
from crewlet.tools import ToolResult

__all__ = [
    "CameOut",
    "Ended",
    "Entry",
    "Intended",
    "Noted",
    "Opened",
    "Replied",
    "Resumed",
    "UnreadableEntry",
    "WireReply",
    "WireResult",
    "decode_entry",
    "encode_entry",
    "read_reply",
    "read_result",
    "wire_reply",
    "wire_result",
]


class UnreadableEntry(CrewletError):
    """A journal's entry that this build cannot read."""


class WireReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's reply."""

    message: WireMessage
    stop_reason: str = "end"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str = ""
    provider_key: str = ""
    cost_usd: float | None = None
    refusal_category: str = ""
    refusal_explanation: str = ""


class WireResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call came to."""

    text: str = ""
    is_error: bool = False
    ends_turn: bool = False
    ask: str = ""
    unknown: bool = False


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    at: datetime


class Opened(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="opened"):
    """A turn began: on which events (whole), with which prompts, under which revision of the document.

    ``thread`` is what its prompt showed of the chat around it, ``shown`` the identities of the messages that waited
    there; they are worked with the turn. ``owes`` is the surface that a tool has to carry its answer to. ``spent`` are
    those of the events that are dead letters once they are handed back. ``onboarding`` is the place in the company
    that its seat is onboarded at first; an older record has none, and no onboarding.
    """

    turn_id: str
    work_key: str = ""
    revision: str = ""
    events: tuple[msgspec.Raw, ...] = ()
    headroom: int = 0
    prompts: dict[str, str] = {}
    thread: str = ""
    shown: tuple[str, ...] = ()
    owes: str = ""
    spent: tuple[str, ...] = ()
    onboarding: str = ""


class Resumed(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="resumed"):
    """Somebody took the journal over; from here on its predecessor is refused."""

    writer: str = ""
    epoch: int = 0


class Replied(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="replied"):
    """A model answered: where, its number over the whole turn, what it was shown since the last, what it said."""

    phase: str
    round_num: int
    number: int
    shown: tuple[WireMessage, ...] = ()
    reply: WireReply
    notes: tuple[Note, ...] = ()


class Noted(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="noted"):
    """Somebody told the running turn something: its next round is to show it, whoever runs that."""

    note: Note


class Intended(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="intended"):
    """A call that reaches outside was about to be made."""

    phase: str
    round_num: int
    index: int
    tool: str = ""
    digest: str = ""


class CameOut(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="came_out"):
    """What such a call came to."""

    phase: str
    round_num: int
    index: int
    result: WireResult


class Ended(_Entry, frozen=True, kw_only=True, omit_defaults=True, tag="ended"):
    """The turn ended: what the queue is told (``ack``, ``nak`` or ``defer``), and the ids to record as worked."""

    turn_id: str = ""
    outcome: str = "ack"
    decision: str = ""
    ids: tuple[str, ...] = ()


Entry = Opened | Resumed | Replied | Noted | Intended | CameOut | Ended

_decoder = msgspec.json.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """The entry's JSON."""
    return msgspec.json.encode(entry)


def decode_entry(raw: bytes) -> Entry:
    """The entry in ``raw``. Raises ``UnreadableEntry``, also for a kind that only a newer build knows."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableEntry(str(error)) from error


def wire_reply(reply: ModelReply) -> WireReply:
    """A reply as it is kept."""
    usage = reply.usage
    return WireReply(
        message=wire_message(reply.message),
        stop_reason=str(reply.stop_reason),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        model=reply.model,
        provider_key=reply.provider_key,
        cost_usd=reply.cost_usd,
        refusal_category=reply.refusal_category,
        refusal_explanation=reply.refusal_explanation,
    )


def read_reply(wire: WireReply) -> ModelReply:
    """A reply as it was. Raises ``UnreadableEntry``."""
    message: Any = read_message(wire.message)
    try:
        stop_reason = StopReason(wire.stop_reason)
    except ValueError:
        raise UnreadableEntry(f"no stop reason is called {wire.stop_reason!r}") from None
    return ModelReply(
        message=message,
        stop_reason=stop_reason,
        usage=Usage(wire.input_tokens, wire.output_tokens, wire.cache_read_tokens, wire.cache_write_tokens),
        model=wire.model,
        provider_key=wire.provider_key,
        cost_usd=wire.cost_usd,
        refusal_category=wire.refusal_category,
        refusal_explanation=wire.refusal_explanation,
    )


def wire_result(result: ToolResult) -> WireResult:
    """A result as it is kept."""
    return WireResult(
        text=result.text,
        is_error=result.is_error,
        ends_turn=result.ends_turn,
        ask=result.ask,
        unknown=result.unknown,
    )


def read_result(wire: WireResult) -> ToolResult:
    """A result as it was."""
    return ToolResult(wire.text, wire.is_error, wire.ends_turn, wire.ask, wire.unknown)
