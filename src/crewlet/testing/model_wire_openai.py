"""OpenAI's two wire formats, from the server's side: Chat Completions and Responses, streamed and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from crewlet.llm import AssistantMessage, Message, ModelRequest, ToolCall, ToolResultMessage, ToolSpec, UserMessage
from crewlet.testing.model_replies import Answer, CallOut, HttpError
from crewlet.testing.model_wire_parts import Json, pieces, streamed, text_of

__all__ = [
    "chat_body",
    "chat_events",
    "chat_request",
    "error_body",
    "responses_body",
    "responses_events",
    "responses_request",
]

_CREATED = 1_700_000_000


def error_body(error: HttpError) -> str:
    """An error as OpenAI words it."""
    return json.dumps(
        {"error": {"message": error.message, "type": error.type or None, "code": error.code or None, "param": None}}
    )


def chat_body(answer: Answer, model: str) -> str:
    """A whole chat completion."""
    message: Json = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_chat_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": _chat_stop(answer), "logprobs": None}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": _CREATED,
            "model": model,
            "choices": [choice],
            "usage": _chat_usage(answer),
        }
    )


def chat_events(answer: Answer, model: str) -> Iterator[str]:
    """The same as server-sent events; the last two, the stop and the usage, are missing from a reply that is cut."""

    def event(delta: Json, stop: str | None = None) -> str:
        return streamed(_chunk(model, [{"index": 0, "delta": delta, "finish_reason": stop, "logprobs": None}]))

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(answer.thinking):
        yield event({"reasoning_content": piece})
    for piece in pieces(answer.text):
        yield event({"content": piece})
    if answer.refusal:
        yield event({"refusal": answer.refusal})
    for index, call in enumerate(answer.calls):
        yield event({"tool_calls": [{"index": index, **_chat_call(call, arguments="")}]})
        for piece in pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if answer.cut or answer.reset:
        return
    yield event({}, _chat_stop(answer))
    yield streamed({**_chunk(model, []), "usage": _chat_usage(answer)})
    yield "data: [DONE]\n\n"


def _chunk(model: str, choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": model,
        "choices": choices,
    }


def _chat_call(call: CallOut, arguments: str | None = None) -> Json:
    written = call.arguments if arguments is None else arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": written}}


def _chat_stop(answer: Answer) -> str | None:
    if answer.stop:
        return None if answer.stop == "none" else answer.stop
    return "tool_calls" if answer.calls else "stop"


def _chat_usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cache_read_tokens},
    }


def chat_request(body: Json) -> ModelRequest:
    """What the client asks, in neutral form."""
    system: list[str] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for item in cast("list[Json]", body["messages"]):
        match item["role"]:
            case "system" | "developer":
                system.append(text_of(item["content"]))
            case "assistant":
                calls = tuple(_call_in(call["id"], call["function"]) for call in item.get("tool_calls") or ())
                names.update({call.id: call.name for call in calls})
                messages.append(AssistantMessage(text_of(item.get("content")), calls=calls))
            case "tool":
                call_id = item["tool_call_id"]
                messages.append(ToolResultMessage(call_id, names.get(call_id, ""), text_of(item["content"])))
            case _:
                messages.append(UserMessage(text_of(item["content"])))
    tools = tuple(_tool_in(tool["function"]) for tool in body.get("tools") or ())
    return ModelRequest("\n".join(system), tuple(messages), tools)


def responses_body(answer: Answer, model: str) -> str:
    """A whole response."""
    return json.dumps(_response(answer, model, status=_responses_status(answer), output=_output(answer)))


def responses_events(answer: Answer, model: str) -> Iterator[str]:
    """The same as server-sent events; the completing one is missing from a reply that is cut."""
    numbers = iter(range(10_000))

    def event(kind: str, **fields: object) -> str:
        return streamed({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    yield event("response.created", response=_response(answer, model, status="in_progress", output=[]))
    output = _output(answer)
    for index, item in enumerate(output):
        place: Json = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            yield event("response.output_item.added", output_index=index, item={**item, "content": []})
            part = item["content"][0]
            place |= {"content_index": 0}
            if part["type"] == "refusal":
                yield event("response.refusal.delta", delta=answer.refusal, **place)
                yield event("response.refusal.done", refusal=answer.refusal, **place)
            else:
                for piece in pieces(answer.text):
                    yield event("response.output_text.delta", delta=piece, logprobs=[], **place)
                yield event("response.output_text.done", text=answer.text, logprobs=[], **place)
        elif item["type"] == "function_call":
            yield event("response.output_item.added", output_index=index, item={**item, "arguments": ""})
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", delta=piece, **place)
            yield event(
                "response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **place
            )
        else:
            opened: Json = {**item, "summary": [], "encrypted_content": None}
            yield event("response.output_item.added", output_index=index, item=opened)
            place |= {"summary_index": 0}
            part = {"type": "summary_text", "text": ""}
            yield event("response.reasoning_summary_part.added", part=part, **place)
            for piece in pieces(answer.thinking):
                yield event("response.reasoning_summary_text.delta", delta=piece, **place)
            yield event("response.reasoning_summary_text.done", text=answer.thinking, **place)
        yield event("response.output_item.done", output_index=index, item=item)
    if answer.cut or answer.reset:
        return
    status = _responses_status(answer)
    yield event(f"response.{status}", response=_response(answer, model, status=status, output=output))


def _response(answer: Answer, model: str, *, status: str, output: list[Json]) -> Json:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.stop)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": _CREATED,
        "model": model,
        "status": status,
        "output": output,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cache_read_tokens, "cache_write_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


def _output(answer: Answer) -> list[Json]:
    output: list[Json] = []
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        output.append({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": answer.signature})
    if answer.text or answer.refusal:
        part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        if answer.refusal:
            part = {"type": "refusal", "refusal": answer.refusal}
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    for index, call in enumerate(answer.calls):
        output.append(
            {
                "id": f"fc_{index}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
        )
    return output


def _responses_status(answer: Answer) -> str:
    return "incomplete" if answer.stop in {"length", "content_filter"} else "completed"


def responses_request(body: Json) -> ModelRequest:
    """What the client asks, in neutral form."""
    system = [text_of(body.get("instructions"))] if body.get("instructions") else []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for item in cast("list[Json]", body["input"]):
        match item.get("type", "message"):
            case "function_call":
                names[item["call_id"]] = item["name"]
                messages.append(AssistantMessage(calls=(_call_in(item["call_id"], item),)))
            case "function_call_output":
                call_id = item["call_id"]
                messages.append(ToolResultMessage(call_id, names.get(call_id, ""), text_of(item["output"])))
            case "message" if item["role"] == "assistant":
                messages.append(AssistantMessage(text_of(item["content"])))
            case "message" if item["role"] == "user":
                messages.append(UserMessage(text_of(item["content"])))
            case "message":
                system.append(text_of(item["content"]))
            case _:
                pass
    return ModelRequest("\n".join(system), tuple(messages), tuple(_tool_in(tool) for tool in body.get("tools") or ()))


def _call_in(call_id: str, function: Json) -> ToolCall:
    return ToolCall(call_id, function["name"], None, function["arguments"])


def _tool_in(tool: Json) -> ToolSpec:
    return ToolSpec(tool["name"], tool.get("description") or "", tool.get("parameters") or {})
