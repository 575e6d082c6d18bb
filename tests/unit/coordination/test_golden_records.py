"""The bytes of each released record: what was written once is read for ever, and is written the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from crewlet.coordination import Completion, answered, closed, opened
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
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_as_it_was_released(name: str) -> None:
    assert encode_record(RECORDS[name]) == (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("name", RECORDS)
def test_a_released_record_is_read(name: str) -> None:
    assert decode_record(type(RECORDS[name]), (GOLDEN / f"{name}.json").read_bytes()) == RECORDS[name]


def test_every_released_record_is_held_to() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == RECORDS.keys()
