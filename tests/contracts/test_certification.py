"""The suites themselves: every promise is bound to every backend, none is overridden, and what is absent is known."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryQueue
from crewlet.backends.nats import JetStreamQueue
from crewlet.queue import EventQueue
from crewlet.testing import contracts
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness, JetStreamHarness
from crewlet.testing.contracts.queue_on_memory import MemoryHarness
from tests.contracts import test_queue_one_broker, test_queue_three_members, test_queue_twin
from tests.tidy.tree import source_modules

VERBS = frozenset(
    {
        "add_publish_listener",
        "add_unheard_listener",
        "close",
        "delete_subscription",
        "detach",
        "ensure_subscription",
        "ensure_subscriptions",
        "hold",
        "lift",
        "list_subscriptions",
        "mailbox",
        "publish",
        "publish_live",
        "quiesce",
        "release_held",
        "scatter",
        "serve",
        "subscribe",
        "subscribe_batch",
        "subscribe_stream",
        "unquiesce",
        "wait_idle",
    }
)
HARNESSES: tuple[type[contracts.QueueHarness], ...] = (MemoryHarness, JetStreamHarness, ClusterHarness)


@pytest.mark.spec("E-003")
@pytest.mark.parametrize("binding", [test_queue_twin, test_queue_one_broker, test_queue_three_members])
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert [bind.__bases__ for bind in bound] == [(contract,) for contract in contracts.QUEUE_SUITE]
    assert all(contracts.promises(bind) == contracts.promises(bind.__base__) != () for bind in bound)


@pytest.mark.spec("E-003")
def test_what_a_backend_lacks_is_declared_and_no_more_than_this() -> None:
    absent = {harness.backend: sorted(each.name for each in harness.absent) for harness in HARNESSES}

    print(f"declared absent: {absent}")
    assert absent == {"twin": ["TIMED_BACKOFF"], "one broker": [], "three members": []}


@pytest.mark.spec("E-003")
def test_a_backend_that_overrides_a_promise_is_refused() -> None:
    async def switched_off(*_: object) -> None: ...

    with pytest.raises(TypeError, match="test_what_no_mailbox_covers_is_gone"):
        type("Lenient", (contracts.Publishing,), {"test_what_no_mailbox_covers_is_gone": switched_off})


def test_a_promise_that_is_switched_off_by_another_base_is_refused() -> None:
    mixin = type("Mixin", (), {"test_an_acknowledged_message_is_gone": None})

    with pytest.raises(TypeError, match="test_an_acknowledged_message_is_gone"):
        type("Lenient", (mixin, contracts.Outcomes), {})


def test_no_two_classes_of_the_suite_share_a_promise() -> None:
    names = [(contract.__name__, name) for contract in contracts.QUEUE_SUITE for name in contracts.promises(contract)]

    assert len({*names}) == len(names)
    assert all(len({*contracts.promises(contract)}) > 1 for contract in contracts.QUEUE_SUITE)


@pytest.mark.spec("E-094")
def test_the_contract_has_these_verbs() -> None:
    assert {name for name in vars(EventQueue) if not name.startswith("_")} == VERBS


@pytest.mark.parametrize("backend", [MemoryQueue, JetStreamQueue])
def test_a_backend_has_its_own_of_every_verb(backend: type[EventQueue]) -> None:
    assert VERBS - vars(backend).keys() == set()


@pytest.mark.spec("E-002")
def test_only_who_builds_a_node_or_tests_one_knows_a_backend() -> None:
    rooms = {module.name.partition("/")[0] for module in source_modules() if "crewlet.backends" in module.text}

    assert rooms == {"backends", "node", "testing"}
