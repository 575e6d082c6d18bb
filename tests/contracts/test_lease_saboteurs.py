"""The leases' suite is tested by leases with one planted fault each: the promise that each breaks must say so."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from crewlet.base.errors import Unavailable
from crewlet.coordination import KvLeases, Leases
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.contracts import LEASE_SUITE, promises
from crewlet.testing.contracts.lease_harness import Stores
from crewlet.testing.contracts.lease_on_records import StoredLeases
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.saboteurs.lease_faults import LEASE_SABOTEURS
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur, planted_leases

Promise = Callable[..., Awaitable[None]]
Sabotage = Callable[[KvLeases, Stores], Leases]

BROKEN = (AssertionError, TimeoutError, Unavailable, VirtualDeadlock, ValueError, pytest.fail.Exception)


def cases(promise: Promise) -> Iterator[dict[str, Any]]:
    """The arguments of each case of a promise, as its marks give them."""
    marks = cast("list[pytest.Mark]", getattr(promise, "pytestmark", []))
    axes: list[list[dict[str, Any]]] = []
    for mark in marks:
        if mark.name != "parametrize":
            continue
        names, values = cast("tuple[str | tuple[str, ...], list[Any]]", mark.args)
        if isinstance(names, str):
            axes.append([{names: value} for value in values])
        else:
            axes.append([dict(zip(names, value, strict=True)) for value in values])
    for chosen in itertools.product(*axes):
        yield {name: value for each in chosen for name, value in each.items()}


def keep(promise: Promise, sabotage: Callable[[], Sabotage] = lambda: lambda leases, _stores: leases) -> None:
    """Run every case of one promise over the twin; raises where it is broken."""

    async def run(arguments: dict[str, Any]) -> None:
        async with MemoryRecords() as records, StoredLeases(records, sabotage=sabotage()) as leases:
            await promise(None, leases, **arguments)

    for arguments in cases(promise):
        with capture_logs():
            run_virtual(run(arguments))


@pytest.mark.parametrize("saboteur", LEASE_SABOTEURS, ids=lambda kind: kind.__name__)
def test_the_named_promise_finds_the_saboteur_out(saboteur: type[LeaseSaboteur]) -> None:
    promise = saboteur.caught_by
    keep(promise)

    with pytest.raises(BROKEN):
        keep(promise, lambda: planted_leases(saboteur))


def test_every_promise_is_broken_by_a_saboteur() -> None:
    promised = {getattr(contract, name).__qualname__ for contract in LEASE_SUITE for name in promises(contract)}

    assert {saboteur.caught_by.__qualname__ for saboteur in LEASE_SABOTEURS} == promised
