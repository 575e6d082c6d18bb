"""The leases' suite itself: every promise is bound to every backend, and what is absent is known."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryLeases
from crewlet.coordination import KvLeases, Leases
from crewlet.testing import contracts
from crewlet.testing.contracts.lease_on_memory import LocalLeases
from crewlet.testing.contracts.lease_on_records import StoredLeases
from tests.contracts import (
    test_leases_one_broker,
    test_leases_one_process,
    test_leases_three_members,
    test_leases_twin,
)

VERBS = frozenset({"claim", "held", "hints", "holder", "release", "renew"})


@pytest.mark.parametrize(
    "binding", [test_leases_one_process, test_leases_twin, test_leases_one_broker, test_leases_three_members]
)
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert [bind.__bases__ for bind in bound] == [(contract,) for contract in contracts.LEASE_SUITE]
    assert all(contracts.promises(bind) == contracts.promises(bind.__base__) != () for bind in bound)


def test_only_the_leases_of_one_process_lack_something() -> None:
    absent = {harness: [each.name for each in harness.absent] for harness in (LocalLeases, StoredLeases)}

    print(f"declared absent: {absent}")
    assert absent == {LocalLeases: ["LEASE_STORE"], StoredLeases: []}


@pytest.mark.parametrize("backend", [Leases, MemoryLeases, KvLeases])
def test_the_verbs_are_those_that_the_suite_knows(backend: type) -> None:
    verbs = {name for name, value in vars(backend).items() if callable(value) and not name.startswith("_")}

    assert verbs - {"close"} == VERBS
