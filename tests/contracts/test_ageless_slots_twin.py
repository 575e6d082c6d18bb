"""Every slot without an age keeps its promises on the twin."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crewlet.testing.contracts import RecordHarness
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.contracts.slot_channels import ChannelPromises
from crewlet.testing.contracts.slot_integrations import IntegrationPromises
from crewlet.testing.contracts.slot_mailboxes import MailboxPromises, RetirementPromises
from crewlet.testing.contracts.slot_marker_sweep import MarkerSweepPromises
from crewlet.testing.contracts.slot_objects import ObjectPromises
from crewlet.testing.contracts.slot_pause_copy import PauseCopyPromises
from crewlet.testing.contracts.slot_positions import PositionPromises
from crewlet.testing.contracts.slot_sandbox_runs import RunFencePromises, SandboxRunPromises
from crewlet.testing.contracts.slot_seat_pauses import SeatPausePromises
from crewlet.testing.contracts.slot_secrets import SecretPromises

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def records() -> AsyncIterator[RecordHarness]:
    async with MemoryRecords() as harness:
        yield harness


class TestSandboxRun(SandboxRunPromises): ...


class TestRunFence(RunFencePromises): ...


class TestSecret(SecretPromises): ...


class TestIntegration(IntegrationPromises): ...


class TestObject(ObjectPromises): ...


class TestPosition(PositionPromises): ...


class TestMailbox(MailboxPromises): ...


class TestRetirement(RetirementPromises): ...


class TestChannel(ChannelPromises): ...


class TestMarkerSweep(MarkerSweepPromises): ...


class TestSeatPause(SeatPausePromises): ...


class TestPauseCopy(PauseCopyPromises): ...
