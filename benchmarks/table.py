"""The results as people read them: a table for the terminal, one for the README, and the file both come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.figures import Figure

__all__ = ["LATEST", "load", "markdown", "save", "text"]

LATEST: Final = Path(__file__).with_name("results") / "latest.json"
_HEADS: Final = ("figure", "value", "floor", "peer", "ratio", "bound", "floor or peer is")


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write them as a list of objects, with ``null`` where there is nothing to say."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")


def load(file: Path = LATEST) -> list[Figure]:
    """What was saved. Raises ``OSError``, ``msgspec.ValidationError``."""
    return msgspec.json.decode(file.read_bytes(), type=list[Figure])


def text(figures: Sequence[Figure]) -> str:
    """For the terminal, in columns; what is above its bound is marked."""
    rows = [_HEADS, *(_row(each) for each in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown(figures: Sequence[Figure], titles: Mapping[str, str]) -> str:
    """For the README: what was measured of the engine, in words."""
    lines = ["| what | value | floor | peer | bound |", "|---|---|---|---|---|"]
    for each in figures:
        if each.name not in titles:
            continue
        floor = "" if each.floor is None else f"{_number(each.floor)} {each.unit}"
        peer = each.peer_name or ""
        if each.peer is not None:
            peer = f"{_number(each.peer)} {each.unit}, {peer}"
        bound = "" if each.bound is None else f"{_number(each.bound)} {each.unit}"
        lines.append(f"| {titles[each.name]} | {_number(each.value)} {each.unit} | {floor} | {peer} | {bound} |")
    return "\n".join(lines)


def _row(each: Figure) -> tuple[str, ...]:
    bound = "" if each.bound is None else f"{_number(each.bound)}{'' if each.ok else '  EXCEEDED'}"
    return (
        each.name,
        f"{_number(each.value)} {each.unit}",
        "" if each.floor is None else f"{_number(each.floor)} {each.unit}",
        "" if each.peer is None else f"{_number(each.peer)} {each.unit}",
        "" if each.ratio is None else f"{_number(each.ratio)}",
        bound,
        each.floor_name or each.peer_name or "",
    )


def _number(value: float) -> str:
    return f"{value:.3g}"
