"""The suites of these slots are tested by slots with one planted fault each: the named promise must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from crewlet.base.errors import Conflict, Fenced, StartRefused, Unavailable
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import Contract, RecordHarness, promises
from crewlet.testing.contracts.ageless_slots import AGELESS_SLOTS
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.contracts.slot_channels import ChannelPromises
from crewlet.testing.contracts.slot_mailboxes import MailboxPromises
from crewlet.testing.contracts.slot_objects import ObjectPromises
from crewlet.testing.contracts.slot_onboardings import OnboardingPromises
from crewlet.testing.contracts.slot_sandbox_runs import SandboxRunPromises
from crewlet.testing.contracts.slot_seat_pauses import SeatPausePromises
from crewlet.testing.saboteurs.ageless_slots import AGELESS_SLOT_SABOTEURS
from crewlet.testing.saboteurs.fleet_slots import SlotSaboteur
from tests.contracts import (
    test_ageless_slots_one_broker,
    test_ageless_slots_three_members,
    test_ageless_slots_twin,
)

Promise = Callable[[object, RecordHarness], Awaitable[None]]

UNPLANTED: dict[Callable[..., Awaitable[None]], str] = {
    SandboxRunPromises.test_no_clock_ends_a_run: "an age is the bucket's, out of a slot's reach",
    ObjectPromises.test_no_clock_takes_what_was_agreed: "as above",
    MailboxPromises.test_no_clock_takes_a_record: "as above",
    ChannelPromises.test_no_clock_closes_an_ask_or_takes_its_record: "as above",
    SeatPausePromises.test_no_clock_lifts_a_pause: "as above",
    OnboardingPromises.test_no_clock_takes_a_mark: "as above",
}
"""The promises that no saboteur breaks, and why."""

BROKEN = (
    AssertionError,
    AttributeError,
    KeyError,
    Fenced,
    TimeoutError,
    Conflict,
    StartRefused,
    Unavailable,
    VirtualDeadlock,
    pytest.fail.Exception,
)


def keep(promise: Promise, contract: type[Contract]) -> None:
    """Run one promise of a contract on the twin; raises where it is broken."""

    async def run() -> None:
        async with MemoryRecords() as records:
            await promise(contract(), records)

    run_virtual(run())


@pytest.mark.parametrize("saboteur", AGELESS_SLOT_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[SlotSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    contract = next(each for each in AGELESS_SLOTS if promise.__qualname__.startswith(f"{each.__name__}."))
    keep(promise, contract)

    with pytest.raises(BROKEN):
        keep(promise, type(contract.__name__, (contract,), {"kind": saboteur}))


def test_every_promise_is_broken_by_a_saboteur_or_said_why_not() -> None:
    unnamed = {getattr(contract, name) for contract in AGELESS_SLOTS for name in promises(contract)}
    unnamed -= {saboteur.caught_by for saboteur in AGELESS_SLOT_SABOTEURS}

    assert {promise.__qualname__ for promise in unnamed} == {promise.__qualname__ for promise in UNPLANTED}


@pytest.mark.parametrize(
    "binding", [test_ageless_slots_twin, test_ageless_slots_one_broker, test_ageless_slots_three_members]
)
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert {bind.__bases__ for bind in bound} == {(contract,) for contract in AGELESS_SLOTS}
    assert all(promises(bind) == promises(bind.__base__) != () for bind in bound)
