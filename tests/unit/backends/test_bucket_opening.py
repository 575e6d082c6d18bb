"""What a bucket's opening takes for its state, against a scripted broker."""

from __future__ import annotations

import pytest

from crewlet.backends.nats import JetStream
from crewlet.backends.nats.buckets import open_bucket
from crewlet.base.errors import Unavailable
from crewlet.coordination.slots import LEDGER
from crewlet.testing.ids import SeededIds
from tests.unit.backends.bucket_server import BucketServer

pytestmark = pytest.mark.virtual_time


async def test_what_a_member_says_of_its_own_copy_during_an_election_opens_no_bucket() -> None:
    """It may lack what was confirmed, and the node would take the bucket for one that was emptied."""
    server = BucketServer()
    server.leader = ""

    with pytest.raises(Unavailable, match="no leader"):
        await open_bucket(JetStream(server), LEDGER, storage="file", ids=SeededIds())

    server.leader = "member1"
    opened = await open_bucket(JetStream(server), LEDGER, storage="file", ids=SeededIds())
    assert opened.last_revision == server.last_seq
