"""Mail that was buried out of nobody's hands: whoever waits for it hears so, and so does whoever reads the events."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryLog, MemoryLogStream, MemoryRecordStore
from crewlet.base.fence import Fence, OpenFence, ServingPosture
from crewlet.coordination import LEDGER, Ledger
from crewlet.events import Event, encode
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbox import Decision, SeatInboxParts, Trigger, TurnGate, TurnOutcome, UnheardMail
from crewlet.inbox.journal_entries import Ended, Opened, encode_entry
from crewlet.queue import LogRecord, Subscription, UnheardLetter, control_of, inbox_of
from crewlet.testing import SeededIds, VirtualClock
from tests.unit.inbox.inbox_kit import event

pytestmark = pytest.mark.virtual_time

WHY = "deferred on delivery 25 of 25: the drain was stopped before its turn came"


@dataclass
class Fleet:
    """A node that listens, over what the fleet shares."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    answers: list[tuple[str, TurnOutcome]] = field(default_factory=list[tuple[str, TurnOutcome]])
    told: list[TurnTriggerSkipped] = field(default_factory=list[TurnTriggerSkipped])

    def __post_init__(self) -> None:
        self.journals = MemoryLog(MemoryLogStream(self.clock))
        self.ledger = Ledger(MemoryRecordStore(MemoryBucket(LEDGER, self.clock)), self.clock)
        parts = SeatInboxParts(
            admission=self,
            posture=ServingPosture(),
            ledger=self.ledger,
            gate=TurnGate(1),
            run_turn=self._runs_none,
            settle=self._settled,
            publish=self._publish,
            clock=self.clock,
            ids=SeededIds(),
        )
        self.mail = UnheardMail(parts, self.journals)

    async def hears(self, *, mailbox: Subscription | None = None, holder_lost: bool = False) -> None:
        with capture_logs():
            await self.mail.heard(
                UnheardLetter(
                    subscription=mailbox or inbox_of("ceo"), event=event(), reason=WHY, holder_lost=holder_lost
                )
            )

    async def journals_say(self, *entries: Opened | Ended) -> None:
        records = [LogRecord(f"w.{number}", encode_entry(entry)) for number, entry in enumerate(entries)]
        await self.journals.append("ceo", records, expected=0)

    def opened(self) -> Opened:
        return Opened(at=self.clock.now(), turn_id="t1", events=(msgspec.Raw(encode(event())),))

    def may_start(self, handle: str) -> int | None:
        return None

    def fence(self, handle: str, epoch: int) -> Fence:
        return OpenFence()

    async def _runs_none(self, *_: object) -> TurnOutcome:
        raise AssertionError("nothing is run")

    async def _settled(self, trigger: Trigger, outcome: TurnOutcome) -> None:
        self.answers.append((trigger.lead.id, outcome))

    async def _publish(self, _topic: str, said: Event) -> Event:
        assert isinstance(said.data, TurnTriggerSkipped)
        self.told.append(said.data)
        return said


@pytest.mark.spec("S-127")
async def test_mail_that_was_buried_unhandled_is_given_up_aloud_and_whoever_waits_for_it_is_answered() -> None:
    fleet = Fleet()

    await fleet.hears()

    (skipped,) = fleet.told
    assert (skipped.agent_handle, skipped.trigger_id, skipped.abandoned, skipped.detail) == ("ceo", "e1", True, WHY)
    ((trigger_id, outcome),) = fleet.answers
    assert (trigger_id, outcome.decision, outcome.finished, outcome.error) == ("e1", Decision.FAILED, False, WHY)


async def test_what_a_holder_died_with_is_given_up_aloud_where_nothing_is_on_record_of_it() -> None:
    fleet = Fleet()

    await fleet.hears(holder_lost=True)

    assert [each.trigger_id for each in fleet.told] == ["e1"]


async def test_what_a_holder_died_with_and_the_ledger_has_is_worked_and_not_given_up() -> None:
    fleet = Fleet()
    await fleet.ledger.record("ceo", ["e1"], turn_id="t1", outcome="done")

    await fleet.hears(holder_lost=True)

    assert (fleet.told, fleet.answers) == ([], [])


async def test_what_the_turn_on_record_is_for_is_its_next_holders_to_speak_for() -> None:
    fleet = Fleet()
    await fleet.journals_say(fleet.opened())

    await fleet.hears(holder_lost=True)

    assert (fleet.told, fleet.answers) == ([], [])


@pytest.mark.parametrize(("outcome", "told"), [("ack", []), ("nak", ["e1"])])
async def test_of_a_turn_that_ended_only_what_it_did_not_work_is_given_up(outcome: str, told: list[str]) -> None:
    fleet = Fleet()
    ids = ("e1",) if outcome == "ack" else ()
    await fleet.journals_say(Ended(at=fleet.clock.now(), turn_id="t1", outcome=outcome, ids=ids))

    await fleet.hears(holder_lost=True)

    assert [each.trigger_id for each in fleet.told] == told


async def test_of_other_mailboxes_nothing_is_said() -> None:
    fleet = Fleet()

    await fleet.hears(mailbox=control_of("ceo"))
    await fleet.hears(mailbox=Subscription("crewlet.notifications.inbound", "routing"))

    assert (fleet.told, fleet.answers) == ([], [])
