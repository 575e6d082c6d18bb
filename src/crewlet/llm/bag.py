"""The keys of one provider entry: which is lent out next, and which rests until when. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from crewlet.base import limits
from crewlet.llm.contract import FailureKind
from crewlet.llm.provider_config import Cooldowns

__all__ = ["Bag", "Bench", "Credential", "OnBench", "bag_of"]

_HINT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Credential:
    """One key. ``hint`` tells it from others in logs and shared records: 12 hex digits of its SHA-256 (C-102)."""

    secret: str = field(repr=False)
    hint: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A key of an entry rests until an instant, never for a duration: read late, it still ends on time (C-098)."""

    provider_key: str
    hint: str
    until: datetime
    reason: FailureKind


OnBench = Callable[[Bench], Awaitable[None]]
"""Told of each bench before the call that caused it is tried again; a fleet shares benches through it."""


@dataclass(frozen=True, slots=True)
class _Slot:
    credential: Credential
    in_flight: int = 0
    until: datetime | None = None
    reason: FailureKind = FailureKind.RATE_LIMITED
    auth_failures: int = 0

    def rests(self, now: datetime) -> bool:
        return self.until is not None and now < self.until


@dataclass(frozen=True, slots=True)
class Bag:
    """The keys of one entry and how they stand; every change is a new bag."""

    provider_key: str
    cooldowns: Cooldowns
    slots: tuple[_Slot, ...]

    @property
    def secrets(self) -> tuple[str, ...]:
        """All its keys."""
        return tuple(slot.credential.secret for slot in self.slots)

    def pick(self, now: datetime) -> Credential | None:
        """The key to use next: of those that do not rest, the one with the fewest calls in flight, then the first."""
        free = [slot for slot in self.slots if not slot.rests(now)]
        return min(free, key=lambda slot: slot.in_flight).credential if free else None

    def lent(self, credential: Credential) -> Bag:
        """One more call in flight on this key."""
        return self._changed(credential.hint, lambda slot: replace(slot, in_flight=slot.in_flight + 1))

    def returned(self, credential: Credential) -> Bag:
        """One call less in flight on this key."""
        return self._changed(credential.hint, lambda slot: replace(slot, in_flight=slot.in_flight - 1))

    def served(self, credential: Credential) -> Bag:
        """The vendor took this key: its next authentication failure is a first one again."""
        return self._changed(credential.hint, lambda slot: replace(slot, auth_failures=0))

    def bench_for(
        self, credential: Credential, reason: FailureKind, now: datetime, reset_after_s: float | None = None
    ) -> Bench | None:
        """The bench that a failure calls for, or ``None``: only the vendor's word on a key benches it.

        What the vendor says of the reset wins over the configured cooldown, which doubles for repeated authentication
        failures; either is held between a minute and a day. Without a key there is nothing to bench.
        """
        if not credential.secret or reason not in _BENCHING:
            return None
        slot = next(slot for slot in self.slots if slot.credential.hint == credential.hint)
        wait_s = reset_after_s
        if wait_s is None:
            doublings = min(slot.auth_failures, 16)
            is_auth = reason is FailureKind.AUTH
            wait_s = self.cooldowns.auth_seconds * 2**doublings if is_auth else self.cooldowns.rate_limit_seconds
        wait_s = min(max(wait_s, limits.COOLDOWN_MIN_S), limits.COOLDOWN_MAX_S)
        return Bench(self.provider_key, credential.hint, now + timedelta(seconds=wait_s), reason)

    def benched(self, bench: Bench) -> Bag:
        """With this bench. A bench extends, never shortens: a peer's earlier end talks nobody out of a later one."""

        def rest(slot: _Slot) -> _Slot:
            failures = slot.auth_failures + (bench.reason is FailureKind.AUTH)
            if slot.until is not None and slot.until >= bench.until:
                return replace(slot, auth_failures=failures)
            return replace(slot, until=bench.until, reason=bench.reason, auth_failures=failures)

        return self._changed(bench.hint, rest)

    def told(self, bench: Bench) -> Bag:
        """With a bench that somebody else met with; this very bag where it says nothing new of one of these keys.

        It extends and never shortens, and counts as no failure of one's own: a record is read time and again.
        """
        slot = next((slot for slot in self.slots if slot.credential.hint == bench.hint), None)
        if bench.provider_key != self.provider_key or slot is None or not slot.credential.secret:
            return self
        if slot.until is not None and slot.until >= bench.until:
            return self
        return self._changed(bench.hint, lambda each: replace(each, until=bench.until, reason=bench.reason))

    def taking_over(self, before: Bag) -> Bag:
        """With what ``before`` knows of the keys that both have; calls in flight are its own affair."""
        known = {slot.credential.hint: slot for slot in before.slots}

        def knowing(slot: _Slot) -> _Slot:
            old = known.get(slot.credential.hint)
            if old is None:
                return slot
            return replace(slot, until=old.until, reason=old.reason, auth_failures=old.auth_failures)

        return replace(self, slots=tuple(knowing(slot) for slot in self.slots))

    def soonest(self, now: datetime) -> Bench | None:
        """The bench that ends first, where every key rests; ``None`` while one does not."""
        if not self.slots or any(not slot.rests(now) for slot in self.slots):
            return None
        slot = min(self.slots, key=lambda each: each.until or now)
        return Bench(self.provider_key, slot.credential.hint, slot.until or now, slot.reason)

    def _changed(self, hint: str, change: Callable[[_Slot], _Slot]) -> Bag:
        slots = tuple(change(slot) if slot.credential.hint == hint else slot for slot in self.slots)
        return replace(self, slots=slots)


_BENCHING = frozenset({FailureKind.RATE_LIMITED, FailureKind.PAYMENT, FailureKind.AUTH})


def bag_of(provider_key: str, secrets: tuple[str, ...], cooldowns: Cooldowns) -> Bag:
    """A fresh bag. An empty secret stands for an endpoint that asks for no key; the same key twice counts once."""
    unique = dict.fromkeys(secrets)
    slots = tuple(_Slot(Credential(secret, _hint(secret))) for secret in unique)
    return Bag(provider_key, cooldowns, slots)


def _hint(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:_HINT_DIGITS]
