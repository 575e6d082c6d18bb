"""Promises about the mailboxes that may exist: no seat that comes back loses its own, whoever is retiring it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar, Final

import pytest
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import MAILBOXES, Mailboxes, SeatMailbox, Stored
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["MailboxPromises", "RetirementPromises"]

GRACE_S: Final = 0.3
"""How long a seat is missing before its mailbox may go, in a suite that waits for it."""
ABANDONED_S: Final = 0.5
LATER_S: Final = 0.1
"""More than what the store's clock is known to."""


@contextmanager
def scaled() -> Generator[None]:
    """The grace and the age at which a mark counts as abandoned, short enough to be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAILBOX_GRACE_S", GRACE_S)
        patch.setattr(limits, "MAILBOX_MARK_ABANDONED_S", ABANDONED_S)
        yield


async def found(mailboxes: Mailboxes, handle: str = "cto") -> Stored[SeatMailbox]:
    """The seat's record."""
    stored = await mailboxes.get(handle)
    assert stored is not None
    return stored


async def gone_for_good(records: RecordHarness, mailboxes: Mailboxes) -> Stored[SeatMailbox]:
    """The record of a seat that has been missing for the whole grace."""
    await mailboxes.register("cto")
    absent = await mailboxes.stamp_absent(await found(mailboxes))
    assert absent is not None
    await records.advance(GRACE_S + LATER_S)
    return absent


async def retiring(records: RecordHarness, mailboxes: Mailboxes, by: str = "sweep-1") -> Stored[SeatMailbox]:
    """The mark of a retirement that has just begun."""
    mark = await mailboxes.mark(await gone_for_good(records, mailboxes), by=by)
    assert mark is not None
    return mark


