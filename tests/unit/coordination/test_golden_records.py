"""The bytes of each released record: what was written once is read for ever, and is written the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from crewlet.coordination import (
    Admission,
    BackupCoverage,
    BudgetRecord,
    CapacityOperation,
    Ceilings,
    CollectorReport,
    Completion,
    ConfigPointer,
    Cooldown,
    Custody,
    DeliveryClaim,
    Finding,
    Fire,
    Follow,
    IntegrationPhase,
    IntegrationStatus,
    NodePosition,
    NodeStatus,
    ObjectBackend,
    OnboardingMark,
    Pin,
    PublishedFloor,
    RateWindow,
    Rebase,
    RestartAcknowledgement,
    RunStatus,
    SandboxRun,
    SealedSecret,
    SealedText,
    SeatMailbox,
    SeatPause,
    answered,
    closed,
    opened,
    windows_at,
)
from crewlet.coordination.lease_record import LeaseRecord
from crewlet.coordination.records.budget_record import counted
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record
from crewlet.coordination.records.epochs import EpochRecord

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
        activation_id="a1",
        revision_id="r1",
        activated_by="ada",
        activated_at=AT,
        summary="first",
        document="name: Acme",
    ),
    "lease_claiming": LeaseRecord(
        resource="seat:ceo", owner="node-0:9f3c1e70", ttl_s=45.0, claim="c1", preferred="node-0", protocol=4
    ),
    "lease": LeaseRecord(
        resource="node:node-0",
        owner="node-0:9f3c1e70",
        ttl_s=45.0,
        epoch=7,
        claim="c1",
        preferred="node-0",
        protocol=4,
        acquired_at=AT,
        after_lapse=False,
        data={"seats_held": 2},
    ),
    "epoch": EpochRecord(resource="seat:ceo", epoch=7, preferred="node-0", released=6, claim="c1"),
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
    "budget": counted(
        BudgetRecord(scope="agent:5f1c0b36"),
        windows_at(AT, ZoneInfo("Asia/Tokyo")),
        1200,
        lane="t1",
        number=2,
        ceilings=Ceilings(day=1000),
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
    "sandbox_run": SandboxRun(
        turn_id="t1",
        launch_id="l1",
        handle="cto",
        status=RunStatus.RESUMED,
        owner="node-0:9f3c1e70",
        owner_epoch=7,
        cell="container",
        started_at=AT,
        updated_at=AT,
        box="box-1",
        conversation={"version": 1, "messages": []},
        resumed_from=RunStatus.AWAITING_CLARIFICATION,
        charged_by="node-0:9f3c1e70",
        question="which?",
        paused_at=AT,
        pause_ttl_s=1800.0,
    ),
    "sealed_secret": SealedSecret(
        name="SLACK_TOKEN",
        sealed=SealedText("enc:v1:k1:c2VhbGVk"),
        key_id="k1",
        updated_at=AT,
        updated_by="ada",
        updated_by_kind="operator",
        operator_id="o1",
        source="cli",
    ),
    "integration": IntegrationStatus(
        surface="github",
        phase=IntegrationPhase.DEGRADED,
        actor="admin",
        detail="an approval is missing",
        action_url="https://github.example/approve",
        outcome="partial",
        attempts=2,
        last_error="timeout",
        last_attempt_at=AT,
        settled_at=AT,
        next_attempt_at=AT,
        findings=(Finding(kind="approval_required", subject="cto", detail="app", action_url="https://a.example"),),
        address="https://crewlet.example",
        disconnect_asked_at=AT,
        disconnect_asked_by="ada",
    ),
    "seat_mailbox": SeatMailbox(
        handle="cto", registered_at=AT, absent_since=AT, retiring_by="node-0:9f3c1e70", retiring_since=AT
    ),
    "object_backend": ObjectBackend(location="s3:eu/files/acme", recorded_by="node-0", recorded_at=AT),
    "collector_report": CollectorReport(
        kind="audit",
        node="node-0",
        started_at=AT,
        finished_at=AT,
        counts={"named": 12, "missing": 1},
        missing=("ab" * 32,),
        error="interrupted",
    ),
    "node_position": NodePosition(
        domain="tracker",
        node="node-0",
        generation=2,
        sequence=120,
        applied_through=118,
        reported_at=AT,
        stream_created_at="2030-01-01T00:00:00Z",
        checkpoint_stored_at=AT,
    ),
    "pin": Pin(domain="tracker", holder="node-0", why="backup", generation=2, sequence=90, taken_at=AT, renewed_at=AT),
    "backup_coverage": BackupCoverage(domain="tracker", owner="engine", generation=2, sequence=80, taken_at=AT),
    "published_floor": PublishedFloor(
        domain="tracker",
        generation=2,
        floor=70,
        term="backup_floor",
        published_by="node-0",
        published_at=AT,
        held_since=AT,
        trim_to=69,
    ),
    "capacity_operation": CapacityOperation(
        domain="tracker",
        operation_id="o1",
        phase="sealing",
        begun_by="ada",
        begun_at=AT,
        bytes_before=1024,
        bytes_wanted=2048,
        details={"excluded": ["node-1"]},
    ),
    "admission": Admission(node="node-0", incarnation="node-0:9f3c1e70", admitted_at=AT),
    "restart_acknowledgement": RestartAcknowledgement(
        node="node-0", operation_id="o1", incarnation="node-0:9f3c1e70", restarted_at=AT
    ),
    "seat_pause": SeatPause(handle="cto", by="ada", at=AT, by_seat="ceo", reason="too chatty", stop_running=True),
    "onboarding_mark": OnboardingMark(
        agent_id="0b9f6ad2-0000-5000-8000-000000000001",
        chain_hash="9c56cc51b374c3ba",
        marked_at=AT,
        claimed_by="t2",
        claimed_until=AT + timedelta(minutes=15),
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_as_it_was_released(name: str) -> None:
    assert encode_record(RECORDS[name]) == (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("name", RECORDS)
def test_a_released_record_is_read(name: str) -> None:
    assert decode_record(type(RECORDS[name]), (GOLDEN / f"{name}.json").read_bytes()) == RECORDS[name]


def test_every_released_record_is_held_to() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == RECORDS.keys()
