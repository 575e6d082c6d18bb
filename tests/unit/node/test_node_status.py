"""What a node says of itself with each heartbeat, as a peer reads it from the node's presence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.fence import ServingPosture
from crewlet.coordination import KvLeases
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.node.node_status import NodeStatusSource
from crewlet.seats import Host, HostConfig, NodeRow, node_row
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tools import ServerStatus
from tests.unit.seats.test_fleet import Attachments, Hooks

pytestmark = pytest.mark.virtual_time

HEARTBEAT_S = 15.0


@dataclass
class Fleet:
    """One store, and the leases of any number of nodes on it."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    buckets: list[MemoryBucket] = field(default_factory=list[MemoryBucket])
    opened: list[KvLeases] = field(default_factory=list[KvLeases])

    def leases(self) -> KvLeases:
        """Those of one more node."""
        self.buckets = self.buckets or [MemoryBucket(slot, self.clock) for slot in (LEASES, DUTIES, EPOCHS)]
        leases, duties, epochs = (MemoryRecordStore(bucket) for bucket in self.buckets)
        ids = SeededIds(len(self.opened))
        made = KvLeases(leases=leases, duties=duties, epochs=epochs, clock=self.clock, ids=ids)
        self.opened.append(made)
        return made


@pytest.mark.spec("C-191")
async def test_a_peer_reads_what_a_node_does_and_what_became_of_its_tool_servers_anew_with_each_heartbeat() -> None:
    fleet, turns, servers = Fleet(), [1], list[ServerStatus]()
    started_at = fleet.clock.now()
    source = NodeStatusSource(
        in_flight=lambda: turns[0],
        posture=ServingPosture(),
        tool_servers=lambda: servers,
        started_at=started_at,
        broker="twin",
    )
    config = HostConfig(owner="a:0", node_id="a", roles=("seats", "data"), labels={"zone": "b"})
    hooks = Hooks("a:0", Attachments())
    host = Host(leases=fleet.leases(), hooks=hooks, clock=fleet.clock, config=config, status=source)
    peer = fleet.leases()

    async def read() -> NodeRow:
        (lease,) = await peer.held("node")
        return node_row(lease)

    await host.start([])
    before = await read()
    turns[0], source.draining = 4, True
    servers.append(
        ServerStatus(name="notes", shared=True, started=1, failed=2, tools=7, error="no such file", seat="ceo")
    )
    await asyncio.sleep(HEARTBEAT_S)
    after = await read()

    assert (after.roles, after.labels) == (("seats", "data"), {"zone": "b"})
    assert [(row.status["in_flight"], row.status["draining"], len(row.status["mcp"])) for row in (before, after)] == [
        (1, False, 0),
        (4, True, 1),
    ]
    assert (after.status["posture"], after.status["started_at"]) == ("serve", started_at.isoformat())
    assert after.status["mcp"] == [
        {
            "name": "notes",
            "shared": True,
            "started": 1,
            "failed": 2,
            "tools": 7,
            "error": "no such file",
            "seat": "ceo",
        }
    ]
    await host.release_all()
    for leases in fleet.opened:
        await leases.close()
