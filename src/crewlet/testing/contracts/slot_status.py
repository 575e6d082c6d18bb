"""Promises about the nodes' statuses: one row a node, as it last reported, for as long as it reports."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import ClassVar

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import STATUS, NodeStatus, NodeStatuses
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["NodeStatusPromises"]


def _status(records: RecordHarness, node: str, epoch: int, *, status: str = "ok") -> NodeStatus:
    return NodeStatus(
        node=node,
        epoch=epoch,
        revision_id=f"r{epoch}",
        status=status,
        posture="serve",
        reported_at=records.clock.now(),
    )


class NodeStatusPromises(Contract):
    """Statuses: each node's own last word, all of them or none."""

    kind: ClassVar[type[NodeStatuses]] = NodeStatuses

    async def node(self, records: RecordHarness) -> NodeStatuses:
        """The statuses as a node of its own reads them."""
        return self.kind(await records.client(STATUS))

    @pytest.mark.spec("C-064")
    async def test_every_node_reads_what_each_applied_and_when_it_said_so(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        north, south = _status(records, "north", 7), _status(records, "so uth", 6, status="error")

        await there.report(south)
        await here.report(north)

        assert await here.all() == await there.all() == [north, south]

    async def test_a_report_takes_the_place_of_the_nodes_last(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.report(_status(records, "north", 7))
        later = _status(records, "north", 8)

        await here.report(later)

        assert await there.all() == [later]

    @pytest.mark.spec("C-128")
    async def test_a_node_that_falls_silent_leaves_the_view(self, records: RecordHarness) -> None:
        store = await records.client(replaced(STATUS, age_s=2.0))
        node = self.kind(store)
        await node.report(_status(records, "north", 7))
        await node.report(_status(records, "south", 7))
        await records.advance(1.2)
        await node.report(_status(records, "south", 7))
        await records.advance(1.2)

        assert [each.node for each in await node.all()] == ["south"]

    async def test_an_unreachable_store_is_no_fleet_without_nodes(self, records: RecordHarness) -> None:
        store = await records.client(STATUS)
        node = self.kind(store)
        await node.report(_status(records, "north", 7))
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.report(_status(records, "north", 8))
        with pytest.raises(Unavailable):
            await node.all()

    async def test_a_status_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.report(_status(records, "north", 7))

        await records.disturb()

        assert [each.node for each in await there.all()] == ["north"]
