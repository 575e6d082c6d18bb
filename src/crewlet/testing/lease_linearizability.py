"""Whether a history of leases could have come from one register a resource: a search after Wing and Gong.

Each answered call took effect at one moment between its beginning and its end; a release that was never answered at
any moment after its beginning, or never. What lapses does so by itself, not before its TTL has passed since a moment
at which it can have been written. A claim that was never answered may stand in others' way while nobody else holds the
resource; it gives nobody anything, so it is asked for only where a refusal names it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crewlet.testing.lease_history import LeaseCall

__all__ = ["NotLinearizable", "check_leases"]


class NotLinearizable(AssertionError):
    """No order of one resource's calls explains all of their answers; tells how far the best one got."""


@dataclass(frozen=True, slots=True)
class _Register:
    """One resource. Nobody holds it while ``owner`` is empty."""

    owner: str = ""
    epoch: int = 0
    last_epoch: int = 0
    lapses_from_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Unheard:
    """What the processes of one history did without an answer: when each first claimed so, or released a tenure."""

    claimed_s: dict[str, float]
    released_s: dict[tuple[str, int], float]


def check_leases(history: Sequence[LeaseCall]) -> None:
    """Raises ``NotLinearizable`` where the answers of any resource have no explanation."""
    by_resource: defaultdict[str, list[LeaseCall]] = defaultdict(list)
    for call in history:
        by_resource[call.resource].append(call)
    for resource, calls in by_resource.items():
        _check_one(resource, sorted(calls, key=lambda call: call.began_s))


def _check_one(resource: str, everything: list[LeaseCall]) -> None:
    unheard = _Unheard(
        {
            call.owner: call.began_s
            for call in reversed(everything)
            if call.what == "claim" and call.answer == "unknown"
        },
        {(call.owner, call.epoch): call.began_s for call in reversed(everything) if call.what == "release"},
    )
    # A renewal that nobody heard of only makes a tenure longer: without it every answer is easier to explain.
    calls = [call for call in everything if call.answer != "unknown" or call.what == "release"]
    answered = sum(1 << index for index, call in enumerate(calls) if call.answer != "unknown")
    seen: set[tuple[int, _Register]] = set()
    waiting = [(0, _Register())]
    best = 0
    while waiting:
        done, register = waiting.pop()
        if done & answered == answered:
            return
        if (done, register) in seen:
            continue
        seen.add((done, register))
        best = max(best, done & answered, key=int.bit_count)
        for index in _next_calls(calls, done):
            waiting.extend((done | 1 << index, after) for after in _outcomes(register, calls[index], unheard))
    stuck = next(call for index, call in enumerate(calls) if not best >> index & 1 and call.answer != "unknown")
    explained = best.bit_count()
    raise NotLinearizable(f"{resource}: {explained} of {answered.bit_count()} answers can be explained, not {stuck}")


def _next_calls(calls: list[LeaseCall], done: int) -> Iterator[int]:
    """The calls that can be next: those that began before any answered one that is still to come had ended."""
    latest_s = min((call.ended_s for index, call in enumerate(calls) if not done >> index & 1), default=math.inf)
    for index, call in enumerate(calls):
        if call.began_s > latest_s:
            return
        if not done >> index & 1:
            yield index


def _outcomes(register: _Register, call: LeaseCall, unheard: _Unheard) -> Iterator[_Register]:
    """What the register may be after ``call`` with its answer; nothing where the answer is impossible now."""
    yield from _answered(register, call, unheard)
    if register.owner and call.ended_s >= register.lapses_from_s:
        yield from _answered(replace(register, owner="", epoch=0), call, unheard)


def _answered(register: _Register, call: LeaseCall, unheard: _Unheard) -> Iterator[_Register]:
    if call.what == "claim":
        yield from _claimed(register, call, unheard)
        return
    is_its_own = (register.owner, register.epoch) == (call.owner, call.epoch)
    if call.what == "release":
        yield replace(register, owner="", epoch=0) if is_its_own else register
    elif call.answer == "yes":
        if is_its_own:
            yield replace(register, lapses_from_s=max(register.lapses_from_s, call.began_s + call.ttl_s))
    elif not is_its_own or unheard.released_s.get((call.owner, call.epoch), math.inf) <= call.ended_s:
        # A process that once began to release a tenure renews it no more, whatever stands.
        yield register


def _claimed(register: _Register, call: LeaseCall, unheard: _Unheard) -> Iterator[_Register]:
    if call.answer == "yes":
        if not register.owner and call.epoch > register.last_epoch:
            yield _Register(call.owner, call.epoch, call.epoch, call.began_s + call.ttl_s)
    elif register.owner == call.holder or (
        not register.owner and unheard.claimed_s.get(call.holder, math.inf) <= call.ended_s
    ):
        yield register
