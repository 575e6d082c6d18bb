"""The bytes of each released record: what was written once is read for ever, and is written the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crewlet.coordination import (
    Completion,
    ConfigPointer,
    Cooldown,
    Custody,
    DeliveryClaim,
    Fire,
    Follow,
    NodeStatus,
    RateWindow,
    Rebase,
    answered,
    closed,
    opened,
)
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record

GOLDEN = Path(__file__).with_name("golden")
AT = datetime(2030, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)

_ASK = opened(channel_id="c1", requester="ceo", target="cto", at=AT, brief="which?", trace_id="ab" * 16, turn_id="t1")
_ANSWERED = answered(_ASK, at=AT, answer_event_id="e2", turn_id="t2")
assert _ANSWERED is not None

RECORDS: dict[str, SharedRecord] = {
    "completion": Completion(handle="ceo", id="e1", turn_id="t1", outcome="completed", recorded_at=AT),
    "channel_open": _ASK,
    "channel_closed": closed(_ANSWERED, at=AT, by="cto", turn_id="t2"),
    "config_pointer": ConfigPointer(
        activation_id="a1", revision_id="r1", activated_by="ada", activated_at=AT, summary="first"
    ),
    "node_status": NodeStatus(
        node="node-0",
        epoch=7,
        revision_id="r1",
        status="error",
        posture="isolated",
        reported_at=AT,
        error="company: no seats",
    ),
    "delivery_claim": DeliveryClaim(
        source="github", delivery_id="d1", claimant="c1", claimed_at=AT, deadline=AT + timedelta(minutes=5)
    ),
    "rate_window": RateWindow(handle="ceo", second=1893553445, count=3),
    "cooldown": Cooldown(
        provider_key="fast", hint="0123456789ab", until=AT, reason="rate_limited", reported_by="node-0"
    ),
    "fire": Fire(
        owner="role:ceo", schedule="standup", instant="20300102T0304", target="ceo", claimant="c1", claimed_at=AT
    ),
    "rebase": Rebase(work_key="w1", instant=AT),
    "follow": Follow(
        backend="slack", seat="ceo", channel="C1", thread="1718.001", since=AT, asserted_at=AT, reason="mention"
    ),
    "custody": Custody(batch_id="b1", keeper="node-0", claimed_at=AT),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_as_it_was_released(name: str) -> None:
    assert encode_record(RECORDS[name]) == (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("name", RECORDS)
def test_a_released_record_is_read(name: str) -> None:
    assert decode_record(type(RECORDS[name]), (GOLDEN / f"{name}.json").read_bytes()) == RECORDS[name]


def test_every_released_record_is_held_to() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == RECORDS.keys()
