"""Which deliveries from outside were seen already, whichever node the sender's retry comes to (S0, S2)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from enum import Enum

import structlog
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, remove_stored

__all__ = ["ClaimTooLong", "DeliveryClaim", "DeliveryClaims", "Seen", "claimed"]

_log = structlog.get_logger(__name__)


class ClaimTooLong(CrewletError):
    """A claim asked for more than its bucket keeps a record: refused, never shortened in silence (C-125)."""

    def __init__(self, bucket: str, *, ttl_s: float, ceiling_s: float) -> None:
        self.ttl_s = ttl_s
        self.ceiling_s = ceiling_s
        super().__init__(f"{bucket}: a claim of {ttl_s:g} s is above the ceiling in force of {ceiling_s:g} s")


class Seen(Enum):
    """Whether a delivery was seen before. Only ``BEFORE`` suppresses it."""

    FIRST = "first"
    BEFORE = "before"
    UNKNOWN = "unknown"

    @property
    def suppresses(self) -> bool:
        """Whether the delivery goes no further."""
        return self is Seen.BEFORE


class DeliveryClaim(SharedRecord, frozen=True, kw_only=True):
    """That one delivery was received, by which reception of it, and when it may be received anew."""

    source: str
    delivery_id: str
    claimant: str
    claimed_at: datetime
    deadline: datetime


def claimed(standing: DeliveryClaim | None, wanted: DeliveryClaim, *, given_up: str | None = None) -> DeliveryClaim:
    """What stands once ``wanted`` was asked for: itself, or a claim of another claimant that has not lapsed.

    A claim lapses at its own deadline by the clock that ``wanted`` was made by. That of ``given_up`` is over.
    """
    if standing is None:
        return wanted
    if standing.claimant == wanted.claimant:
        return standing
    if standing.claimant != given_up and wanted.claimed_at < standing.deadline:
        return standing
    return replace(wanted, unknown={**standing.unknown, **wanted.unknown})


class DeliveryClaims:
    """Claims on deliveries, by source and the sender's own id of a delivery.

    Fails open (C-007): a claim that could not be read or written within ``limits.DELIVERY_CLAIM_WAIT_S`` is
    ``Seen.UNKNOWN``, which suppresses nothing, and is logged; nobody would send a suppressed delivery again.

    A ``claimant`` is one reception of one delivery, with an id of its own: asked again under it, a claim is found to
    be won. The name of a process would take each retry of the sender that it receives for its own claim.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unreleased: dict[str, str] = {}

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        """Claim a delivery for ``ttl_s``. Raises ``ClaimTooLong``, on every backend alike."""
        ceiling_s = self._store.age_s
        if ceiling_s is not None and ttl_s > ceiling_s:
            raise ClaimTooLong(self._store.name, ttl_s=ttl_s, ceiling_s=ceiling_s)
        now = self._clock.now()
        wanted = DeliveryClaim(
            source=source,
            delivery_id=delivery_id,
            claimant=claimant,
            claimed_at=now,
            deadline=now + timedelta(seconds=ttl_s),
        )
        try:
            async with asyncio.timeout(limits.DELIVERY_CLAIM_WAIT_S):
                stands = await self._claimed(wanted)
        except (Unavailable, TimeoutError) as error:
            _log.warning("delivery_claim_unknown", source=source, delivery=delivery_id, error=str(error) or "too late")
            return Seen.UNKNOWN
        return Seen.FIRST if stands.claimant == claimant else Seen.BEFORE

    async def release(self, source: str, delivery_id: str, *, claimant: str) -> None:
        """The delivery went nowhere: the sender's next attempt is a first one again, if the claim is ours still.

        Raises nothing of its own. What could not be released is known to this process, which takes it for lapsed; on
        another node it lapses at its deadline.
        """
        key = _key(source, delivery_id)
        self._unreleased[key] = claimant
        while len(self._unreleased) > limits.DELIVERY_CLAIMS_UNRELEASED_MAX:
            del self._unreleased[next(iter(self._unreleased))]
        try:
            async with asyncio.timeout(limits.DELIVERY_CLAIM_WAIT_S):
                await remove_stored(self._store, DeliveryClaim, key, lambda standing: standing.claimant == claimant)
        except (Unavailable, TimeoutError) as error:
            _log.warning(
                "delivery_claim_not_released", source=source, delivery=delivery_id, error=str(error) or "too late"
            )
            return
        self._unreleased.pop(key, None)

    async def _claimed(self, wanted: DeliveryClaim) -> DeliveryClaim:
        key = _key(wanted.source, wanted.delivery_id)
        given_up = self._unreleased.get(key)
        stands = await change_stored(
            self._store,
            DeliveryClaim,
            key,
            lambda standing: claimed(standing, wanted, given_up=given_up),
            likely_absent=True,
        )
        assert stands is not None, "the step above always wants a record"
        return stands.record


def _key(source: str, delivery_id: str) -> str:
    return f"delivery.{key_token(source)}.{key_token(delivery_id)}"
