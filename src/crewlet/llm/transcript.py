"""Our neutral conversation as pydantic-ai's messages, and its response as ours. Imports pydantic-ai: load it late."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as VendorRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from crewlet.llm.contract import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from crewlet.llm.native_blocks import unpacked

__all__ = ["binding_of", "parameters_of", "reply_of", "stop_reason_of", "to_vendor"]

_BINDING_DIGITS = 16
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def binding_of(request: ModelRequest) -> str:
    """A digest of what stands before the conversation: the system prompt and the tools, as they are declared."""
    tools = [(tool.name, tool.description, dict(tool.input_schema)) for tool in request.tools]
    declared = json.dumps([request.system, tools], sort_keys=True)
    return hashlib.sha256(declared.encode()).hexdigest()[:_BINDING_DIGITS]


def to_vendor(messages: Sequence[Message], *, backend: str, model: str, bound_to: str = "") -> list[ModelMessage]:
    """The conversation for ``model`` of ``backend``: its own replies go back unchanged, those of others rebuilt.

    Where the model binds its reasoning to what it answered, ``bound_to`` says what that is now. It reads none that
    stands on something else, nor any before that: the reasoning is left out from the front to the last such reply,
    as it was when the replies after it were given.

    What stands between two replies becomes one request, tool results first as they came: a vendor accepts a
    conversation only where each call is answered in the very next message.
    """
    conversation: list[ModelMessage] = []
    pending: list[ModelRequestPart] = []
    unreadable = _unreadable(messages, backend=backend, model=model, bound_to=bound_to)
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            _flush(conversation, pending)
            reply = _reply_for(message, backend=backend, model=model)
            if index < unreadable:
                reply = replace(reply, parts=[part for part in reply.parts if not isinstance(part, ThinkingPart)])
            if reply.parts:
                conversation.append(reply)
        else:
            pending.append(_request_part(message))
    _flush(conversation, pending)
    return conversation


def _unreadable(messages: Sequence[Message], *, backend: str, model: str, bound_to: str) -> int:
    """How many messages from the front hold reasoning that the model would not take back."""
    if not bound_to:
        return 0
    return max(
        (
            index + 1
            for index, message in enumerate(messages)
            if isinstance(message, AssistantMessage)
            and (message.backend, message.model) == (backend, model)
            and message.bound_to != bound_to
        ),
        default=0,
    )


def _flush(conversation: list[ModelMessage], pending: list[ModelRequestPart]) -> None:
    if pending:
        conversation.append(VendorRequest(parts=list(pending)))
        pending.clear()


def _request_part(message: UserMessage | ToolResultMessage) -> ModelRequestPart:
    if isinstance(message, UserMessage):
        return UserPromptPart(message.text)
    return ToolReturnPart(
        tool_name=message.name,
        content=message.content,
        tool_call_id=message.call_id,
        outcome="failed" if message.is_error else "success",
    )


def _reply_for(message: AssistantMessage, *, backend: str, model: str) -> ModelResponse:
    own = message.backend == backend and message.model == model
    native = unpacked(message.native) if own else None
    if native is not None:
        return native
    # Reasoning is signed by, or means something to, its own vendor alone: another one gets what was said and done.
    parts: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
    parts += [ToolCallPart(call.name, _arguments_of(call), tool_call_id=call.id) for call in message.calls]
    return ModelResponse(parts=parts)


def _arguments_of(call: ToolCall) -> str | dict[str, Any]:
    return call.raw if call.arguments is None else dict(call.arguments)


def parameters_of(request: ModelRequest, *, strict: bool | None) -> ModelRequestParameters:
    """The system prompt and the tools; a text answer is always allowed, so that no vendor is told to force a call."""
    return ModelRequestParameters(
        function_tools=[_tool_of(tool, strict=strict) for tool in request.tools],
        instruction_parts=[InstructionPart(content=request.system)] if request.system else [],
        allow_text_output=True,
    )


def _tool_of(tool: ToolSpec, *, strict: bool | None) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        parameters_json_schema=dict(tool.input_schema),
        description=tool.description or None,
        strict=strict,
    )


def reply_of(
    response: ModelResponse,
    *,
    provider_key: str,
    backend: str,
    model: str,
    bound_to: str = "",
    cost_usd: float | None = None,
) -> ModelReply:
    """The vendor's response in neutral form, with its own blocks kept beside.

    A half of a character, which no event, no journal and no vendor takes, is replaced, and its blocks are not kept.
    """
    response, is_whole = _whole(response)
    message = AssistantMessage(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        reasoning="\n\n".join(
            part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content
        ),
        calls=tuple(_call_of(part) for part in response.parts if isinstance(part, ToolCallPart)),
        native=response if is_whole else None,
        backend=backend,
        model=model,
        bound_to=bound_to,
    )
    details = response.provider_details or {}
    return ModelReply(
        message=message,
        stop_reason=stop_reason_of(response),
        usage=Usage(
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cache_read_tokens=response.usage.cache_read_tokens,
            cache_write_tokens=response.usage.cache_write_tokens,
        ),
        model=response.model_name or model,
        provider_key=provider_key,
        cost_usd=cost_usd,
        refusal_category=str(details.get("refusal_category", "")),
        refusal_explanation=str(details.get("refusal", "")),
    )


def _whole(response: ModelResponse) -> tuple[ModelResponse, bool]:
    """The response without halves of characters; whether it had none."""
    parts = [_whole_part(part) for part in response.parts]
    is_whole = all(new is old for new, old in zip(parts, response.parts, strict=True))
    return (response, True) if is_whole else (replace(response, parts=parts), False)


def _whole_part(part: ModelResponsePart) -> ModelResponsePart:
    if isinstance(part, TextPart | ThinkingPart):
        text = _HALF_CHARACTER.sub(_REPLACEMENT, part.content)
        return part if text == part.content else replace(part, content=text)
    if isinstance(part, ToolCallPart):
        return _whole_call(part)
    return part


def _whole_call(part: ToolCallPart) -> ToolCallPart:
    """Its arguments as text tell by themselves; as an object, or escaped in the text, only once they are written."""
    raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    parsed = _object_of(raw)
    written = raw if parsed is None else json.dumps(parsed, ensure_ascii=False)
    name = _HALF_CHARACTER.sub(_REPLACEMENT, part.tool_name)
    if name == part.tool_name and not _HALF_CHARACTER.search(written) and not _HALF_CHARACTER.search(raw):
        return part
    return replace(part, tool_name=name, args=_HALF_CHARACTER.sub(_REPLACEMENT, written))


def _call_of(part: ToolCallPart) -> ToolCall:
    if isinstance(part.args, dict):
        return ToolCall(part.tool_call_id, part.tool_name, part.args, json.dumps(part.args, ensure_ascii=False))
    raw = part.args or ""
    return ToolCall(part.tool_call_id, part.tool_name, _object_of(raw), raw)


def _object_of(raw: str) -> dict[str, object] | None:
    """The JSON object in ``raw``, ``None`` where it is none. A tool without parameters may be called with nothing."""
    if not raw.strip():
        return {}
    try:
        parsed: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", parsed) if isinstance(parsed, dict) else None


_STOP_REASONS = {
    "content_filter": StopReason.REFUSAL,
    "length": StopReason.MAX_TOKENS,
    "tool_call": StopReason.TOOL_USE,
}


def stop_reason_of(response: ModelResponse) -> StopReason:
    """Why the reply ended. A reason that is missing, or that nobody knows, reads as ``end``."""
    raw = (response.provider_details or {}).get("finish_reason")
    if response.state == "suspended" or raw == "pause_turn":
        return StopReason.PAUSED
    if raw == "model_context_window_exceeded":
        return StopReason.CONTEXT_EXCEEDED
    if response.finish_reason == "stop" and any(isinstance(part, ToolCallPart) for part in response.parts):
        # The Responses API, and some compatible servers, end a reply that calls tools with a plain stop.
        return StopReason.TOOL_USE
    return _STOP_REASONS.get(response.finish_reason or "", StopReason.END)
