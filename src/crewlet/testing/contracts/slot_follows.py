"""Promises about follows: whoever reads the next reply knows which seats follow its thread."""

from __future__ import annotations

from typing import ClassVar

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import FOLLOWS, Follows, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness, ShiftedClock

__all__ = ["FollowPromises"]

THREAD = ("C1", "1718.001")


class FollowPromises(Contract):
    """Follows: one record for each (backend, seat, channel, thread), written anew by each reason to follow."""

    kind: ClassVar[type[Follows]] = Follows

    def over(self, store: RecordStore, records: RecordHarness, *, shift_s: float = 0.0) -> Follows:
        """Follows as a node reads them whose clock is so far ahead of the others'."""
        return self.kind(store, ShiftedClock(records.clock, shift_s))

    async def node(self, records: RecordHarness, *, shift_s: float = 0.0) -> Follows:
        """Those of a node of its own."""
        return self.over(await records.client(FOLLOWS), records, shift_s=shift_s)

    @pytest.mark.spec("C-083")
    async def test_a_follow_that_one_node_wrote_another_knows(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)

        written = await here.follow("slack", "ceo", *THREAD, reason="mention")

        assert written
        assert await there.is_following("slack", "ceo", *THREAD)
        assert await there.followers("slack", *THREAD) == {"ceo"}

    @pytest.mark.spec("C-083")
    async def test_a_follow_is_of_one_backend_seat_channel_and_thread(self, records: RecordHarness) -> None:
        node = await self.node(records)
        await node.follow("slack", "ceo", *THREAD, reason="mention")

        others = [
            ("mattermost", "ceo", *THREAD),
            ("slack", "cto", *THREAD),
            ("slack", "ceo", "C2", THREAD[1]),
            ("slack", "ceo", "C1", "1718.002"),
        ]

        assert not any([await node.is_following(*each) for each in others])

    async def test_a_thread_is_followed_by_its_own_followers_alone(self, records: RecordHarness) -> None:
        node = await self.node(records)
        for seat in ("ceo", "c t o"):
            await node.follow("slack", seat, *THREAD, reason="mention")
        await node.follow("slack", "coo", "C1", "1718.002", reason="post")
        await node.follow("slack", "cfo", "C1", "", reason="post")

        assert await node.followers("slack", *THREAD) == {"ceo", "c t o"}
        assert await node.followers("slack", "C1", "") == {"cfo"}
        assert await node.followers("slack", "C1", "1718.009") == frozenset()

    async def test_what_a_seat_follows_in_a_channel_is_listed_oldest_first(self, records: RecordHarness) -> None:
        early, late = await self.node(records), await self.node(records, shift_s=60)
        await late.follow("slack", "ceo", "C1", "t1", reason="post")
        await early.follow("slack", "ceo", "C1", "t2", reason="mention")
        await early.follow("slack", "ceo", "C2", "t3", reason="mention")
        await early.follow("slack", "cto", "C1", "t4", reason="mention")

        follows = await early.followed("slack", "ceo", "C1")

        assert [(each.thread, each.reason) for each in follows] == [("t2", "mention"), ("t1", "post")]

    @pytest.mark.spec("C-139")
    async def test_each_reason_to_follow_writes_the_record_anew(self, records: RecordHarness) -> None:
        store = await records.client(FOLLOWS)
        first = self.over(store, records)
        await first.follow("slack", "ceo", *THREAD, reason="dm")
        for minutes, reason in enumerate(("mention", "collective", "post"), start=1):
            [before], [was] = await store.list("slack.>"), await first.followed("slack", "ceo", "C1")

            await (await self.node(records, shift_s=60 * minutes)).follow("slack", "ceo", *THREAD, reason=reason)

            [after], [now] = await store.list("slack.>"), await first.followed("slack", "ceo", "C1")
            assert after.revision > before.revision
            assert after.written_at >= before.written_at
            assert (now.reason, now.since, now.asserted_at > was.asserted_at) == (reason, was.since, True)

    async def test_an_unreachable_store_says_of_nobody_that_it_does_not_follow(self, records: RecordHarness) -> None:
        store = await records.client(FOLLOWS)
        node = self.over(store, records)
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.is_following("slack", "ceo", *THREAD)
        with pytest.raises(Unavailable):
            await node.followers("slack", *THREAD)
        with pytest.raises(Unavailable):
            await node.followed("slack", "ceo", "C1")

    async def test_a_follow_that_cannot_be_written_stops_nobody(self, records: RecordHarness) -> None:
        store = await records.client(FOLLOWS)
        node = self.over(store, records)
        await records.cut(store)

        assert not await node.follow("slack", "ceo", *THREAD, reason="mention")

    async def test_a_follow_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.follow("slack", "ceo", *THREAD, reason="mention")

        await records.disturb()

        assert await there.followers("slack", *THREAD) == {"ceo"}
