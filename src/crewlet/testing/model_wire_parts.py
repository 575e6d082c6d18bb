"""What the vendors' wire formats have in common, from the server's side: texts, pieces of them, streamed events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

__all__ = ["Json", "pieces", "streamed", "text_of"]

Json = dict[str, Any]

_PIECE_CHARS = 8


def text_of(content: object) -> str:
    """The text of a content field: a string, a list of parts, or nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in cast("list[Json]", content))


def pieces(text: str) -> Iterator[str]:
    """The text in the pieces in which it is streamed."""
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]


def streamed(data: Json, kind: str = "") -> str:
    """One server-sent event."""
    return (f"event: {kind}\n" if kind else "") + f"data: {json.dumps(data)}\n\n"
