"""When a turn counts as over: once its end is on record, since until then another process may go on with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryLog, MemoryLogStream, MemoryRecordStore
from crewlet.base.fence import Fence, OpenFence, ServingPosture
from crewlet.base.ids import TurnId
from crewlet.coordination import LEDGER, Ledger
from crewlet.events import Event
from crewlet.inbox import (
    Decision,
    Opening,
    SeatInbox,
    SeatInboxParts,
    SeatJournal,
    Trigger,
    TurnGate,
    TurnJournal,
    TurnOutcome,
)
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.triggers import trigger_of
from crewlet.notify import Sources
from crewlet.queue import Ack
from crewlet.testing import SeededIds, VirtualClock
from tests.unit.inbox.inbox_kit import batch_of, event

pytestmark = pytest.mark.virtual_time


@dataclass
class Seat:
    """One seat's inbox over a journal; ``loses_end``: nobody reaches the journal once the turn has run."""

    loses_end: bool = False
    clock: VirtualClock = field(default_factory=VirtualClock)
    ended: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ran: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.log = MemoryLogStream(self.clock)
        self.ledger = Ledger(MemoryRecordStore(MemoryBucket(LEDGER, self.clock)), self.clock)

    def journal(self, writer: str = "w") -> SeatJournal:
        return SeatJournal("ceo", MemoryLog(self.log), epoch=1, writer=writer, standing=self._stands, clock=self.clock)

    async def was_left(self, event_id: str) -> JournalledTurn:
        """A predecessor's turn over one event, as far as its opening."""
        journal = self.journal("predecessor")
        await journal.take_over()
        trigger = trigger_of("ceo", [event(event_id=event_id)], Sources(), headroom=1)
        turn = JournalledTurn(journal, trigger, TurnId("t-left"))
        await turn.open(Opening())
        return turn

    async def works(self) -> None:
        journal = self.journal()
        parts = SeatInboxParts(
            admission=self,
            posture=ServingPosture(),
            ledger=self.ledger,
            gate=TurnGate(1),
            run_turn=self._run,
            settle=self._settled,
            ended=lambda handle, turn_id: self.ended.append((handle, turn_id)),
            publish=self._publish,
            clock=self.clock,
            ids=SeededIds(),
        )
        outcome = await SeatInbox("ceo", parts, journal).handle(batch_of(event()))
        assert isinstance(outcome, Ack)

    def may_start(self, handle: str) -> int | None:
        return 1

    def fence(self, handle: str, epoch: int) -> Fence:
        return OpenFence()

    async def _run(self, _trigger: Trigger, _fence: Fence, journal: TurnJournal) -> TurnOutcome:
        await journal.open(Opening())
        self.ran.append(journal.turn_id)
        self.log.cut = self.loses_end
        return TurnOutcome(turn_id=journal.turn_id, decision=Decision.DONE, finished=True)

    async def _stands(self) -> bool:
        return True

    async def _settled(self, _trigger: Trigger, _outcome: TurnOutcome) -> None:
        pass

    async def _publish(self, _topic: str, said: Event) -> Event:
        return said


async def test_a_turn_is_over_once_its_end_is_on_record() -> None:
    seat = Seat()

    await seat.works()

    assert seat.ended == [("ceo", turn_id) for turn_id in seat.ran]
    assert len(seat.ran) == 1


async def test_a_turn_whose_end_could_not_be_written_is_not_over_for_whoever_counts_its_replies() -> None:
    seat = Seat(loses_end=True)

    await seat.works()

    assert len(seat.ran) == 1
    assert seat.ended == []


async def test_a_turn_whose_predecessor_ended_it_and_died_is_over_once_that_is_read() -> None:
    seat = Seat()
    turn = await seat.was_left("e-left")
    await turn.end(outcome="nak", decision="failed", ids=())

    await seat.works()

    assert seat.ended == [("ceo", "t-left"), *(("ceo", turn_id) for turn_id in seat.ran)]


async def test_one_that_its_process_has_let_go_of_is_not_said_to_be_over_by_each_that_takes_the_seat_over() -> None:
    seat = Seat()
    turn = await seat.was_left("e-left")
    await turn.end(outcome="ack", decision="done", ids=("e-left",))
    await turn.forget()

    await seat.works()

    assert seat.ended == [("ceo", turn_id) for turn_id in seat.ran]


async def test_a_turn_whose_mail_another_one_has_worked_is_over_once_that_is_on_record() -> None:
    seat = Seat()
    await seat.was_left("e-left")
    await seat.ledger.record("ceo", ["e-left"], turn_id="t-other", outcome="done")

    await seat.works()

    assert seat.ended == [("ceo", "t-left"), *(("ceo", turn_id) for turn_id in seat.ran)]
