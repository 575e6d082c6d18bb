"""Lines of any length up to a bound, read from a child's pipe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

__all__ = ["LineTooLong", "read_clipped_lines", "read_lines"]

_CHUNK_BYTES: Final = 64 * 1024


class LineTooLong(ValueError):
    """A line went past its bound before it ended."""


async def read_lines(reader: asyncio.StreamReader, *, max_bytes: int) -> AsyncIterator[bytes]:
    """Each whole line without its newline, until the end of file. Raises ``LineTooLong``."""
    rest = bytearray()
    while chunk := await reader.read(_CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        rest += first
        for other in others:
            yield bytes(rest)
            rest = bytearray(other)
        if len(rest) > max_bytes:
            raise LineTooLong(f"a line of more than {max_bytes} bytes")
    if rest:
        yield bytes(rest)


async def read_clipped_lines(reader: asyncio.StreamReader, *, max_bytes: int) -> AsyncIterator[bytes]:
    """Each line, cut where it is too long: for words to read, not for a protocol."""
    rest = bytearray()
    while chunk := await reader.read(_CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        rest += first[: max_bytes - len(rest)]
        for other in others:
            yield bytes(rest)
            rest = bytearray(other[:max_bytes])
    if rest:
        yield bytes(rest)
