"""Lines from a pipe, however they are cut into chunks."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.tools.line_reader import LineTooLong, read_clipped_lines, read_lines


def fed(*chunks: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return reader


@pytest.mark.parametrize("chunks", [(b"one\ntwo\nrest",), (b"on", b"e\ntw", b"o\n", b"rest"), (b"one\ntwo\nrest\n",)])
async def test_lines_are_whole(chunks: tuple[bytes, ...]) -> None:
    assert [line async for line in read_lines(fed(*chunks), max_bytes=10)] == [b"one", b"two", b"rest"]


async def test_a_line_past_its_bound_is_refused() -> None:
    with pytest.raises(LineTooLong):
        [line async for line in read_lines(fed(b"x" * 100), max_bytes=10)]


async def test_a_clipped_line_loses_its_end_alone() -> None:
    lines = [line async for line in read_clipped_lines(fed(b"abcdef\ngh\n", b"ijklmn"), max_bytes=4)]

    assert lines == [b"abcd", b"gh", b"ijkl"]