class MailboxPromises(Contract):
    """What is true of a record while nobody retires it."""

    kind: ClassVar[type[Mailboxes]] = Mailboxes

    async def test_a_seat_that_every_node_registers_has_one_record(self, records: RecordHarness) -> None:
        clients = [self.kind(await records.client(MAILBOXES)) for _ in range(3)]
        first = await clients[0].register("cto")
        await records.quiet()
        await records.disturb()

        stand = await asyncio.gather(*(each.register("cto") for each in clients for _ in range(3)))

        assert [record for record in stand if record != first] == []
        assert [each.record for each in await clients[0].every()] == [first]
        assert (first.handle, first.absent_since, first.is_retiring) == ("cto", None, False)

    async def test_registering_again_writes_nothing(self, records: RecordHarness) -> None:
        store = await records.client(MAILBOXES)
        mailboxes = self.kind(store)
        await mailboxes.register("cto")
        before = await store.last_revision()

        await mailboxes.register("cto")

        assert await store.last_revision() == before

    async def test_an_absence_is_dated_by_the_stores_clock_and_the_first_sight_counts(
        self, records: RecordHarness
    ) -> None:
        mailboxes = self.kind(await records.client(MAILBOXES))
        await mailboxes.register("cto")
        absent = await mailboxes.stamp_absent(await found(mailboxes))
        assert absent is not None
        await records.advance(LATER_S)

        assert await mailboxes.stamp_absent(absent) == absent
        assert absent.record.absent_since is not None
        assert abs(absent.record.absent_since - absent.written_at) < timedelta(seconds=2)

    async def test_a_seat_that_comes_back_is_present_and_its_grace_starts_anew(self, records: RecordHarness) -> None:
        with scaled():
            mailboxes = self.kind(await records.client(MAILBOXES))
            before = await gone_for_good(records, mailboxes)
            await mailboxes.register("cto")
            back = await found(mailboxes)

            again = await mailboxes.stamp_absent(back)
            assert again is not None

            assert back.record.absent_since is None
            assert await mailboxes.mark(again, by="sweep-1") is None
            assert again.record.absent_since is not None
            assert before.record.absent_since is not None
            assert again.record.absent_since > before.record.absent_since

    async def test_a_stamp_is_put_over_what_the_sweep_read_alone(self, records: RecordHarness) -> None:
        sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
        await node.register("cto")
        stale = await found(sweep)
        await sweep.stamp_absent(stale)
        await node.register("cto")

        assert await sweep.stamp_absent(stale) is None
        assert (await found(node)).record.absent_since is None

    async def test_a_mailbox_that_nobody_registered_is_found_missing(self, records: RecordHarness) -> None:
        mailboxes = self.kind(await records.client(MAILBOXES))

        discovered = await mailboxes.discover("cto")

        assert discovered is not None
        assert discovered.record.absent_since is not None
        assert await found(mailboxes) == discovered

    async def test_a_seat_that_registers_before_its_mailbox_is_discovered_is_not_found_missing(
        self, records: RecordHarness
    ) -> None:
        mailboxes = self.kind(await records.client(MAILBOXES))
        registered = await mailboxes.register("cto")

        assert await mailboxes.discover("cto") is None
        assert (await found(mailboxes)).record == registered

    @pytest.mark.spec("C-141")
    async def test_no_clock_takes_a_record(self, records: RecordHarness) -> None:
        with scaled():
            store = await records.client(MAILBOXES)
            mailboxes = self.kind(store)
            absent = await gone_for_good(records, mailboxes)

            assert store.age_s is None
            assert await mailboxes.every() == [absent]

    async def test_what_a_newer_build_wrote_stays(self, records: RecordHarness) -> None:
        store = await records.client(MAILBOXES)
        mailboxes = self.kind(store)
        await mailboxes.register("cto")
        await add_fields(store, "seat.cto", kept_for="legal")

        await mailboxes.stamp_absent(await found(mailboxes))
        await mailboxes.register("cto")

        assert (await fields(store, "seat.cto"))["kept_for"] == "legal"

    async def test_unknown_is_never_absent(self, records: RecordHarness) -> None:
        store = await records.client(MAILBOXES)
        mailboxes = self.kind(store)
        await mailboxes.register("cto")
        read = await found(mailboxes)
        marked = dataclasses.replace(read, record=replace(read.record, retiring_by="sweep-1"))

        await has_no_answer(
            records,
            store,
            lambda: mailboxes.register("cto"),
            lambda: mailboxes.get("cto"),
            mailboxes.every,
            lambda: mailboxes.discover("ceo"),
            lambda: mailboxes.stamp_absent(read),
            lambda: mailboxes.unmark(marked),
            lambda: mailboxes.forget(read),
            lambda: mailboxes.take_over(read.record),
        )
        await damage(store, "seat.cto")

        for call in (mailboxes.get("cto"), mailboxes.every(), mailboxes.register("cto")):
            with pytest.raises(Unavailable):
                await call


