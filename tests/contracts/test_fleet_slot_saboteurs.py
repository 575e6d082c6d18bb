"""The suites of these slots are tested by slots with one planted fault each: the named promise must say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from crewlet.base.errors import Conflict, Unavailable
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import Contract, RecordHarness, promises
from crewlet.testing.contracts.fleet_slots import FLEET_SLOTS
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.saboteurs.fleet_slots import FLEET_SLOT_SABOTEURS, SlotSaboteur
from tests.contracts import test_fleet_slots_one_broker, test_fleet_slots_three_members, test_fleet_slots_twin

Promise = Callable[[object, RecordHarness], Awaitable[None]]

BROKEN = (AssertionError, TimeoutError, Conflict, Unavailable, VirtualDeadlock, pytest.fail.Exception)


def keep(promise: Promise, contract: type[Contract]) -> None:
    """Run one promise of a contract on the twin; raises where it is broken."""

    async def run() -> None:
        async with MemoryRecords() as records:
            await promise(contract(), records)

    run_virtual(run())


@pytest.mark.parametrize("saboteur", FLEET_SLOT_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[SlotSaboteur]) -> None:
    promise = cast("Promise", saboteur.caught_by)
    contract = next(each for each in FLEET_SLOTS if promise.__qualname__.startswith(f"{each.__name__}."))
    keep(promise, contract)

    with pytest.raises(BROKEN):
        keep(promise, type(contract.__name__, (contract,), {"kind": saboteur}))


def test_every_slot_has_a_saboteur_of_its_own() -> None:
    sabotaged = {saboteur.caught_by.__qualname__.partition(".")[0] for saboteur in FLEET_SLOT_SABOTEURS}

    assert sabotaged == {contract.__name__ for contract in FLEET_SLOTS}


@pytest.mark.parametrize(
    "binding", [test_fleet_slots_twin, test_fleet_slots_one_broker, test_fleet_slots_three_members]
)
def test_every_promise_is_bound_to_every_backend(binding: object) -> None:
    bound = [bind for name, bind in vars(binding).items() if name.startswith("Test")]

    assert [bind.__bases__ for bind in bound] == [(contract,) for contract in FLEET_SLOTS]
    assert all(promises(bind) == promises(bind.__base__) != () for bind in bound)
