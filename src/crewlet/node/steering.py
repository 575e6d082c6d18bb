"""Notes from people to running turns: put to every node, taken by the one that runs the turn (S2, E-133)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Fenced, Unavailable
from crewlet.base.ids import Ids
from crewlet.inbox import Note
from crewlet.queue import Answer, EventQueue
from crewlet.turns import Keep, NoteBox

__all__ = ["SteerControl", "SteerOutcome", "Steered", "Steering"]

_log = structlog.get_logger(__name__)

_SUBJECT: Final = "steer.note"


class SteerOutcome(StrEnum):
    """What became of a note at first: whether a round read it is told by ``agent_turn_steered``."""

    ACCEPTED = "accepted"
    FULL = "full"
    CLOSED = "closed"
    NO_SUCH_TURN = "no_such_turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """A note's id, and what became of it."""

    turn_id: str
    note_id: str
    outcome: SteerOutcome


class SteerControl(Protocol):
    """Telling running turns something."""

    async def steer(self, turn_id: str, text: str, *, by: str, note_id: str = "") -> Steered:
        """Have a running turn read ``text`` at its next round. Raises ``Unavailable``: it may be read all the same."""
        ...


class _Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    turn_id: str
    note: str
    note_id: str
    steered_by: str = ""
    steered_by_seat: str = ""
    sent_at: datetime | None = None


class Steering:
    """The turns of this node that take notes, and the way to those of its peers.

    ``peers`` is how many other nodes are alive, as far as this one knows.
    """

    def __init__(self, queue: EventQueue, peers: Callable[[], int], clock: Clock, ids: Ids) -> None:
        self._queue = queue
        self._peers = peers
        self._clock = clock
        self._ids = ids
        self._running: dict[str, NoteBox] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    async def serve(self, stack: AsyncExitStack) -> None:
        """Take the peers' notes until ``stack`` ends."""
        served = await self._queue.serve(_SUBJECT, self.answer)
        stack.push_async_callback(served.close)

    def open(self, turn_id: str, keep: Keep | None = None) -> NoteBox:
        """The notes to a turn that begins, or goes on, here; ``keep`` puts each on its record."""
        box = self._running[turn_id] = NoteBox() if keep is None else NoteBox(keep)
        self._ended.pop(turn_id, None)
        return box

    def close(self, turn_id: str, box: NoteBox) -> None:
        """The turn takes no more; where it is gone on with here already, that run of it does."""
        box.close()
        if self._running.get(turn_id) is not box:
            return
        del self._running[turn_id]
        self._ended[turn_id] = None
        while len(self._ended) > limits.STEER_ENDED_TURNS_KEPT:
            self._ended.popitem(last=False)

    async def steer(self, turn_id: str, text: str, *, by: str, note_id: str = "") -> Steered:
        """Have a running turn read ``text`` at its next round, wherever it runs; a repeat of one id is read once.

        What is accepted is on the turn's record: where its process ends, whoever goes on with it shows it. Raises
        ``Unavailable`` where it could not be put there, and where no node says that it runs the turn and one of them
        said nothing.
        """
        asked = _Asked(
            turn_id=turn_id,
            note=text,
            note_id=note_id or str(self._ids.uuid()),
            steered_by=by,
            sent_at=self._clock.now(),
        )
        try:
            outcome = await self._posted(asked) or await self._posted_elsewhere(asked)
        except Fenced as moved:
            outcome = await self._posted_elsewhere(asked)
            if outcome is SteerOutcome.NO_SUCH_TURN:
                raise Unavailable(f"turn {turn_id} is on its way to another node") from moved
        return Steered(turn_id=turn_id, note_id=asked.note_id, outcome=outcome)

    async def _posted_elsewhere(self, asked: _Asked) -> SteerOutcome:
        peers = self._peers()
        if peers <= 0:
            return SteerOutcome.NO_SUCH_TURN
        # This node serves the question too, and says that it does not run the turn.
        expected = peers + 1
        payload = msgspec.json.encode(asked)
        answers = await self._queue.scatter(_SUBJECT, payload, timeout_s=limits.STEER_WAIT_S, expected=expected)
        said = _outcomes(answers)
        if said:
            return said[0]
        if len(answers) < expected or any(answer.error for answer in answers):
            raise Unavailable(f"turn {asked.turn_id}: a node that may run it did not answer")
        return SteerOutcome.NO_SUCH_TURN

    async def answer(self, payload: bytes) -> bytes:
        """What this node says to a peer's note: its outcome, or nothing where the turn is none of its own."""
        try:
            asked = msgspec.json.decode(payload, type=_Asked)
        except msgspec.MsgspecError as error:
            _log.warning("steer_note_unreadable", error=str(error))
            return b""
        return (await self._posted(asked) or "").encode()

    async def _posted(self, asked: _Asked) -> SteerOutcome | None:
        """What this node makes of it; ``None`` where the turn is not its own. Raises ``Unavailable``, ``Fenced``."""
        box = self._running.get(asked.turn_id)
        if box is None:
            return SteerOutcome.CLOSED if asked.turn_id in self._ended else None
        note = Note(
            note_id=asked.note_id,
            text=asked.note,
            by=asked.steered_by,
            by_seat=asked.steered_by_seat,
            sent_at=asked.sent_at,
        )
        try:
            async with asyncio.timeout(limits.STEER_WAIT_S):
                taken = await box.accept(note)
        except TimeoutError:
            raise Unavailable(f"turn {asked.turn_id}: its record does not take the note") from None
        if taken:
            return SteerOutcome.ACCEPTED
        return SteerOutcome.CLOSED if box.is_closed else SteerOutcome.FULL


def _outcomes(answers: Iterable[Answer]) -> list[SteerOutcome]:
    """What the nodes that know the turn say; who runs it now outranks who ran it before."""
    known: Collection[str] = [*SteerOutcome]
    said = [SteerOutcome(text) for answer in answers if (text := answer.payload.decode("utf-8", "replace")) in known]
    return sorted(said, key=lambda outcome: outcome is SteerOutcome.CLOSED)
