"""Promises about the config pointer: one revision is current, moved only from the epoch that its mover saw."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import CONFIG, ActiveConfig, ConfigPointer, ConfigPointers, Revision
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["ConfigPointerPromises"]

NONE = Revision(0)


def _to(records: RecordHarness, revision: str, *, activation: str = "", behind_s: float = 0.0) -> ConfigPointer:
    at = records.clock.now() - timedelta(seconds=behind_s)
    return ConfigPointer(
        activation_id=activation or f"to {revision}", revision_id=revision, activated_by="ada", activated_at=at
    )


class ConfigPointerPromises(Contract):
    """The pointer: compare-and-set, its own revision the epoch, published where there is none."""

    kind: ClassVar[type[ConfigPointers]] = ConfigPointers

    async def node(self, records: RecordHarness) -> ConfigPointers:
        """The pointer as a node of its own reads it."""
        return self.kind(await records.client(CONFIG))

    async def test_a_company_has_no_pointer_before_its_first_activation(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        wanted = _to(records, "r1")

        before = await there.current()
        activated = await here.activate(wanted, expected=NONE)

        assert before is None
        assert activated.pointer == wanted
        assert await there.current() == activated

    @pytest.mark.spec("C-063")
    async def test_each_activation_has_a_later_epoch_which_is_the_records_revision(
        self, records: RecordHarness
    ) -> None:
        store = await records.client(CONFIG)
        node = self.kind(store)

        first = await node.activate(_to(records, "r1"), expected=NONE)
        second = await node.activate(_to(records, "r2"), expected=first.epoch)

        [record] = await store.list("company.>")
        assert first.epoch < second.epoch == record.revision
        assert await node.current() == second

    async def test_an_activation_from_a_past_epoch_is_refused_naming_the_current(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        first = await here.activate(_to(records, "r1"), expected=NONE)
        second = await there.activate(_to(records, "r2"), expected=first.epoch)

        for past in (NONE, first.epoch):
            with pytest.raises(Conflict) as caught:
                await here.activate(_to(records, "r3"), expected=past)
            assert (caught.value.expected, caught.value.current) == (past, second.epoch)
        assert await here.current() == second

    async def test_an_activation_from_an_epoch_that_never_was_is_refused(self, records: RecordHarness) -> None:
        node = await self.node(records)

        with pytest.raises(Conflict):
            await node.activate(_to(records, "r1"), expected=Revision(7))

        assert await node.current() is None

    async def test_of_several_activations_from_one_epoch_one_stands(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]
        first = await nodes[0].activate(_to(records, "r0"), expected=NONE)

        outcomes = await asyncio.gather(
            *(
                node.activate(_to(records, f"r{each}"), expected=first.epoch)
                for each, node in enumerate(nodes, start=1)
            ),
            return_exceptions=True,
        )

        stands = [each for each in outcomes if isinstance(each, ActiveConfig)]
        assert [await nodes[0].current()] == stands
        assert all(isinstance(each, ActiveConfig | Conflict) for each in outcomes)

    async def test_the_same_revision_activated_again_is_another_epoch(self, records: RecordHarness) -> None:
        node = await self.node(records)
        first = await node.activate(_to(records, "r1", activation="a1"), expected=NONE)

        again = await node.activate(_to(records, "r1", activation="a2"), expected=first.epoch)

        assert again.epoch > first.epoch

    async def test_an_activation_is_dated_after_the_one_before_it(self, records: RecordHarness) -> None:
        here, behind = await self.node(records), await self.node(records)
        first = await here.activate(_to(records, "r1"), expected=NONE)

        second = await behind.activate(_to(records, "r2", behind_s=60), expected=first.epoch)

        assert second.pointer.activated_at - first.pointer.activated_at == timedelta(milliseconds=1)

    async def test_a_revision_is_published_where_there_is_none(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)

        published = await here.publish(_to(records, "r1"))
        other = await there.publish(_to(records, "r2"))

        assert published == other == await there.current()
        assert published.pointer.revision_id == "r1"

    async def test_who_lost_the_answer_finds_its_activation_under_its_epoch(self, records: RecordHarness) -> None:
        store = await records.client(CONFIG)
        node, peer = self.kind(store), await self.node(records)
        first = await node.activate(_to(records, "r1"), expected=NONE)
        records.cut_after_write(store)

        await goes_unheard(node.activate(_to(records, "r2"), expected=first.epoch))
        await records.mend(store)
        again = await node.activate(_to(records, "r2"), expected=first.epoch)

        assert again.pointer.revision_id == "r2"
        assert await peer.current() == again

    async def test_an_activation_that_arrives_late_moves_nothing(self, records: RecordHarness) -> None:
        store = await records.client(CONFIG)
        node, peer = self.kind(store), await self.node(records)
        first = await node.activate(_to(records, "r1"), expected=NONE)
        records.withhold(store)

        with pytest.raises(Unavailable):
            await node.activate(_to(records, "r2"), expected=first.epoch)
        second = await peer.activate(_to(records, "r3"), expected=first.epoch)
        await records.deliver(store)

        assert await node.current() == second
        with pytest.raises(Conflict):
            await node.activate(_to(records, "r2"), expected=first.epoch)

    async def test_an_unreachable_store_is_no_company_without_a_pointer(self, records: RecordHarness) -> None:
        store = await records.client(CONFIG)
        node = self.kind(store)
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.current()
        with pytest.raises(Unavailable):
            await node.activate(_to(records, "r1"), expected=NONE)
        with pytest.raises(Unavailable):
            await node.publish(_to(records, "r1"))

    async def test_the_pointer_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        first = await here.activate(_to(records, "r1"), expected=NONE)

        await records.disturb()
        second = await there.activate(_to(records, "r2"), expected=first.epoch)

        assert await here.current() == second
