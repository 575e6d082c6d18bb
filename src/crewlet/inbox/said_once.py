"""The id of what a turn says one time, by whichever process runs it or ends it."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

__all__ = ["note_word", "said_once_id"]

_SAID_ONCE: Final = UUID("3f1d6c0e-8c6d-5c39-9a3e-5f0e9b1d7a52")


def said_once_id(turn_id: str, word: str) -> str:
    """The id of an event of the turn, by its type, or its type and what of it is told apart."""
    return str(uuid5(_SAID_ONCE, f"{turn_id}\x00{word}"))


def note_word(note_id: str) -> str:
    """What tells apart what became of one note."""
    return f"note/{note_id}"
