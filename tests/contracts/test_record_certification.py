"""The record store's suite itself: every promise is bound to every backend, and every backend has every verb."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryRecordStore
from crewlet.backends.nats import NatsRecordStore
from crewlet.coordination import RecordStore
from crewlet.testing import contracts
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords, JetStreamRecords
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from tests.contracts import test_records_one_broker, test_records_three_members, test_records_twin

VERBS = frozenset(
    {
        "age_s",
        "create",
        "delete",
        "get",
        "last_revision",
        "list",
        "name",
        "purge_markers",
        "time",
        "update",
        "watch",
    }
)


@pytest.mark.spec("C-208")
@pytest.mark.parametrize("binding", [test_records_twin, test_records_one_broker, test_records_three_members])
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert [bind.__bases__ for bind in bound] == [(contract,) for contract in contracts.RECORD_SUITE]
    assert all(contracts.promises(bind) == contracts.promises(bind.__base__) != () for bind in bound)


@pytest.mark.spec("C-208")
def test_no_backend_lacks_anything() -> None:
    absent = {harness.backend: harness.absent for harness in (MemoryRecords, JetStreamRecords, ClusterRecords)}

    assert absent == {"twin": frozenset(), "one broker": frozenset(), "three members": frozenset()}


def test_no_two_classes_of_the_suite_share_a_promise() -> None:
    names = [name for contract in contracts.RECORD_SUITE for name in contracts.promises(contract)]

    assert len({*names}) == len(names)


def test_the_contract_has_these_verbs() -> None:
    assert {name for name in vars(RecordStore) if not name.startswith("_")} == VERBS


@pytest.mark.parametrize("backend", [MemoryRecordStore, NatsRecordStore])
def test_a_backend_has_its_own_of_every_verb(backend: type[RecordStore]) -> None:
    assert VERBS - vars(backend).keys() == set()
