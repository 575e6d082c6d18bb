"""A small notes board: a tool server over stdio that the example company shares.

Notes live in one JSON file: ``NOTES_FILE``, or ``.crewlet/notes.json`` under the current folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("notes", instructions="A board where colleagues leave notes for each other.")


class Note(TypedDict):
    """One note on the board."""

    id: int
    title: str
    text: str
    author: str


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False))
def add_note(title: str, text: str, author: str) -> str:
    """Put a note on the board, for every colleague to read. Returns its id."""
    with _alone():
        notes = _read_all()
        note = Note(id=max((note["id"] for note in notes), default=0) + 1, title=title, text=text, author=author)
        _write_all([*notes, note])
    return f"Note {note['id']} is on the board."


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def list_notes() -> str:
    """The titles of all notes, with their ids and authors, the newest first."""
    lines = [f"{note['id']}: {note['title']} (by {note['author']})" for note in reversed(_read_all())]
    return "\n".join(lines) or "The board is empty."


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def read_note(id: int) -> str:  # noqa: A002 - the name that a model sees
    """The whole text of one note."""
    for note in _read_all():
        if note["id"] == id:
            return f"{note['title']} (by {note['author']})\n\n{note['text']}"
    raise ToolError(f"there is no note {id}; list_notes shows what there is")


def _notes_file() -> Path:
    return Path(os.environ.get("NOTES_FILE") or Path(".crewlet", "notes.json"))


@contextmanager
def _alone() -> Generator[None]:
    """While no other call, here or in another process, changes the board."""
    file = _notes_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_all() -> list[Note]:
    try:
        return json.loads(_notes_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []


def _write_all(notes: list[Note]) -> None:
    """Replace the file in one step: a reader sees all of the old or all of the new board, also after a power cut."""
    file = _notes_file()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, prefix=file.name, delete=False) as new:
        json.dump(notes, new, ensure_ascii=False, indent=1)
        new.flush()
        os.fsync(new.fileno())
    Path(new.name).replace(file)


if __name__ == "__main__":
    server.run()
