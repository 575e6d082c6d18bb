"""What a bucket's opening takes for its state, against a scripted broker."""

from __future__ import annotations

import pytest

from crewlet.backends.nats import JetStream
from crewlet.backends.nats.buckets import open_bucket
from crewlet.coordination.slots import LEDGER
from crewlet.testing.ids import SeededIds
from tests.unit.backends.bucket_server import BucketServer

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(("leader", "led"), [("", False), ("member1", True)])
async def test_an_opened_bucket_says_whether_a_leader_spoke_for_it(leader: str, led: bool) -> None:
    """During an election each member speaks from its own copy, which may lack what was confirmed."""
    server = BucketServer()
    server.leader = leader

    opened = await open_bucket(JetStream(server), LEDGER, storage="file", ids=SeededIds())

    assert (opened.led, opened.last_revision) == (led, server.last_seq)
