"""What changed between two companies, and what a node says of a change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crewlet.base.errors import CrewletError, Problem
from crewlet.org import Organization, Seat, TokenBudget, ToolServer

__all__ = ["AppliedCompany", "ApplyUnderWay", "CheckedCompany", "CompanyChange", "CompanyView", "company_change"]


class ApplyUnderWay(CrewletError):
    """This node is taking another document just now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyChange:
    """Handles, in the order of the company they are in: seats that came, that left, and that are not what they were.

    ``tools_renewed``: agent seats that stay, and whose own tool servers changed; they are established anew.
    ``models`` and ``tool_servers``: keys and names of entries that came, left or changed. ``ceilings``: whether what
    may be spent changed, of the company or of a seat that stays, or the clock that cuts the windows.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    tools_renewed: tuple[str, ...]
    models: tuple[str, ...]
    tool_servers: tuple[str, ...]
    ceilings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyView:
    """The company in force: its document as it was written, and the document's number.

    ``lasts``: whether a change of it outlives the process; where it does not, the file is what the next start runs.
    """

    company: str
    epoch: int
    document: str
    lasts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCompany:
    """A document that this node could run: what it would change, and what in it has no effect."""

    company: str
    change: CompanyChange
    warnings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCompany:
    """The same of a document that is in force now, with its number. ``lasts`` is as in ``CompanyView``.

    ``trouble`` is what failed on this node after it had come into force, empty where nothing did: no refusal, since
    there is no way back.
    """

    checked: CheckedCompany
    epoch: int
    lasts: bool
    trouble: str = ""


def company_change(before: Organization, after: Organization) -> CompanyChange:
    """What ``after`` changes about ``before``; texts are compared as written, ``${VAR}`` and all."""
    stay = [(seat, now) for seat in before.seats if (now := after.seat(seat.handle)) is not None]
    agents = [(seat, now) for seat, now in stay if seat.is_agent and now.is_agent]
    return CompanyChange(
        added=tuple(seat.handle for seat in after.seats if before.seat(seat.handle) is None),
        removed=tuple(seat.handle for seat in before.seats if after.seat(seat.handle) is None),
        changed=tuple(seat.handle for seat, now in stay if seat != now),
        tools_renewed=tuple(
            seat.handle for seat, now in agents if _own_servers(before, seat) != _own_servers(after, now)
        ),
        models=_differing(before.models, after.models),
        tool_servers=_differing(
            {server.name: server for server in before.tool_servers},
            {server.name: server for server in after.tool_servers},
        ),
        ceilings=_spending(before) != _spending(after) or any(s.token_budget != now.token_budget for s, now in agents),
    )


def _spending(company: Organization) -> tuple[TokenBudget, str]:
    return company.token_budget, company.timezone


def _own_servers(company: Organization, seat: Seat) -> dict[str, tuple[ToolServer, dict[str, str]]]:
    """The unshared servers that the seat has a child of, each with what it is started with for this seat."""
    return {
        server.name: (server, dict(seat.mcp_env[server.name]))
        for server in company.tool_servers
        if not server.shared and server.name in seat.mcp_env
    }


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in {**before, **after} if before.get(name) != after.get(name))
