"""Promises about cooldowns: an instant that every node reads the same, and that only ever moves further away."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import COOLDOWNS, Cooldown, Cooldowns
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.waiting import wait_until

__all__ = ["CooldownPromises"]


def _cooldown(records: RecordHarness, minutes: float, *, entry: str = "fast", by: str = "one") -> Cooldown:
    until = records.clock.now() + timedelta(minutes=minutes)
    return Cooldown(provider_key=entry, hint="0123456789ab", until=until, reason="rate_limited", reported_by=by)


async def _until(cooldowns: Cooldowns) -> dict[str, datetime]:
    return {each.provider_key: each.until for each in await cooldowns.all()}


class CooldownPromises(Contract):
    """Cooldowns: written at once, whoever hangs up; extended, never shortened; nothing when out of reach."""

    kind: ClassVar[type[Cooldowns]] = Cooldowns

    async def node(self, records: RecordHarness) -> Cooldowns:
        """The cooldowns as a node of its own reads them."""
        return self.kind(await records.client(COOLDOWNS))

    @pytest.mark.spec("C-068", "C-098")
    async def test_what_one_node_publishes_another_reads_as_the_same_instant(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        cooldown = _cooldown(records, 60)

        await here.publish(cooldown)
        at_once = await there.all()
        await records.advance(0.5)
        later = await there.all()

        assert at_once == later == [cooldown]

    @pytest.mark.spec("C-099")
    async def test_a_later_end_extends_and_an_earlier_shortens_nothing(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        short, long, longest = (_cooldown(records, minutes) for minutes in (1, 60, 90))

        await here.publish(long)
        await there.publish(short)
        after_the_earlier = await _until(there)
        await there.publish(longest)

        assert after_the_earlier == {"fast": long.until}
        assert await _until(here) == {"fast": longest.until}

    async def test_of_several_ends_at_once_the_furthest_stands(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]
        cooldowns = [_cooldown(records, 20 - each, by=f"n{each}") for each in range(4)]

        await asyncio.gather(*(node.publish(each) for node, each in zip(nodes, cooldowns, strict=True)))

        assert await nodes[0].all() == [cooldowns[0]]

    @pytest.mark.spec("C-101")
    async def test_a_key_rests_in_one_entry_alone(self, records: RecordHarness) -> None:
        node = await self.node(records)
        fast, smart = _cooldown(records, 60), _cooldown(records, 1, entry="smart")

        await node.publish(fast)
        alone = await _until(node)
        await node.publish(smart)

        assert alone == {"fast": fast.until}
        assert await _until(node) == {"fast": fast.until, "smart": smart.until}

    @pytest.mark.spec("C-095")
    async def test_a_publish_whose_caller_hung_up_lands(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        cooldown = _cooldown(records, 60)

        calling = Tasks("caller").start("publish", here.publish(cooldown))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

        async def landed() -> bool:
            return await there.all() == [cooldown]

        await wait_until(landed, what="the cooldown of a caller that hung up")
        assert calling.cancelled()

    async def test_what_cannot_be_published_costs_its_caller_nothing(self, records: RecordHarness) -> None:
        store = await records.client(COOLDOWNS)
        node, peer = self.kind(store), await self.node(records)
        await records.cut(store)

        await node.publish(_cooldown(records, 60))

        assert await peer.all() == []

    @pytest.mark.spec("C-100")
    async def test_what_cannot_be_read_is_no_empty_list(self, records: RecordHarness) -> None:
        store = await records.client(COOLDOWNS)
        node = self.kind(store)
        await node.publish(_cooldown(records, 60))
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.all()

    async def test_a_cooldown_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        cooldown = _cooldown(records, 60)
        await here.publish(cooldown)

        await records.disturb()

        assert await there.all() == [cooldown]
