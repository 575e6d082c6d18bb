"""What the node file says of the streams is what the broker holds once the node stands on it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ns
from crewlet.base.clock import SystemClock
from crewlet.base.errors import StartRefused
from crewlet.base.ids import RandomIds
from crewlet.config import load_node_file
from crewlet.node.ground import lay_ground

pytestmark = pytest.mark.slow

WRITTEN = """
stream:
  mailbox_max_bytes: 600001
  event_max_bytes: 600002
  config_max_bytes: 600003
  dead_letter_max_bytes: 600004
  journal_max_bytes: 600005
  event_retention_hours: 48
"""


async def in_force(folder: Path, text: str) -> dict[str, tuple[int, int]]:
    """The size and the age of each of the queue's streams under a node of this file."""
    file = folder / "crewlet.yaml"
    file.write_text(text)
    async with AsyncExitStack() as stack:
        ground = await lay_ground(load_node_file(file, {}).config, SystemClock(), RandomIds(), stack)
        found: dict[str, tuple[int, int]] = {}
        for name in (
            topics.STREAM_AGENT,
            topics.STREAM_NOTIFICATIONS,
            topics.STREAM_EVENTS,
            topics.STREAM_CONFIG,
            topics.STREAM_DLQ,
            topics.STREAM_JOURNAL,
        ):
            info = await ground.access.api.stream_info(name)
            assert info is not None
            found[name] = (info.config.max_bytes, info.config.max_age)
        return found


@pytest.mark.spec("E-022", "E-024")
async def test_sizes_and_ages_of_the_file_are_those_of_the_streams(tmp_path: Path) -> None:
    found = await in_force(tmp_path, WRITTEN)

    assert found == {
        topics.STREAM_AGENT: (600_001, 0),
        topics.STREAM_NOTIFICATIONS: (600_001, 0),
        topics.STREAM_EVENTS: (600_002, ns(48 * 3600)),
        topics.STREAM_CONFIG: (600_003, ns(3600)),
        topics.STREAM_DLQ: (600_004, ns(48 * 3600)),
        topics.STREAM_JOURNAL: (600_005, ns(7 * 86400)),
    }


async def test_a_size_written_down_later_changes_the_streams_that_are_there(tmp_path: Path) -> None:
    before = await in_force(tmp_path, "{}")

    after = await in_force(tmp_path, WRITTEN)

    assert before[topics.STREAM_EVENTS][0] > 600_002
    assert after[topics.STREAM_EVENTS][0] == 600_002


async def test_a_size_that_the_machine_does_not_have_is_refused_naming_the_field(tmp_path: Path) -> None:
    with pytest.raises(StartRefused) as refused:
        await in_force(tmp_path, f"stream: {{dead_letter_max_bytes: {1024**5}}}")

    assert "stream.dead_letter_max_bytes" in refused.value.remedy
