"""Planted faults of a fleet: each a way of being wrong that some rule has to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from crewlet.backends.memory import MemoryBucket
from crewlet.base import limits
from crewlet.coordination import StoreTime, protocol_gate
from crewlet.coordination.lease_record import StoredLease
from crewlet.coordination.records import epochs
from crewlet.seats import Host, HostConfig, ReleaseMode, SeatFence, placement, seat_keeping, sweep
from crewlet.testing.fleet_simulation.clocks import NodeClock
from crewlet.testing.fleet_simulation.rules import Rule
from crewlet.testing.simulated import Replacement

__all__ = ["FLEET_FAULTS", "NO_FAULT", "FleetFault"]


@dataclass(frozen=True, slots=True)
class FleetFault:
    """``replaced``: what stands where for the while. ``rules``: those that find it, ``beset_by``: in which trouble."""

    name: str
    beset_by: str
    rules: tuple[Rule, ...]
    replaced: tuple[Replacement, ...]


def _everything(seats: int, _nodes: int) -> int:
    return seats


def _no_time_while_standing_still(clock: NodeClock) -> float:
    return NodeClock.awake_s(clock)


def _never_checked(_fence: SeatFence) -> None:
    return


async def _no_lower_lease(_gate: object) -> None:
    return


def _untold(pass_of: Any, _plan: object) -> None:  # noqa: ANN401 - a sweep from inside
    pass_of.unplaceable = ()


def _oldest_first(order: Sequence[Any], allowed: Mapping[Any, int], mine: Mapping[Any, Sequence[str]]) -> Sequence[str]:
    return [
        handle for group in order for handle in mine.get(group, ())[: max(len(mine.get(group, ())) - allowed[group], 0)]
    ][:2]


def _one_too_many(order: Sequence[Any], allowed: Mapping[Any, int], mine: Mapping[Any, Sequence[str]]) -> Sequence[str]:
    return [handle for group in order for handle in mine.get(group, ())[max(allowed[group] - 1, 0) :]][:2]


def _nothing_for_the_pinned(*given: Any, **named: Any) -> dict[Any, int]:  # noqa: ANN401 - handed on
    allowed = _ALLOWANCES(*given, **named)
    return {group: count if group == placement.ANYWHERE else 0 for group, count in allowed.items()}


def _the_same_epoch(before: Any, *, resource: str, claim: str, preferred: str, above: int) -> Any:  # noqa: ANN401
    after = _MINTED(before, resource=resource, claim=claim, preferred=preferred, above=above)
    return after if before is None else replace(after, epoch=max(before.epoch, 1))


def _breaks(_kept: object) -> None:
    raise ValueError("a planted fault")


async def _lost_at_once(kept: Any, _lease: object, _why: str) -> None:  # noqa: ANN401 - a seat's keeping from inside
    kept._lose()  # noqa: SLF001


def _now_and_then(pass_of: Any, plan: Any) -> int:  # noqa: ANN401 - a sweep from inside
    given_back = _GIVE_BACK(pass_of, plan)
    passes = pass_of.passes = getattr(pass_of, "passes", 0) + 1
    if passes % 10 == 0 and pass_of._config.node_id == "n1":  # noqa: SLF001
        for kept in [each for each in pass_of._ledgers.all_kept() if each.established][:1]:  # noqa: SLF001
            kept.release(ReleaseMode.VOLUNTARY, "restless")
    return given_back


async def _lease_first(kept: Any, mode: ReleaseMode, reason: str) -> None:  # noqa: ANN401 - a seat's keeping from inside
    if kept.lease is not None and not kept.undead and mode is ReleaseMode.VOLUNTARY:
        await kept._give_back(kept.lease)  # noqa: SLF001
    await _RELEASE(kept, mode, reason)


def _as_if_true(config: HostConfig) -> float:
    return config.ttl_s


def _a_third_of_its_time(lease: StoredLease) -> datetime:
    return lease.record.written_at + timedelta(seconds=lease.said.ttl_s / 3)


def _never(_time: StoreTime, _deadline: object) -> bool:
    return False


def _nothing_ages(_bucket: MemoryBucket) -> None:
    return


def _private(owner: object, name: str) -> Callable[..., Any]:
    return vars(owner)[name]


_ALLOWANCES = _private(placement, "_allowances")
_MINTED = _private(epochs, "minted")
_GIVE_BACK = _private(sweep.Sweep, "_give_back")
_RELEASE = _private(seat_keeping.KeptSeat, "_release")

NO_FAULT = FleetFault("none", "", (), ())
FLEET_FAULTS: tuple[FleetFault, ...] = (
    FleetFault(
        "a lease is believed in for ever",
        "cut off",
        ("one holder", "fence"),
        ((seat_keeping.KeptSeat, "left_s", float("inf")), (Host, "may_start", Host.epoch_of)),
    ),
    FleetFault(
        "time is not counted while a process stands still",
        "stands still",
        ("one holder", "fence"),
        ((NodeClock, "elapsed_s", _no_time_while_standing_still),),
    ),
    FleetFault(
        "the fence never closes", "crashes, pauses and cuts", ("fence",), ((SeatFence, "check", _never_checked),)
    ),
    FleetFault(
        "a slow clock is taken for a true one",
        "drift",
        ("fence",),
        # Of the engine's own drift it would take days to see; so both sides reckon with more of it.
        ((limits, "STORE_CLOCK_DRIFT", 0.1), (HostConfig, "proven_s", property(_as_if_true))),
    ),
    FleetFault("everything is a share", "joins", ("share",), ((placement, "_ceil", _everything),)),
    FleetFault(
        "the gate is open",
        "an older build",
        ("gate",),
        ((protocol_gate.ProtocolGate, "lowest", _no_lower_lease),),
    ),
    FleetFault(
        "what was claimed first goes first", "rolling update", ("moves",), ((placement, "_surplus", _oldest_first),)
    ),
    FleetFault(
        "nobody says what has no home", "nodes with a label go", ("covered",), ((sweep.Sweep, "_tell", _untold),)
    ),
    FleetFault(
        "the pinned seats are nobody's", "none", ("covered",), ((placement, "_allowances", _nothing_for_the_pinned),)
    ),
    FleetFault("an epoch comes again", "any move", ("epochs",), ((epochs, "minted", _the_same_epoch),)),
    FleetFault(
        "an unreachable store is a lost lease",
        "store outage",
        ("kept",),
        ((seat_keeping.KeptSeat, "_unproven", _lost_at_once),),
    ),
    FleetFault("a step of the heartbeat breaks", "any", ("whole",), ((seat_keeping.KeptSeat, "retry", _breaks),)),
    FleetFault("one too many is given back", "none", ("rest",), ((placement, "_surplus", _one_too_many),)),
    FleetFault("now and then one is given back", "none", ("still",), ((sweep.Sweep, "_give_back", _now_and_then),)),
    FleetFault(
        "the lease goes before the work ends",
        "leaves",
        ("fence", "one holder"),
        ((seat_keeping.KeptSeat, "_release", _lease_first),),
    ),
    FleetFault(
        "a lease is taken for lapsed at a third of its time",
        "cut off, store outage",
        ("one holder", "fence", "kept"),
        ((StoredLease, "ends_at", property(_a_third_of_its_time)),),
    ),
    FleetFault(
        "a dead node's leases stand for ever",
        "crashes",
        ("covered", "rest"),
        ((StoreTime, "is_surely_past", _never), (MemoryBucket, "_forget_aged", _nothing_ages)),
    ),
)
