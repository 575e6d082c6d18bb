"""Anthropic's Messages wire format, from the server's side, streamed and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from crewlet.llm import AssistantMessage, Message, ModelRequest, ToolCall, ToolResultMessage, ToolSpec, UserMessage
from crewlet.testing.model_replies import Answer, HttpError
from crewlet.testing.model_wire_parts import Json, pieces, streamed, text_of

__all__ = ["error_body", "error_event", "messages_body", "messages_events", "messages_request"]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _error(error: HttpError) -> Json:
    kind = error.type or _TYPES.get(error.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_1"}


def error_body(error: HttpError) -> str:
    """An error as Anthropic words it."""
    return json.dumps(_error(error))


def error_event(error: HttpError) -> str:
    """The same, inside a stream that had begun well."""
    return streamed(_error(error), "error")


def messages_body(answer: Answer, model: str) -> str:
    """A whole message."""
    blocks: list[Json] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": answer.signature})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in answer.calls
    ]
    message = _message(answer, model)
    return json.dumps({**message, "content": blocks, "stop_reason": _stop(answer), "stop_details": _details(answer)})


def messages_events(answer: Answer, model: str) -> Iterator[str]:
    """The same as server-sent events; the stop is missing from a reply that is cut."""
    yield streamed({"type": "message_start", "message": _message(answer, model)}, "message_start")
    yield streamed({"type": "ping"}, "ping")
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield streamed({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
        for delta in deltas:
            yield streamed({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        yield streamed({"type": "content_block_stop", "index": index}, "content_block_stop")
    if answer.cut or answer.reset:
        return
    delta: Json = {"stop_reason": _stop(answer), "stop_sequence": None, "stop_details": _details(answer)}
    yield streamed({"type": "message_delta", "delta": delta, "usage": _usage(answer)}, "message_delta")
    yield streamed({"type": "message_stop"}, "message_stop")


def _blocks(answer: Answer) -> Iterator[tuple[Json, list[Json]]]:
    if answer.thinking:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(answer.thinking)]
        deltas.append({"type": "signature_delta", "signature": answer.signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
    for call in answer.calls:
        block: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.arguments)]


def _message(answer: Answer, model: str) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(answer),
    }


def _usage(answer: Answer) -> Json:
    return {
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cache_read_input_tokens": answer.cache_read_tokens,
        "cache_creation_input_tokens": answer.cache_write_tokens,
    }


def _stop(answer: Answer) -> str | None:
    if answer.stop:
        return None if answer.stop == "none" else {"length": "max_tokens"}.get(answer.stop, answer.stop)
    if answer.refusal:
        return "refusal"
    return "tool_use" if answer.calls else "end_turn"


def _details(answer: Answer) -> Json | None:
    if not answer.refusal:
        return None
    return {"type": "refusal", "category": answer.refusal_category or None, "explanation": answer.refusal}


def messages_request(body: Json) -> ModelRequest:
    """What the client asks, in neutral form."""
    messages: list[Message] = []
    names: dict[str, str] = {}
    for item in cast("list[Json]", body["messages"]):
        content = item["content"]
        blocks = cast("list[Json]", [{"type": "text", "text": content}] if isinstance(content, str) else content)
        if item["role"] == "assistant":
            calls = tuple(
                ToolCall(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
            )
            names.update({call.id: call.name for call in calls})
            messages.append(AssistantMessage(text_of(blocks), calls=calls))
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                call_id = block["tool_use_id"]
                is_error = bool(block.get("is_error"))
                messages.append(ToolResultMessage(call_id, names.get(call_id, ""), text_of(block["content"]), is_error))
            elif block["type"] == "text":
                messages.append(UserMessage(block["text"]))
    tools = tuple(
        ToolSpec(tool["name"], tool.get("description") or "", tool["input_schema"]) for tool in body.get("tools") or ()
    )
    return ModelRequest(text_of(body.get("system")), tuple(messages), tools)
