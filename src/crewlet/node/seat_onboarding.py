"""Which seats have looked around at their place in the company: read once a process, claimed once for the fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import AgentId
from crewlet.coordination import OnboardingClaim, Onboardings
from crewlet.org import Organization, Seat, chain_hash
from crewlet.turns import NeverDue, OnboardingMarks

__all__ = ["SeatOnboarding", "SeatOnboardings"]

_log = structlog.get_logger(__name__)
_A = TypeVar("_A")


class SeatOnboardings:
    """One process's knowledge of the marks, beside the marks themselves.

    That a seat was onboarded at a place never becomes untrue, so that is asked once. Of a seat's last turns it knows
    whose claim may stand though no use is made of it any more.
    """

    def __init__(self, marks: Onboardings) -> None:
        self.marks = marks
        self._onboarded: dict[AgentId, str] = {}
        self._unused: dict[AgentId, tuple[str, ...]] = {}

    def of(self, company: Organization, handle: str) -> OnboardingMarks:
        """The mark of a seat as one turn of it asks, in the company that the turn began with."""
        seat = company.agent_seat_by_handle(handle)
        return NeverDue() if seat is None else SeatOnboarding(self, company, seat)

    def is_onboarded(self, agent_id: AgentId, place: str) -> bool:
        """Whether this process knows that it was."""
        return self._onboarded.get(agent_id) == place

    def onboarded(self, agent_id: AgentId, place: str) -> None:
        """It was."""
        self.settled(agent_id)
        self._onboarded[agent_id] = place
        _bounded(self._onboarded, limits.ONBOARDED_REMEMBERED_MAX)

    def unused(self, agent_id: AgentId, turn_id: str) -> None:
        """The turn makes no use of a claim that may stand."""
        turns = (*(each for each in self._unused.get(agent_id, ()) if each != turn_id), turn_id)
        self._unused[agent_id] = turns[-limits.ONBOARDING_UNUSED_TURNS_MAX :]
        _bounded(self._unused, limits.ONBOARDING_UNUSED_MAX)

    def ended(self, company: Organization, handle: str, turn_id: str) -> None:
        """The turn is over, which another process may have begun: it makes no use of a claim any more."""
        seat = company.agent_seat_by_handle(handle)
        if seat is not None:
            self.unused(_agent_of(company, seat), turn_id)

    def unused_by(self, agent_id: AgentId) -> tuple[str, ...]:
        """Such turns of the seat since it was last known whose claim stands: that of any of them may."""
        return self._unused.get(agent_id, ())

    def settled(self, agent_id: AgentId) -> None:
        """No claim of such a turn stands."""
        self._unused.pop(agent_id, None)


class SeatOnboarding:
    """One seat's, at the place that it has in one company. No call takes longer than ``limits.ONBOARDING_WAIT_S``."""

    def __init__(self, known: SeatOnboardings, company: Organization, seat: Seat) -> None:
        self._known = known
        self._company = company
        self._seat = seat
        self._handle = seat.handle
        self._agent_id = _agent_of(company, seat)

    async def due(self, turn_id: str) -> str:
        """The place, claimed for this turn; empty where the seat was onboarded there, or nobody can tell."""
        known, agent_id = self._known, self._agent_id
        place = chain_hash(self._company, self._seat)
        if known.is_onboarded(agent_id, place):
            return ""
        given_up = known.unused_by(agent_id)
        try:
            claim = await _in_time(known.marks.claim(agent_id, place, claimant=turn_id, given_up=given_up))
        except Unavailable as error:
            known.unused(agent_id, turn_id)
            _log.warning("onboarding_unknown", seat=self._handle, turn=turn_id, error=str(error))
            return ""
        if claim is OnboardingClaim.ONBOARDED:
            known.onboarded(agent_id, place)
        elif claim is OnboardingClaim.CLAIMED:
            known.settled(agent_id)
        else:
            _log.info("onboarding_taken", seat=self._handle, turn=turn_id)
        return place if claim is OnboardingClaim.CLAIMED else ""

    async def mark(self, turn_id: str, chain_hash: str) -> bool:
        """Onboarded at ``chain_hash``, which of a turn that another process began may be another place than ours."""
        known, agent_id = self._known, self._agent_id
        if known.is_onboarded(agent_id, chain_hash):
            return True
        try:
            await _in_time(known.marks.mark(agent_id, chain_hash, claimant=turn_id))
        except Unavailable as error:
            _log.warning("onboarding_not_marked", seat=self._handle, turn=turn_id, error=str(error))
            return False
        known.onboarded(agent_id, chain_hash)
        return True

    async def give_back(self, turn_id: str) -> None:
        """The claim is over; one that could not be taken off the record is known here, and lapses elsewhere."""
        try:
            await _in_time(self._known.marks.give_back(self._agent_id, claimant=turn_id))
        except Unavailable as error:
            self._known.unused(self._agent_id, turn_id)
            _log.info("onboarding_claim_left", seat=self._handle, turn=turn_id, error=str(error))


def _agent_of(company: Organization, seat: Seat) -> AgentId:
    return seat.agent_id or company.agent_id_for(seat)


async def _in_time(asked: Awaitable[_A]) -> _A:
    """Its answer. Raises ``Unavailable``, also where none came in time."""
    try:
        async with asyncio.timeout(limits.ONBOARDING_WAIT_S):
            return await asked
    except TimeoutError:
        raise Unavailable(f"no answer within {limits.ONBOARDING_WAIT_S:g} s") from None


def _bounded(names: dict[AgentId, Any], most: int) -> None:
    while len(names) > most:
        del names[next(iter(names))]
