"""The header block of a stored message, as the broker hands it out."""

from __future__ import annotations

__all__ = ["parse_headers"]


def parse_headers(block: bytes) -> dict[str, str]:
    """Names and values of a ``NATS/1.0`` header block; a line without a colon is no header."""
    headers: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return headers
