"""A seat's inbox over a real engine and a journal, whose process can be killed between any two steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.fence import Fence, OpenFence, ServingPosture
from crewlet.coordination import LEDGER, Ledger
from crewlet.events import Event
from crewlet.inbox import RecordedCharge, SeatInbox, SeatInboxParts, Trigger, TurnGate, TurnOutcome
from crewlet.notify import Sources
from crewlet.queue import Ack, Nak, Outcome
from crewlet.testing import VirtualClock
from tests.unit.inbox.inbox_kit import batch_of
from tests.unit.turns.killed_turns import Process, World, born, journal_of, runner_of
from tests.unit.turns.turn_kit import operator_says

__all__ = ["Seat", "live_of"]


@dataclass
class Seat:
    """What outlives every process: the world of its turns, its ledger, its mail, and the answers that were given.

    ``unsettled``: how often handing an answer over fails yet, ``uncounted``: a charge that is made again.
    ``fence``: what the first turn of a life runs under.
    """

    world: World = field(default_factory=World)
    bucket: MemoryBucket = field(default_factory=lambda: MemoryBucket(LEDGER, VirtualClock()))
    mail: list[Event] = field(default_factory=lambda: [operator_says()])
    answers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    stopped: str = ""
    unsettled: int = 0
    uncounted: int = 0
    fence: Fence = field(default_factory=OpenFence)
    sources: Sources = field(default_factory=Sources)
    told: list[Event] = field(default_factory=list[Event])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])


class _Held:
    def __init__(self, first: Fence) -> None:
        self._fences = iter([first])

    def may_start(self, handle: str) -> int | None:
        return 1

    def fence(self, handle: str, epoch: int) -> Fence:
        return next(self._fences, OpenFence())


class _KillableLedger:
    """The ledger, a step before and after each verb."""

    def __init__(self, ledger: Ledger, process: Process) -> None:
        self._ledger = ledger
        self._process = process

    async def worked(self, handle: str, ids: list[str]) -> frozenset[str]:
        self._process.step()
        return await self._ledger.worked(handle, ids)

    async def record(self, handle: str, ids: list[str], *, turn_id: str, outcome: str) -> None:
        self._process.step()
        await self._ledger.record(handle, ids, turn_id=turn_id, outcome=outcome)
        self._process.step()


async def live_of(seat: Seat, process: Process) -> None:
    """One process's life: finish what was left, then work the mail until none is left. Raises ``Killed``."""
    clock, ids = born(seat.world)
    journal = journal_of(seat.world, process, clock)

    async def settle(trigger: Trigger, outcome: TurnOutcome) -> None:
        process.step()
        if seat.unsettled:
            seat.unsettled -= 1
            raise Unavailable("nobody takes the answer")
        seat.answers.append((trigger.lead.id, outcome.artifact))
        process.step()

    async def publish(topic: str, event: Event) -> Event:
        process.step()
        seat.told.append(event)
        return event

    async def charge(_handle: str, charge: RecordedCharge) -> None:
        process.step()
        if seat.uncounted:
            seat.uncounted -= 1
            raise Unavailable("the counters do not answer")
        seat.world.charges.setdefault((charge.lane, charge.number), charge.usage.total)
        process.step()

    inbox = SeatInbox(
        "ceo",
        SeatInboxParts(
            admission=_Held(seat.fence),
            posture=ServingPosture(),
            stopped_since=lambda _handle, _at: seat.stopped,
            ledger=_KillableLedger(Ledger(MemoryRecordStore(seat.bucket), clock), process),
            gate=TurnGate(1),
            run_turn=runner_of(seat.world, process, clock, ids),
            revision=lambda: seat.world.revision,
            settle=settle,
            charge=charge,
            publish=publish,
            sources=seat.sources,
            clock=clock,
            ids=ids,
        ),
        journal,
    )
    found = await journal.take_over()
    if found.turn is not None:
        await inbox.go_on(found)
    while seat.mail:
        try:
            outcome: Outcome = await inbox.handle(batch_of(seat.mail[0]))
        except CrewletError as error:
            outcome = Nak(str(error))
        process.step()
        seat.outcomes.append(outcome)
        if isinstance(outcome, Ack):
            seat.mail.pop(0)
