"""A conversation's messages as a journal keeps them, each vendor's own blocks included."""

from __future__ import annotations

from typing import Any

import msgspec

from crewlet.llm import AssistantMessage, Message, ToolCall, ToolResultMessage, UserMessage, packed

__all__ = ["WireMessage", "read_message", "wire_message"]


class WireCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that a reply asked for; ``arguments`` is missing where they were no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None = None
    raw: str = ""


class _Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="user", tag_field="from"):
    text: str


class _Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool", tag_field="from"):
    call_id: str
    name: str = ""
    content: str = ""
    is_error: bool = False


class _Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model", tag_field="from"):
    text: str = ""
    reasoning: str = ""
    calls: tuple[WireCall, ...] = ()
    native: Any = None
    backend: str = ""
    model: str = ""
    bound_to: str = ""


WireMessage = _Told | _Result | _Said


def wire_message(message: Message) -> WireMessage:
    """A message as it is kept."""
    match message:
        case UserMessage():
            return _Told(text=message.text)
        case ToolResultMessage():
            return _Result(
                call_id=message.call_id, name=message.name, content=message.content, is_error=message.is_error
            )
        case AssistantMessage():
            return _Said(
                text=message.text,
                reasoning=message.reasoning,
                calls=tuple(_wire_call(call) for call in message.calls),
                native=packed(message.native),
                backend=message.backend,
                model=message.model,
                bound_to=message.bound_to,
            )


def read_message(wire: WireMessage) -> Message:
    """A message as it was; a vendor's own blocks stay packed until they are sent again."""
    match wire:
        case _Told():
            return UserMessage(wire.text)
        case _Result():
            return ToolResultMessage(wire.call_id, wire.name, wire.content, is_error=wire.is_error)
        case _Said():
            return AssistantMessage(
                text=wire.text,
                reasoning=wire.reasoning,
                calls=tuple(ToolCall(call.id, call.name, call.arguments, call.raw) for call in wire.calls),
                native=wire.native,
                backend=wire.backend,
                model=wire.model,
                bound_to=wire.bound_to,
            )


def _wire_call(call: ToolCall) -> WireCall:
    arguments = None if call.arguments is None else dict(call.arguments)
    return WireCall(id=call.id, name=call.name, arguments=arguments, raw=call.raw)
