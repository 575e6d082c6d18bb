"""From a tool's result to the text that the model reads. Imports the SDK's types: import it late."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import assert_never

import mcp_types as types

from crewlet.tools.contract import ToolResult
from crewlet.tools.server_call import failed

__all__ = ["NO_OUTPUT", "result_of"]

NO_OUTPUT = "(the tool returned nothing)"


def result_of(result: types.CallToolResult, where: str, clean: Callable[[str], str]) -> ToolResult:
    """The text blocks joined, or the structured content where there are none; of any length.

    What is not text is refused by name: beside text as a remark, alone as an error. ``where`` is ``server/tool``.
    """
    texts, refused = _sorted_out(result.content)
    if not texts and not refused and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    remark = f"(left out, for only text can be passed on: {', '.join(refused)})" if refused else ""
    if result.is_error or (refused and not texts):
        return failed(where, clean("\n".join(filter(None, [*texts, remark]))) or "it failed without a word")
    return ToolResult(clean("\n".join(filter(None, [*texts, remark]))) or NO_OUTPUT)


def _sorted_out(blocks: list[types.ContentBlock]) -> tuple[list[str], list[str]]:
    """The texts, and the names of what is none."""
    texts: list[str] = []
    refused: list[str] = []
    for block in blocks:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                texts.append(resource.text)
            case types.EmbeddedResource(resource=resource):
                refused.append(f"{resource.mime_type or 'binary data'} of {resource.uri}")
            case types.ResourceLink():
                texts.append(f"{block.name}: {block.uri}")
            case types.ImageContent() | types.AudioContent():
                refused.append(f"{block.type} {block.mime_type}")
            case _:
                assert_never(block)
    return texts, refused
