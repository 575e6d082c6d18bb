"""Promises about asks over the store: what maintenance finds, and that it takes nothing that moved on."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import CHANNELS, Channels, ChannelStatus, Revision, opened
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, damage, has_no_answer

__all__ = ["ChannelPromises"]

ASK = opened(channel_id="c1", requester="ceo", target="cto", at=AT, brief="which?")
LATER = AT + timedelta(minutes=5)
HOUR = timedelta(hours=1)


class ChannelPromises(Contract):
    """What is true of a channel, whichever node reads it."""

    kind: ClassVar[type[Channels]] = Channels

    @pytest.mark.spec("C-073")
    async def test_the_answering_seats_node_reads_what_the_asking_ones_wrote(self, records: RecordHarness) -> None:
        asking, answering = self.kind(await records.client(CHANNELS)), self.kind(await records.client(CHANNELS))
        await asking.open(ASK)
        await records.disturb()

        read = await answering.get("c1")
        await answering.answer("c1", at=LATER, answer_event_id="e2")

        assert read == ASK
        assert (answered := await asking.get("c1")) is not None
        assert answered.status is ChannelStatus.ANSWERED

    async def test_what_nobody_touched_for_long_enough_is_idle_answered_or_not(self, records: RecordHarness) -> None:
        channels = self.kind(await records.client(CHANNELS))
        for number in range(4):
            await channels.open(replace(ASK, channel_id=f"c{number}"))
        await channels.answer("c1", at=AT, answer_event_id="e2")
        await channels.answer("c2", at=AT + HOUR, answer_event_id="e3")
        await channels.close("c3", at=AT)
        await records.disturb()

        idle = await channels.idle(since=LATER)

        assert [each.record.channel_id for each in idle] == ["c0", "c1"]

    async def test_an_ask_that_is_answered_meanwhile_is_not_closed_as_idle(self, records: RecordHarness) -> None:
        maintenance, answering = self.kind(await records.client(CHANNELS)), self.kind(await records.client(CHANNELS))
        await answering.open(ASK)
        [idle] = await maintenance.idle(since=LATER)
        await answering.answer("c1", at=AT + HOUR, answer_event_id="e2")

        assert await maintenance.close_idle(idle.record.channel_id, since=LATER, at=AT + HOUR) is None

        assert (stands := await answering.get("c1")) is not None
        assert stands.status is ChannelStatus.ANSWERED

    async def test_an_idle_ask_is_closed_for_nobody(self, records: RecordHarness) -> None:
        channels = self.kind(await records.client(CHANNELS))
        await channels.open(ASK)

        over = await channels.close_idle("c1", since=LATER, at=AT + HOUR)

        assert over is not None
        assert (over.status, over.closed_at, over.closed_by, over.closed_turn_id) == (
            ChannelStatus.CLOSED,
            AT + HOUR,
            "",
            "",
        )
        assert await channels.close_idle("c1", since=LATER, at=AT + 2 * HOUR) is None
        assert await channels.close_idle("c9", since=LATER, at=AT + HOUR) is None

    async def test_what_was_closed_long_ago_is_found_and_removed(self, records: RecordHarness) -> None:
        channels = self.kind(await records.client(CHANNELS))
        for number, closed_at in enumerate((AT, LATER, AT + HOUR)):
            await channels.open(replace(ASK, channel_id=f"c{number}"))
            await channels.close(f"c{number}", at=closed_at)
        await channels.open(replace(ASK, channel_id="open"))

        old = await channels.closed(before=AT + HOUR)
        for each in old:
            await channels.remove(each.record.channel_id, expected=each.revision)

        assert [each.record.channel_id for each in old] == ["c0", "c1"]
        assert await channels.get("c0") is None
        assert await channels.get("open") is not None
        assert [each.record.channel_id for each in await channels.closed(before=AT + 2 * HOUR)] == ["c2"]

    async def test_a_channel_is_removed_as_it_was_read_alone(self, records: RecordHarness) -> None:
        channels = self.kind(await records.client(CHANNELS))
        await channels.open(ASK)
        [read] = await channels.idle(since=LATER)
        await channels.answer("c1", at=LATER, answer_event_id="e2")

        with pytest.raises(Conflict):
            await channels.remove("c1", expected=read.revision)

        assert await channels.get("c1") is not None

    async def test_no_clock_closes_an_ask_or_takes_its_record(self, records: RecordHarness) -> None:
        store = await records.client(CHANNELS)
        channels = self.kind(store)
        await channels.open(ASK)
        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await channels.get("c1") == ASK

    async def test_asks_that_cannot_be_listed_are_not_none(self, records: RecordHarness) -> None:
        store = await records.client(CHANNELS)
        channels = self.kind(store)
        await channels.open(ASK)

        await has_no_answer(
            records,
            store,
            lambda: channels.idle(since=LATER),
            lambda: channels.closed(before=LATER),
            lambda: channels.close_idle("c1", since=LATER, at=LATER),
            lambda: channels.remove("c1", expected=Revision(1)),
        )
        await damage(store, "channel.c1")

        for call in (channels.idle(since=LATER), channels.closed(before=LATER)):
            with pytest.raises(Unavailable):
                await call
