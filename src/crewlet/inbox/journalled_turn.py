"""One turn over its seat's journal: what it writes as it goes, and what it reads back of a predecessor's part."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.ids import TurnId
from crewlet.events import Event, encode
from crewlet.inbox.contract import Trigger
from crewlet.inbox.journal_entries import (
    CameOut,
    Ended,
    Entry,
    Intended,
    Noted,
    Opened,
    Replied,
    read_reply,
    read_result,
    wire_reply,
    wire_result,
)
from crewlet.inbox.journal_messages import read_message, wire_message
from crewlet.inbox.journal_state import LastTurn
from crewlet.inbox.recorded_charges import RecordedCharge, charge_of, lane_of, last_charges
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.turn_journal import CallAt, Note, Opening, RecordedReply
from crewlet.llm import Message, ModelReply, ToolCall
from crewlet.queue import LogFull
from crewlet.tools import ToolResult

__all__ = ["JournalledTurn"]

_log = structlog.get_logger(__name__)
_WORKERS = "/delegate/"


class JournalledTurn:
    """A ``TurnJournal``. ``last`` is what a predecessor left of this very turn."""

    def __init__(
        self,
        journal: SeatJournal,
        trigger: Trigger,
        turn_id: TurnId,
        last: LastTurn | None = None,
        *,
        spent: Sequence[Event] = (),
    ) -> None:
        self._journal = journal
        self._trigger = trigger
        self._turn_id = turn_id
        self._last = last
        self._ahead: set[tuple[str, int]] = set() if last is None else set(last.replies)
        self._number = 0 if last is None else last.last_number
        self._is_open = last is not None
        self._on_record = asyncio.Event()
        self._is_ending = False
        self._spent = spent
        self._is_unjournalled = False
        self._ended_at = 0
        self._uncharged = {} if last is None else last_charges(turn_id, last.replies.values())
        self._is_unsure = False
        self._is_live = last is None
        self._live_branches: set[str] = set()

    @property
    def turn_id(self) -> TurnId:
        """The same for each process that runs a part of it."""
        return self._turn_id

    @property
    def resumed(self) -> bool:
        """Whether a predecessor opened it."""
        return self._last is not None

    @property
    def replaying(self) -> bool:
        """Until the last recorded reply was gone through, or the turn went another way than its record."""
        return bool(self._ahead) and not self._is_live

    @property
    def reached_outside(self) -> bool:
        """Whether a predecessor's record proves it, or leaves it open."""
        return self._last is not None and self._last.may_have_reached_outside

    @property
    def notes_left(self) -> tuple[Note, ...]:
        """What the turn was told before it was gone on with, and no recorded reply has answered."""
        return () if self._last is None else self._last.notes_left

    @property
    def uncharged(self) -> tuple[RecordedCharge, ...]:
        """The charges of replies on record that are not known to be counted, in their order."""
        return tuple(sorted(self._uncharged.values(), key=lambda charge: charge.number))

    @property
    def is_unsure(self) -> bool:
        """Whether a reply may be on record of which this process does not know."""
        return self._is_unsure

    def counted(self, charge: RecordedCharge) -> None:
        """It needs nobody any more."""
        known = self._uncharged.get(charge.lane)
        if known is not None and known.number <= charge.number:
            del self._uncharged[charge.lane]

    def found_again(self, last: LastTurn | None) -> None:
        """The journal was read once more: it says which replies are on record."""
        self._is_unsure = False
        if last is not None and last.opened.turn_id == self._turn_id:
            self._uncharged = last_charges(self._turn_id, last.replies.values())

    async def open(self, opening: Opening) -> Opening:
        """Record the opening; of a resumed turn return the recorded one, with what only this build has added."""
        if self._last is not None:
            opened = self._last.opened
            return Opening(
                prompts={**opening.prompts, **opened.prompts},
                revision=opened.revision,
                owes=opened.owes,
                onboarding=opened.onboarding,
            )
        trigger, thread = self._trigger, self._trigger.thread
        await self._write(
            Opened(
                at=self._journal.clock.now(),
                turn_id=self._turn_id,
                work_key=trigger.work_key,
                revision=opening.revision,
                events=tuple(msgspec.Raw(encode(event)) for event in trigger.events),
                headroom=trigger.headroom,
                prompts=dict(opening.prompts),
                thread="" if thread is None else thread.text,
                shown=() if thread is None else thread.waiting,
                owes=opening.owes,
                spent=tuple(event.id for event in self._spent),
                onboarding=opening.onboarding,
            )
        )
        self._is_open = not self._is_unjournalled
        self._on_record.set()
        return opening

    def reply_at(self, phase: str, round_num: int) -> RecordedReply | None:
        """The recorded reply of a round, if there is one."""
        replied = None if self._last is None else self._last.replies.get((phase, round_num))
        if replied is None or self._last is None:
            return None
        return RecordedReply(
            reply=read_reply(replied.reply),
            shown=tuple(read_message(each) for each in replied.shown),
            number=replied.number,
            is_last=replied.number == self._last.last_number,
            notes=replied.notes,
        )

    def replay(self, phase: str, round_num: int) -> RecordedReply | None:
        """The same, gone through; the first round without one is where the predecessor's process ended."""
        branch = _branch_of(phase)
        recorded = None if self._is_live or branch in self._live_branches else self.reply_at(phase, round_num)
        if recorded is not None:
            self._pass(recorded.number, phase, round_num)
        elif branch:
            # Its host's other workers have replies on record all the same.
            self._live_branches.add(branch)
        elif not self._is_live:
            self._is_live = True
            said = _log.info if not self._ahead else _log.warning
            # A call to the model that was under way then may have been billed, and nobody knows what it said.
            said("turn_round_unrecorded", turn=self._turn_id, phase=phase, round=round_num, left=len(self._ahead))
        return recorded

    def _pass(self, number: int, phase: str, round_num: int) -> None:
        """One more is gone through, and with a phase's own reply all that its earlier rounds' workers had."""
        self._ahead.discard((phase, round_num))
        if self._last is not None and not _branch_of(phase):
            self._ahead -= {at for at in self._ahead if _branch_of(at[0]) and self._last.replies[at].number < number}

    async def replied(
        self, phase: str, round_num: int, shown: tuple[Message, ...], reply: ModelReply, notes: tuple[Note, ...] = ()
    ) -> int:
        """Record a reply before its charge and its calls; returns its number over the whole turn."""
        self._number += 1
        replied = Replied(
            at=self._journal.clock.now(),
            phase=phase,
            round_num=round_num,
            number=self._number,
            shown=tuple(wire_message(each) for each in shown),
            reply=wire_reply(reply),
            notes=notes,
        )
        try:
            await self._write(replied)
        except BaseException:
            # It may be on record all the same, and then it is to be counted.
            self._is_unsure = True
            raise
        if reply.usage.total:
            self._uncharged[lane_of(self._turn_id, phase)] = charge_of(self._turn_id, replied)
        return replied.number

    def charged(self, phase: str, number: int) -> None:
        """Its charge needs nobody any more."""
        known = self._uncharged.get(lane_of(self._turn_id, phase))
        if known is not None and known.number <= number:
            self.counted(known)

    async def noted(self, note: Note) -> bool:
        """Record a note; whether whoever goes on with the turn finds it."""
        if not self._is_open and not self._is_unjournalled:
            # A turn is told of before it is on record: whoever sends a note then waits for as long as he cares to.
            await self._on_record.wait()
        if self._is_ending and not self._is_unjournalled:
            raise Unavailable(f"the turn {self._turn_id} ends")
        await self._write(Noted(at=self._journal.clock.now(), note=note))
        return not self._is_unjournalled

    def passed(self, at: CallAt) -> bool:
        """Whether a later reply of its phase is on record, of one that the phase works for, or of a phase after it."""
        if self._last is None:
            return False
        mine = self._last.replies.get((at.phase, at.round_num))
        return mine is not None and any(
            later.number > mine.number and _comes_after(later.phase, at.phase) for later in self._last.replies.values()
        )

    def was_intended(self, at: CallAt) -> bool:
        """Whether a predecessor was about to make the call."""
        return self._last is not None and at in self._last.intents

    def outcome_at(self, at: CallAt) -> ToolResult | None:
        """What the call came to, where a predecessor recorded it."""
        came_out = None if self._last is None else self._last.outcomes.get(at)
        return None if came_out is None else read_result(came_out.result)

    async def intend(self, at: CallAt, call: ToolCall) -> None:
        """Record that the call is about to be made."""
        await self._write(
            Intended(
                at=self._journal.clock.now(),
                phase=at.phase,
                round_num=at.round_num,
                index=at.index,
                tool=call.name,
                digest=_digest(call.arguments, call.raw),
            )
        )

    async def came_out(self, at: CallAt, result: ToolResult) -> None:
        """Record what it came to."""
        await self._write(
            CameOut(
                at=self._journal.clock.now(),
                phase=at.phase,
                round_num=at.round_num,
                index=at.index,
                result=wire_result(result),
            )
        )

    async def end(self, *, outcome: str, decision: str, ids: tuple[str, ...]) -> None:
        """The end is on record before anything is done about it; a turn that was never opened has none.

        Raises ``Fenced``, ``Unavailable``.
        """
        self._is_ending = True
        if not self._is_open or self._is_unjournalled:
            return
        ended = Ended(at=self._journal.clock.now(), turn_id=self._turn_id, outcome=outcome, decision=decision, ids=ids)
        try:
            self._ended_at = await self._journal.end(ended)
        except LogFull as full:
            # Else nothing of this turn would go away before the week is over, and no turn would find room meanwhile.
            self._ended_at = full.sequence
            raise

    async def forget(self) -> None:
        """Keep its end alone, and where there was no room for that nothing to go on with; a failure costs room."""
        if self._ended_at:
            await self._journal.trim(self._ended_at)

    async def _write(self, entry: Entry) -> None:
        """The entry is on record; one that no journal can hold ends the record, and never the turn.

        S1's rules for a broken turn hold from there on: half a record would have calls made twice that it leaves out.
        """
        if self._is_unjournalled:
            return
        try:
            await self._journal.write(entry)
        except PayloadTooLarge as refused:
            _log.error("turn_unjournalled", turn=self._turn_id, size=refused.size, limit=refused.limit)
            if self._is_open:
                await self.end(outcome="nak", decision="", ids=())
            self._is_unjournalled = True


def _comes_after(later: str, phase: str) -> bool:
    """Whether a reply of ``later`` can only follow what ``phase`` asked for: workers of one phase run at once."""
    return later == phase or phase.startswith(f"{later}/") or later.count("/") == 1


def _branch_of(phase: str) -> str:
    """The worker that a phase is, or is part of; empty for the turn's own."""
    host, mark, task = phase.partition(_WORKERS)
    return f"{host}{mark}{'/'.join(task.split('/', 2)[:2])}" if mark else ""


def _digest(arguments: Mapping[str, object] | None, raw: str) -> str:
    text = raw if arguments is None else json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
