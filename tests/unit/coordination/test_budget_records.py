"""A budget record as bytes: what it looks like, what survives of a successor's, and what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import UNCAPPED, BudgetRecord, Ceilings, Period, Spend, agent_scope, windows_at, without_room
from crewlet.coordination.records.budget_charge import refusals_of
from crewlet.coordination.records.budget_record import Lane, counted, landed, laneless, refused, scope_key
from crewlet.coordination.records.codec import decode_record, encode_record

AT = datetime(2026, 9, 23, 12, 0, tzinfo=UTC)
WINDOWS = windows_at(AT, ZoneInfo("UTC"))
CHARGED = counted(BudgetRecord(scope="org"), WINDOWS, 10, lane="t1", number=3, ceilings=Ceilings(day=5))


def changed(**fields: object) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(encode_record(CHARGED)), **fields})


@pytest.mark.spec("C-069")
def test_a_record_has_a_slot_for_each_period_and_its_lanes_beside_them() -> None:
    assert msgspec.json.decode(encode_record(CHARGED)) == {
        "scope": "org",
        "day": {"label": "2026-09-23", "used": 10, "refused_at": "2026-09-23T12:00:00Z"},
        "week": {"label": "2026-W39", "used": 10, "refused_at": None},
        "month": {"label": "2026-09", "used": 10, "refused_at": None},
        "lanes": {"t1": [3, ["day"], "2026-09-23T12:00:00"]},
    }


def test_what_a_successor_wrote_survives_our_charge_and_our_mark() -> None:
    slot = {"label": "2026-09-22", "used": 1, "refused_at": None, "refusals": 4}
    record = decode_record(BudgetRecord, changed(day=slot, motto="thrift"))

    later = counted(record, WINDOWS, 1, lane="t2", number=1, ceilings=None)
    marked = refused(later, WINDOWS, Ceilings(day=0))

    written = msgspec.json.decode(encode_record(marked))
    assert (written["motto"], written["day"]["refusals"], written["day"]["used"]) == ("thrift", 4, 1)


def test_a_refusal_by_a_period_that_only_a_newer_build_counts_is_a_refusal() -> None:
    record = decode_record(BudgetRecord, changed(lanes={"t1": [3, ["year"], "2026-09-23"]}))

    (refusal,) = refusals_of(record, landed(record, "t1", 3) or (), UNCAPPED)

    assert (refusal.period, refusal.label) == ("year", "")
    assert msgspec.json.decode(encode_record(record))["lanes"]["t1"] == [3, ["year"], "2026-09-23"]


UNREADABLE: tuple[tuple[str, object], ...] = (
    ("day", {"label": "zzz", "used": 1}),
    ("week", {"label": "2026-09-23", "used": 1}),
    ("month", {"label": "2026-09", "used": "much"}),
    ("lanes", {"t1": ["three", ["day"], "2026-09-23"]}),
    ("scope", 7),
)


@pytest.mark.parametrize(("field", "value"), UNREADABLE)
def test_what_cannot_be_read_is_unknown_and_not_unspent(field: str, value: object) -> None:
    with pytest.raises(Unavailable, match="BudgetRecord"):
        decode_record(BudgetRecord, changed(**{field: value}))


def test_without_its_lanes_a_record_says_the_same() -> None:
    value = changed(motto="thrift", lanes={f"t{each}": (1, (), "2026-09-23") for each in range(100)})

    alone = decode_record(BudgetRecord, laneless(value))

    assert alone == replace(decode_record(BudgetRecord, value), lanes={})
    assert alone.unknown == {"motto": "thrift"}


@pytest.mark.parametrize("value", [b"", b"[]", b'{"scope":7}', changed(day={"label": "zzz", "used": 1})])
def test_what_cannot_be_read_is_unknown_without_its_lanes_too(value: bytes) -> None:
    with pytest.raises(Unavailable, match="BudgetRecord"):
        decode_record(BudgetRecord, laneless(value))


def test_a_scope_has_a_key_of_its_own_class() -> None:
    assert (scope_key("org"), scope_key(agent_scope("a-1"))) == ("org", "agent.a-1")
    assert scope_key(agent_scope("with space")).startswith("agent.=")


def test_a_lane_says_what_refused_its_last_charge() -> None:
    assert landed(CHARGED, "t1", 3) == (Period.DAY,)
    assert landed(CHARGED, "t1", 2) == (Period.DAY,)
    assert landed(CHARGED, "t1", 4) is None
    assert landed(CHARGED, "t2", 1) is None


def test_only_a_ceiling_leaves_no_room() -> None:
    assert without_room(CHARGED, Ceilings(day=10, week=11, month=9)) == (Period.DAY, Period.MONTH)
    assert without_room(CHARGED, Ceilings()) == ()


@pytest.mark.parametrize("fields", [{"tokens": -1}, {"number": 0}, {"lane": ""}])
def test_what_could_not_be_counted_is_refused_before_it_is_sent(fields: dict[str, object]) -> None:
    spend: dict[str, object] = {"tokens": 1, "lane": "t1", "number": 1, **fields}
    with pytest.raises(ValueError, match="no charge"):
        msgspec.convert(spend, Spend)


def test_of_too_many_lanes_the_oldest_go() -> None:
    old = {f"a{each}": Lane(1, (), "2026-09-22T08:00:00") for each in range(10)}
    young = {f"b{each}": Lane(1, (), "2026-09-22T08:00:01") for each in range(limits.BUDGET_LANES_MAX - 5)}
    crowded = replace(CHARGED, lanes={**old, **young})

    after = counted(crowded, WINDOWS, 1, lane="now", number=1, ceilings=None)

    assert len(after.lanes) == limits.BUDGET_LANES_MAX
    assert young.keys() | {"now"} <= after.lanes.keys()