class RetirementPromises(Contract):
    """The races of a retirement with the seat's return, with another sweep, and with its own death."""

    kind: ClassVar[type[Mailboxes]] = Mailboxes

    async def test_a_mailbox_is_marked_after_the_whole_grace_and_not_before(self, records: RecordHarness) -> None:
        with scaled():
            mailboxes = self.kind(await records.client(MAILBOXES))
            await mailboxes.register("cto")
            present = await found(mailboxes)
            absent = await mailboxes.stamp_absent(present)
            assert absent is not None
            early = [await mailboxes.mark(present, by="sweep-1"), await mailboxes.mark(absent, by="sweep-1")]
            await records.advance(GRACE_S + LATER_S)

            mark = await mailboxes.mark(absent, by="sweep-1")

            assert early == [None, None]
            assert mark is not None
            assert mark.record.is_retiring
            assert await found(mailboxes) == mark

    @pytest.mark.spec("S-159")
    async def test_of_sweeps_that_overlap_one_wins_the_mark(self, records: RecordHarness) -> None:
        with scaled():
            clients = [self.kind(await records.client(MAILBOXES)) for _ in range(3)]
            absent = await gone_for_good(records, clients[0])
            await records.disturb()

            marks = await asyncio.gather(
                *(each.mark(absent, by=f"sweep-{number}") for number, each in enumerate(clients))
            )

            assert [mark for mark in marks if mark is not None] == [await found(clients[0])]

    async def test_a_seat_that_registers_before_the_mark_is_not_retired(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            absent = await gone_for_good(records, sweep)

            back = await node.register("cto")

            assert await sweep.mark(absent, by="sweep-1") is None
            assert (await found(node)).record == back

    async def test_a_seat_that_registers_after_the_mark_is_told_to_wait(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, sweep)

            seen = await node.register("cto")

            assert seen.is_retiring
            assert await found(sweep) == mark
            assert await sweep.forget(mark)
            assert not (await node.register("cto")).is_retiring

    async def test_a_mark_and_a_registration_at_once_never_both_hold(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            absent = await gone_for_good(records, sweep)

            mark, seen = await asyncio.gather(sweep.mark(absent, by="sweep-1"), node.register("cto"))

            assert (mark is not None) == seen.is_retiring

    async def test_a_retirement_that_was_taken_over_learns_of_it(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, sweep)
            seen = await node.register("cto")

            back = await node.take_over(seen)

            assert (back.is_retiring, back.absent_since) == (False, None)
            assert not await sweep.forget(mark)
            assert await sweep.unmark(mark) is None
            assert (await found(node)).record == back

    async def test_a_take_over_ends_the_retirement_that_it_waited_for_and_no_other(
        self, records: RecordHarness
    ) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            first = await retiring(records, sweep)
            seen = await node.register("cto")
            unmarked = await sweep.unmark(first)
            assert unmarked is not None
            second = await sweep.mark(unmarked, by="sweep-2")

            stands = await node.take_over(seen)

            assert second is not None
            assert stands == second.record
            assert await found(sweep) == second

    async def test_a_take_over_after_the_retirement_ended_registers_the_seat(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, sweep)
            seen = await node.register("cto")
            await sweep.forget(mark)

            stands = await node.take_over(seen)

            assert (stands.is_retiring, stands.absent_since) == (False, None)
            assert (await found(node)).record == stands

    async def test_a_record_that_is_forgotten_is_gone_for_every_node(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, sweep)

            assert await sweep.forget(mark)
            assert await sweep.forget(mark)

            assert await node.get("cto") is None
            assert await node.every() == []

    async def test_forgetting_again_does_not_take_a_seat_that_came_back(self, records: RecordHarness) -> None:
        with scaled():
            sweep, node = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, sweep)
            await sweep.forget(mark)
            back = await node.register("cto")

            assert not await sweep.forget(mark)
            assert (await found(node)).record == back

    async def test_a_mark_that_a_dead_sweep_left_is_anothers_once_it_is_old(self, records: RecordHarness) -> None:
        with scaled():
            dead, alive = self.kind(await records.client(MAILBOXES)), self.kind(await records.client(MAILBOXES))
            left = await retiring(records, dead)
            young = await alive.mark(left, by="sweep-2")
            await records.advance(ABANDONED_S + LATER_S)

            resumed = await alive.mark(left, by="sweep-2")

            assert young is None
            assert resumed is not None
            assert resumed.record.retiring_by == "sweep-2"
            assert not await dead.forget(left)

    async def test_a_retirement_that_failed_is_given_up_and_begun_again(self, records: RecordHarness) -> None:
        with scaled():
            mailboxes = self.kind(await records.client(MAILBOXES))
            mark = await retiring(records, mailboxes)

            unmarked = await mailboxes.unmark(mark)

            assert unmarked is not None
            assert not unmarked.record.is_retiring
            assert unmarked.record.absent_since == mark.record.absent_since
            assert await mailboxes.mark(unmarked, by="sweep-2") is not None

    async def test_a_sweep_that_never_heard_of_its_mark_has_it_all_the_same(self, records: RecordHarness) -> None:
        with scaled():
            store = await records.client(MAILBOXES)
            mailboxes = self.kind(store)
            absent = await gone_for_good(records, mailboxes)
            records.cut_after_write(store)
            await goes_unheard(mailboxes.mark(absent, by="sweep-1"))
            await records.mend(store)

            mark = await mailboxes.mark(absent, by="sweep-1")

            assert mark is not None
            assert await mailboxes.mark(absent, by="sweep-2") is None
            assert await mailboxes.forget(mark)
