"""The company as routing sees it: who is behind an identity, in the document current when asked."""

from __future__ import annotations

from collections.abc import Callable

from crewlet.notify import Seat
from crewlet.org import Organization
from crewlet.org import Seat as OrgSeat

__all__ = ["CompanyDirectory"]


class CompanyDirectory:
    """Resolves identities against the company of the moment, never against a copy taken earlier (E-051)."""

    def __init__(self, company: Callable[[], Organization]) -> None:
        self._company = company

    def resolve(self, identity: str) -> Seat | None:
        """The seat behind a handle, an agent id, a name or an email that it alone has, or an email's ``+handle``."""
        company = self._company()
        found = company.find_seat(identity) or _by_email(company, identity)
        if found is None:
            return None
        return Seat(found.handle, found.agent_id or "", found.is_agent)


def _by_email(company: Organization, identity: str) -> OrgSeat | None:
    local, at, _domain = identity.partition("@")
    if not at:
        return None
    wanted = identity.casefold()
    known = [seat for seat in company.seats if seat.email and seat.email.casefold() == wanted]
    # An address that is somebody's own is theirs, tag and all.
    return known[0] if len(known) == 1 else company.seat(local.partition("+")[2])
