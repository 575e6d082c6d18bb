"""Every slot without an age keeps its promises on one broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from crewlet.testing.contracts.slot_channels import Asks
from crewlet.testing.contracts.slot_integrations import Surfaces
from crewlet.testing.contracts.slot_mailboxes import MailboxRecords, MailboxRetirement
from crewlet.testing.contracts.slot_marker_sweep import MarkerSweeps
from crewlet.testing.contracts.slot_objects import FileStore
from crewlet.testing.contracts.slot_pause_copy import PauseCopies
from crewlet.testing.contracts.slot_positions import LogPositions
from crewlet.testing.contracts.slot_sandbox_runs import DetachedRuns, RunFencing
from crewlet.testing.contracts.slot_seat_pauses import Pauses
from crewlet.testing.contracts.slot_secrets import Secrets

pytestmark = pytest.mark.slow


@pytest.fixture
async def records(one_broker: Cluster) -> AsyncIterator[RecordHarness]:
    async with JetStreamRecords(one_broker) as harness:
        yield harness


class TestDetachedRuns(DetachedRuns): ...


class TestRunFencing(RunFencing): ...


class TestSecrets(Secrets): ...


class TestSurfaces(Surfaces): ...


class TestFileStore(FileStore): ...


class TestLogPositions(LogPositions): ...


class TestMailboxRecords(MailboxRecords): ...


class TestMailboxRetirement(MailboxRetirement): ...


class TestAsks(Asks): ...


class TestMarkerSweeps(MarkerSweeps): ...


class TestPauses(Pauses): ...


class TestPauseCopies(PauseCopies): ...
