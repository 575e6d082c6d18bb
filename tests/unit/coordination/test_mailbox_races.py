"""Whatever nodes and sweeps do in whatever order, no retirement ends the mailbox of a seat that was told it may be."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import MAILBOXES, Mailboxes, SeatMailbox, Stored
from crewlet.testing import VirtualClock, run_virtual


class Actor:
    """A node or a sweep, with what it last saw of the record and the mark that it has."""

    def __init__(self, name: str, mailboxes: Mailboxes) -> None:
        self.name = name
        self.mailboxes = mailboxes
        self.seen: SeatMailbox | None = None
        self.read: Stored[SeatMailbox] | None = None
        self.mark: Stored[SeatMailbox] | None = None


class History:
    """One random history, step by step. ``promises`` counts how often somebody was told that the mailbox may be."""

    def __init__(self, kind: type[Mailboxes] = Mailboxes) -> None:
        store = MemoryRecordStore(MemoryBucket(MAILBOXES, VirtualClock()))
        self.actors = [Actor(f"a{number}", kind(store)) for number in range(2)]
        self.promises = 0
        self.promised_s = 0.0
        self.promises_at_mark: dict[str, int] = {}
        self.marks = 0

    async def register(self, actor: Actor) -> None:
        self._told(actor, await actor.mailboxes.register("cto"))

    async def take_over(self, actor: Actor) -> None:
        if actor.seen is not None and actor.seen.is_retiring:
            self._told(actor, await actor.mailboxes.take_over(actor.seen))

    async def look(self, actor: Actor) -> None:
        actor.read = await actor.mailboxes.get("cto")

    async def stamp(self, actor: Actor) -> None:
        if actor.read is not None:
            actor.read = await actor.mailboxes.stamp_absent(actor.read)

    async def mark(self, actor: Actor) -> None:
        if actor.read is None:
            return
        self.marks += 1
        by = f"{actor.name}-{self.marks}"
        mark = await actor.mailboxes.mark(actor.read, by=by)
        if mark is not None:
            actor.mark = mark
            self.promises_at_mark[by] = self.promises
            missing_s = asyncio.get_running_loop().time() - self.promised_s
            assert missing_s >= limits.MAILBOX_GRACE_S, "a seat is retired that was missing for less than a day"

    async def unmark(self, actor: Actor) -> None:
        if actor.mark is not None:
            await actor.mailboxes.unmark(actor.mark)
            actor.mark = None

    async def forget(self, actor: Actor) -> None:
        if actor.mark is None:
            return
        standing = await actor.mailboxes.get("cto")
        if await actor.mailboxes.forget(actor.mark) and standing is not None:
            assert self.promises == self.promises_at_mark[actor.mark.record.retiring_by], "a seat lost its mailbox"

    async def day(self, actor: Actor) -> None:
        await asyncio.sleep(limits.MAILBOX_GRACE_S)

    async def quarter(self, actor: Actor) -> None:
        await asyncio.sleep(limits.MAILBOX_MARK_ABANDONED_S)

    def _told(self, actor: Actor, stands: SeatMailbox) -> None:
        actor.seen = stands
        if not stands.is_retiring:
            self.promises += 1
            self.promised_s = asyncio.get_running_loop().time()


STEPS = (
    History.register,
    History.take_over,
    History.look,
    History.stamp,
    History.mark,
    History.unmark,
    History.forget,
    History.day,
    History.quarter,
)


async def lived(steps: list[tuple[int, int]], kind: type[Mailboxes] = Mailboxes) -> History:
    """The history of these steps, each by one of the actors, once a seat has been missing for a day and all know it."""
    history = History(kind)
    first = history.actors[0]
    for step in (History.register, History.look, History.stamp, History.day):
        await step(history, first)
    for actor in history.actors:
        await history.look(actor)
    for number, step in steps:
        await STEPS[step](history, history.actors[number])
    return history


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, len(STEPS) - 1)), min_size=20, max_size=40))
def test_no_retirement_ends_a_mailbox_that_somebody_was_told_may_be(steps: list[tuple[int, int]]) -> None:
    run_virtual(lived(steps), limit_s=100 * limits.MAILBOX_GRACE_S)


def test_a_retirement_with_nobody_in_its_way_ends_the_mailbox() -> None:
    async def run() -> Stored[SeatMailbox] | None:
        history = await lived([(0, STEPS.index(step)) for step in (History.mark, History.forget)])
        return await history.actors[1].mailboxes.get("cto")

    assert run_virtual(run()) is None
