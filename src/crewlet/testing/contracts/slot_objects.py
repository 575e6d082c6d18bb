"""Promises about the company's file store: named once, by the first node, and refused by whoever has another."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import StartRefused, Unavailable
from crewlet.coordination import OBJECTS, CollectorReport, ObjectBackend, Objects
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["ObjectPromises"]

HERE = ObjectBackend(location="nats", recorded_by="node-0", recorded_at=AT)
THERE = ObjectBackend(location="s3:eu/files/acme", recorded_by="node-1", recorded_at=AT)
AUDIT = CollectorReport(
    kind="audit", node="node-0", started_at=AT, finished_at=AT, counts={"missing": 1}, missing=("ab" * 32,)
)


class ObjectPromises(Contract):
    """What is true of where the files are, and of what was last found among them."""

    kind: ClassVar[type[Objects]] = Objects

    @pytest.mark.spec("C-086")
    async def test_a_node_with_another_store_than_the_first_is_refused_and_both_are_named(
        self, records: RecordHarness
    ) -> None:
        first, second = self.kind(await records.client(OBJECTS)), self.kind(await records.client(OBJECTS))
        assert await first.agree(HERE) == HERE
        await records.disturb()

        with pytest.raises(StartRefused) as caught:
            await second.agree(THERE)

        assert "'nats'" in str(caught.value)
        assert "'s3:eu/files/acme'" in str(caught.value)
        assert await second.backend() == HERE

    @pytest.mark.spec("C-086")
    async def test_of_two_first_nodes_with_different_stores_one_is_refused(self, records: RecordHarness) -> None:
        first, second = self.kind(await records.client(OBJECTS)), self.kind(await records.client(OBJECTS))

        ended = await asyncio.gather(first.agree(HERE), second.agree(THERE), return_exceptions=True)

        assert sum(isinstance(each, StartRefused) for each in ended) == 1
        assert await first.backend() in ended

    async def test_a_node_with_the_same_store_reads_who_named_it(self, records: RecordHarness) -> None:
        first, second = self.kind(await records.client(OBJECTS)), self.kind(await records.client(OBJECTS))
        await first.agree(HERE)

        assert await second.agree(replace(HERE, recorded_by="node-1", recorded_at=AT + timedelta(days=1))) == HERE

    async def test_a_first_node_whose_answer_was_lost_is_not_refused(self, records: RecordHarness) -> None:
        store = await records.client(OBJECTS)
        objects = self.kind(store)
        records.cut_after_write(store)
        await goes_unheard(objects.agree(HERE))
        await records.mend(store)

        assert await objects.agree(HERE) == HERE

    @pytest.mark.spec("C-142")
    async def test_no_clock_takes_what_was_agreed(self, records: RecordHarness) -> None:
        store = await records.client(OBJECTS)
        objects = self.kind(store)
        await objects.agree(HERE)
        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await objects.backend() == HERE

    @pytest.mark.spec("C-087", "C-142")
    async def test_every_node_reads_the_latest_report_of_each_pass(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(OBJECTS)), self.kind(await records.client(OBJECTS))
        collection = replace(AUDIT, kind="collection", counts={"deleted": 3}, missing=())
        later = replace(AUDIT, node="node-1", finished_at=AT + timedelta(hours=24), missing=())
        for report in (AUDIT, collection):
            await here.report(report)

        await there.report(later)
        await records.disturb()

        assert await here.reports() == [later, collection]

    async def test_a_report_that_comes_late_does_not_replace_a_later_one(self, records: RecordHarness) -> None:
        objects = self.kind(await records.client(OBJECTS))
        later = replace(AUDIT, node="node-1", finished_at=AT + timedelta(hours=24))
        await objects.report(later)

        assert await objects.report(AUDIT) == later
        assert await objects.reports() == [later]

    async def test_what_a_newer_build_wrote_stays(self, records: RecordHarness) -> None:
        store = await records.client(OBJECTS)
        objects = self.kind(store)
        await objects.report(AUDIT)
        await add_fields(store, "collector.audit", verified=12)

        await objects.report(replace(AUDIT, finished_at=AT + timedelta(hours=24)))

        assert (await fields(store, "collector.audit"))["verified"] == 12

    async def test_a_store_that_cannot_be_asked_agrees_to_nothing(self, records: RecordHarness) -> None:
        store = await records.client(OBJECTS)
        objects = self.kind(store)
        await objects.agree(HERE)

        await has_no_answer(
            records,
            store,
            lambda: objects.agree(HERE),
            objects.backend,
            lambda: objects.report(AUDIT),
            objects.reports,
        )
        await damage(store, "backend")

        for call in (objects.agree(HERE), objects.backend()):
            with pytest.raises(Unavailable):
                await call
