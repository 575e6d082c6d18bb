"""Which seats were onboarded, each at which place in the company, and who onboards one just now; no record expires."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, read_stored

__all__ = [
    "OnboardingClaim",
    "OnboardingMark",
    "Onboardings",
    "claim_taken",
    "mark_claimed",
    "marked_onboarded",
    "without_claim",
]


class OnboardingMark(SharedRecord, frozen=True, kw_only=True):
    """One seat's, by its agent id. ``chain_hash`` is the place that it was onboarded at, empty where it never was.

    ``claimed_by`` is the turn that onboards it now, until ``claimed_until`` at the latest.
    """

    agent_id: str
    chain_hash: str = ""
    marked_at: datetime | None = None
    claimed_by: str = ""
    claimed_until: datetime | None = None


class OnboardingClaim(Enum):
    """What asking to onboard a seat came to."""

    CLAIMED = "claimed"
    ONBOARDED = "onboarded"
    """It was onboarded at this place: there is nothing to do."""
    TAKEN = "taken"
    """Another turn is about it."""


def claim_taken(
    standing: OnboardingMark | None, claimant: str, *, now: datetime, given_up: Collection[str] = ()
) -> bool:
    """Whether somebody else's claim stands. It lapses at its end; those of ``given_up`` are over."""
    if standing is None or standing.claimed_until is None:
        return False
    return standing.claimed_by not in ("", claimant, *given_up) and now < standing.claimed_until


def mark_claimed(
    standing: OnboardingMark | None,
    wanted: OnboardingMark,
    claimant: str,
    *,
    now: datetime,
    given_up: Collection[str] = (),
) -> OnboardingMark:
    """What stands once ``claimant`` asked to onboard the seat at the place of ``wanted``."""
    if standing is not None and standing.chain_hash == wanted.chain_hash:
        return standing
    if standing is not None and claim_taken(standing, claimant, now=now, given_up=given_up):
        return standing
    until = now + timedelta(seconds=limits.ONBOARDING_CLAIM_S)
    return replace(standing or OnboardingMark(agent_id=wanted.agent_id), claimed_by=claimant, claimed_until=until)


def marked_onboarded(
    standing: OnboardingMark | None, wanted: OnboardingMark, claimant: str, *, now: datetime
) -> OnboardingMark:
    """What stands once ``claimant`` has onboarded the seat at the place of ``wanted``: its claim is over."""
    base = standing or OnboardingMark(agent_id=wanted.agent_id)
    if base.chain_hash != wanted.chain_hash:
        base = replace(base, chain_hash=wanted.chain_hash, marked_at=now)
    return without_claim(base, claimant)


def without_claim(standing: OnboardingMark, claimant: str) -> OnboardingMark:
    """The same without the claim, if it is this one's."""
    return replace(standing, claimed_by="", claimed_until=None) if standing.claimed_by == claimant else standing


class Onboardings:
    """The marks, by agent id. A ``claimant`` is one turn, whatever process runs it: asked again, its claim is found.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``, and whoever asked does not take a
    seat of which nothing is known for one that was not onboarded.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        """Claim the seat's onboarding for ``limits.ONBOARDING_CLAIM_S``, where it is due.

        ``given_up`` are claimants that are known to use their claims no more.
        """
        now, wanted = self._clock.now(), OnboardingMark(agent_id=agent_id, chain_hash=chain_hash)
        stands = await change_stored(
            self._store,
            OnboardingMark,
            _key(agent_id),
            lambda standing: mark_claimed(standing, wanted, claimant, now=now, given_up=given_up),
        )
        assert stands is not None, "the step above always wants a record"
        if stands.record.chain_hash == chain_hash:
            return OnboardingClaim.ONBOARDED
        return OnboardingClaim.CLAIMED if stands.record.claimed_by == claimant else OnboardingClaim.TAKEN

    async def mark(self, agent_id: str, chain_hash: str, *, claimant: str) -> OnboardingMark:
        """The seat is onboarded at this place; returns what stands. A repeat changes nothing."""
        now, wanted = self._clock.now(), OnboardingMark(agent_id=agent_id, chain_hash=chain_hash)
        stands = await change_stored(
            self._store,
            OnboardingMark,
            _key(agent_id),
            lambda standing: marked_onboarded(standing, wanted, claimant, now=now),
        )
        assert stands is not None, "the step above always wants a record"
        return stands.record

    async def give_back(self, agent_id: str, *, claimant: str) -> None:
        """The claim is over, if it is this one's; the mark stays as it is."""
        await change_stored(
            self._store,
            OnboardingMark,
            _key(agent_id),
            lambda standing: None if standing is None else without_claim(standing, claimant),
        )

    async def get(self, agent_id: str) -> OnboardingMark | None:
        """What stands of the seat, or ``None`` where nothing does."""
        standing = await read_stored(self._store, OnboardingMark, _key(agent_id))
        return None if standing is None else standing.record


def _key(agent_id: str) -> str:
    return f"onboarding.{key_token(agent_id)}"
