"""The example company's notes board, a real server over stdio with the official SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from crewlet.tools import Hint, SeatTools, ToolHost, ToolServerSpec
from tests.e2e.tools.conftest import CEO
from tests.e2e.tools.test_calls import called

pytestmark = pytest.mark.slow
BOARD = Path(__file__).parents[3] / "examples" / "company" / "notes_board.py"


async def board(host: ToolHost, folder: Path, **env: str) -> SeatTools:
    spec = ToolServerSpec(name="notes", command=sys.executable, args=(str(BOARD),), cwd=str(folder), env=env)
    await host.start_shared([spec])
    return await host.open_seat(CEO, [])


async def test_a_note_put_on_the_board_can_be_listed_and_read(host: ToolHost, tmp_path: Path) -> None:
    tools = await board(host, tmp_path)

    added = await called(tools, "add_note", title="Prices", text="Up by 3 %", author="ceo")
    listed = await called(tools, "list_notes")
    read = await called(tools, "read_note", id=1)

    assert added.text == "Note 1 is on the board."
    assert listed.text == "1: Prices (by ceo)"
    assert read.text == "Prices (by ceo)\n\nUp by 3 %"
    assert (tmp_path / ".crewlet" / "notes.json").exists()


async def test_notes_written_at_once_are_all_kept(host: ToolHost, tmp_path: Path) -> None:
    tools = await board(host, tmp_path, NOTES_FILE=str(tmp_path / "board.json"))

    await asyncio.gather(*(called(tools, "add_note", title=f"{n}", text="", author="cto") for n in range(20)))

    notes = json.loads((tmp_path / "board.json").read_text())
    assert sorted(note["id"] for note in notes) == list(range(1, 21))
    assert {note["title"] for note in notes} == {str(n) for n in range(20)}


async def test_reading_a_note_that_does_not_exist_says_what_to_do(host: ToolHost, tmp_path: Path) -> None:
    tools = await board(host, tmp_path)

    result = await called(tools, "read_note", id=7)

    assert result.is_error
    assert "there is no note 7; list_notes shows what there is" in result.text


async def test_only_reading_is_advertised_as_harmless(host: ToolHost, tmp_path: Path) -> None:
    tools = await board(host, tmp_path)

    hints = {row.name: row.annotations.read_only for row in tools.server_tools("notes")}

    assert hints == {"add_note": Hint.NO, "list_notes": Hint.YES, "read_note": Hint.YES}
