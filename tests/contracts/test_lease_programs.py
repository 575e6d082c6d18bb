"""Random programs over leases, with failing stores and processes: no lease ever says what it must not."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from msgspec import structs
from structlog.testing import capture_logs

from crewlet.coordination import KvLeases, Lease
from crewlet.coordination.lease_claim import LeaseClaim
from crewlet.coordination.lease_names import lease_key
from crewlet.coordination.lease_record import StoredLease, stored_lease
from crewlet.coordination.records import epochs
from crewlet.coordination.records.codec import decode_record, encode_record
from crewlet.coordination.records.epochs import EpochRecord, Epochs
from crewlet.testing import run_virtual
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.lease_program import FAULTS, RESOURCES, Fault, LeaseStep, follow_leases
from crewlet.testing.contracts.record_on_jetstream import JetStreamRecords
from crewlet.testing.contracts.record_on_memory import MemoryRecords

IN_FULL = "CREWLET_FULL_PROGRAMS" in os.environ

TOLD = (
    "granted",
    "refused",
    "renewed",
    "lost",
    "released",
    "claim failed",
    "claim given up",
    "claim killed",
    "renewal unheard",
    "release unheard",
)
WHO, WHICH = st.integers(0, 2), st.sampled_from(sorted(RESOURCES))
FAULTY = st.sampled_from(["none", *FAULTS])
WAIT = st.builds(LeaseStep, st.just("wait"), at=st.sampled_from([1, 2, 6, 12, 30, 90]))
CLAIM = st.builds(LeaseStep, st.just("claim"), WHO, WHICH, FAULTY, st.integers(1, 26))
HELD = st.builds(
    LeaseStep, st.sampled_from(["renew", "release"]), WHO, WHICH, FAULTY, st.integers(1, 14), st.booleans()
)
ENDS = st.sampled_from([LeaseStep("release"), LeaseStep("release"), LeaseStep("wait", at=90)])
OTHER = st.builds(LeaseStep, st.sampled_from(["deliver", "again"]), WHO)


def handed_over(resource: str, who: int, end: LeaseStep, fault: Fault, at: int) -> list[LeaseStep]:
    """A tenure that ends, in order or not, a claim that fails, and another claim."""
    held = [LeaseStep("claim", who, resource), replace(end, who=who, resource=resource)]
    return [*held, LeaseStep("claim", (who + 1) % 3, resource, fault, at), LeaseStep("claim", (who + 2) % 3, resource)]


def let_go_badly(resource: str, who: int, fault: Fault, at: int) -> list[LeaseStep]:
    """A release that fails, and its process that goes on."""
    failed = [LeaseStep("claim", who, resource), LeaseStep("release", who, resource, fault, at)]
    return [*failed, LeaseStep("deliver", who), LeaseStep("renew", who, resource), LeaseStep("claim", who, resource)]


def kept_badly(resource: str, who: int, fault: Fault, at: int) -> list[LeaseStep]:
    """A renewal that fails, and the next."""
    return [
        LeaseStep("claim", who, resource),
        LeaseStep("renew", who, resource, fault, at),
        LeaseStep("deliver", who),
        LeaseStep("renew", who, resource),
    ]


def come_back(resource: str, who: int, wait: int, *, twice: bool) -> list[LeaseStep]:
    """A process that acts on a tenure that another has by now, or that it had itself before its last."""
    gone = [LeaseStep("claim", who, resource), LeaseStep("wait", at=wait)]
    taken = LeaseStep("claim", who if twice else (who + 1) % 3, resource)
    acts = [LeaseStep(what, who, resource, old=twice) for what in ("renew", "release")]
    return [*gone, taken, *acts, LeaseStep("claim", (who + 2) % 3, resource), LeaseStep("wait", at=wait), taken]


MOVES = st.one_of(
    st.one_of(CLAIM, CLAIM, HELD, HELD, WAIT, OTHER).map(lambda step: [step]),
    st.builds(handed_over, WHICH, WHO, ENDS, FAULTY, st.integers(1, 20)),
    st.builds(kept_badly, WHICH, WHO, FAULTY, st.integers(1, 4)),
    st.builds(let_go_badly, WHICH, WHO, FAULTY, st.integers(1, 9)),
    st.builds(come_back, WHICH, WHO, st.sampled_from([6, 12, 90]), twice=st.booleans()),
)
PROGRAMS = st.lists(MOVES, min_size=2, max_size=9).map(lambda moves: [step for move in moves for step in move])


def modest(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if IN_FULL else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def followed(program: list[LeaseStep]) -> dict[str, int]:
    async def run() -> dict[str, int]:
        async with MemoryRecords() as records, StoredLeases(records) as leases:
            return await follow_leases(leases, program)

    with capture_logs():
        return run_virtual(run())


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 120)
@pytest.mark.spec("S-008", "S-009", "S-011", "S-012", "S-013", "S-014", "S-015")
def test_on_the_twin_no_program_finds_a_lease_that_says_what_it_must_not() -> None:
    told: Counter[str] = Counter()

    @modest(5000 if IN_FULL else 200)
    @given(program=PROGRAMS)
    def follow(program: list[LeaseStep]) -> None:
        told.update(followed(program))

    follow()
    print(dict(told))
    assert min(told[what] for what in TOLD) >= (100 if IN_FULL else 2)


@pytest.mark.skipif(not IN_FULL, reason="a run in full: CREWLET_FULL_PROGRAMS=1")
@pytest.mark.timeout(1800)
@modest(4)
@given(program=PROGRAMS)
def test_on_a_broker_no_program_finds_a_lease_that_says_what_it_must_not(
    one_broker: Cluster, program: list[LeaseStep]
) -> None:
    async def run() -> None:
        async with JetStreamRecords(one_broker) as records, StoredLeases(records) as leases:
            await follow_leases(leases, program)

    with capture_logs():
        asyncio.run(run())


async def nothing(*_: object, **__: object) -> None:
    """What should have been done is not done."""


async def said_of_any(self: Epochs, resource: str, *, claim: str) -> None:
    found = await self._store.get(lease_key(resource))  # pyright: ignore[reportPrivateUsage]
    said = None if found is None else decode_record(EpochRecord, found.value)
    if found is not None and said is not None and claim:
        clean = structs.replace(said, released=said.epoch)
        await self._store.update(found.key, encode_record(clean), expected=found.revision)  # pyright: ignore[reportPrivateUsage]


async def live_or_not(self: KvLeases, resource: str) -> StoredLease | None:
    record = await self._store_of(resource).get(lease_key(resource))  # pyright: ignore[reportPrivateUsage]
    return None if record is None else stored_lease(record)


def moved_on_releases_alone(before: EpochRecord | None, *, resource: str, **_: object) -> EpochRecord:
    if before is None:
        return EpochRecord(resource=resource, epoch=1)
    return structs.replace(before, epoch=before.epoch + before.is_clean)


def is_of_owner(stored: StoredLease, lease: Lease) -> bool:
    return stored.said.owner == lease.owner


def is_never(_leases: KvLeases, _lease: Lease) -> bool:
    return False


FAULTY_PARTS: dict[str, tuple[object, str, object]] = {
    "nothing is given back": (LeaseClaim, "_given_back", nothing),
    "gaps are not marked": (Epochs, "mark_gap", nothing),
    "every gap is marked": (Epochs, "mark_gap", said_of_any),
    "releases are not marked": (Epochs, "mark_released", nothing),
    "what was released is renewed": (KvLeases, "_is_released", is_never),
    "a tenure is its owner's": (StoredLease, "is_tenure", is_of_owner),
    "what lapsed is renewed": (KvLeases, "_live", live_or_not),
    "a lapse mints nothing": (epochs, "minted", moved_on_releases_alone),
}


@pytest.mark.skipif(not IN_FULL, reason="a run in full: CREWLET_FULL_PROGRAMS=1")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAULTY_PARTS)
def test_a_run_in_full_is_long_enough_to_find_the_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, fault = FAULTY_PARTS[name]
    monkeypatch.setattr(where, attribute, fault)

    def is_found(program: list[LeaseStep]) -> bool:
        try:
            followed(program)
        except AssertionError:
            return True
        return False

    assert find(PROGRAMS, is_found, settings=settings(modest(5000), phases=[Phase.generate]))
