"""The header block of a message: as it is sent, as it arrives, and as the broker hands a stored one out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

__all__ = ["ArrivedHeaders", "header_block", "header_bytes", "parse_headers", "parse_status"]

_VERSION: Final = "NATS/1.0"
_STATUS_FOLLOWS: Final = b"NATS/1.0 "
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE_ENDS: Final = str.maketrans({"\r": " ", "\n": " "})


def header_block(headers: Mapping[str, str]) -> bytes:
    """The ``NATS/1.0`` block of these headers. A line end inside a value becomes a blank.

    Raises ``ValueError`` for a name that no header can have.
    """
    lines = [_VERSION]
    for name, value in headers.items():
        _check_name(name)
        if "\r" in value or "\n" in value:
            value = value.translate(_LINE_ENDS)  # noqa: PLW2901 - the value as it may be sent
        lines.append(f"{name}: {value.strip()}")
    return "\r\n".join([*lines, "", ""]).encode()


@lru_cache(maxsize=256)
def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a header")


def header_bytes(headers: Mapping[str, str]) -> int:
    """How long the block of these headers can be."""
    # The version line and the empty line that ends the block, then name, colon, space, value and line end of each.
    return 14 + sum(len(name.encode()) + len(value.encode()) + 4 for name, value in headers.items())


def parse_headers(block: bytes) -> dict[str, str]:
    """Names and values of a ``NATS/1.0`` header block; a line without a colon is no header."""
    headers: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers


class ArrivedHeaders(Mapping[str, str]):
    """The headers in a block, read when somebody asks for one: of most messages nobody does."""

    __slots__ = ("_block", "_headers")

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._headers: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[str, str]:
        if self._headers is None:
            self._headers = parse_headers(self._block)
        return self._headers


def parse_status(block: bytes) -> tuple[str, str]:
    """The numeric status and the description on a block's first line; empty where it is no control frame's."""
    if not block.startswith(_STATUS_FOLLOWS):
        return "", ""
    line = block[len(_STATUS_FOLLOWS) : block.find(b"\r\n")].decode("utf-8", "replace")
    status, _, description = line.partition(" ")
    return (status, description.strip()) if status.isdecimal() else ("", "")
