"""Where something stands in a document, written as people write it: ``units[0].roles[2].handle``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

__all__ = ["Location", "nearest_line", "path_text", "texts"]

Location = tuple[str | int, ...]
"""Keys and positions from the root of a document down to one value."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def path_text(location: Sequence[str | int]) -> str:
    """The location as one text; a key with odd characters stands in brackets and quotes."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def nearest_line(path: str, lines: Mapping[str, int]) -> int:
    """The line of ``path``, or of the nearest thing around it that has one; 0 where none has."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path, 0)


def texts(value: object, location: Location = ()) -> Iterator[tuple[Location, str]]:
    """Every text inside ``value``, with its location."""
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from texts(inner, (*location, key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(cast("Sequence[object]", value)):
            yield from texts(inner, (*location, index))
