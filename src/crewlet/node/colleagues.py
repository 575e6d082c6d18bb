"""The company as its agents see it: who works here, whom they can ask, and what a prompt says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from crewlet.org import Organization, Seat
from crewlet.tools import Colleague
from crewlet.turns import CompanyBrief, SeatBrief, WorkerBrief

__all__ = ["CompanyColleagues", "CompanyLines", "company_brief", "seat_brief", "worker_briefs"]


class CompanyColleagues:
    """Answers from the company of the moment, for the tools that look colleagues up and ask them."""

    def __init__(self, company: Callable[[], Organization]) -> None:
        self._company = company

    def colleagues(self) -> list[Colleague]:
        """All seats of the company."""
        company = self._company()
        return [_colleague(company, seat) for seat in company.seats]

    def agents(self) -> tuple[str, ...]:
        """The handles of all agent seats."""
        return tuple(seat.handle for seat in self._company().agent_seats)

    def is_human(self, handle: str) -> bool:
        """Whether the handle is a person's."""
        seat = self._company().seat(handle)
        return seat is not None and not seat.is_agent


def company_brief(company: Organization) -> CompanyBrief:
    """What every prompt says of the company."""
    return CompanyBrief(name=company.name, mission=company.mission, vision=company.vision, policies=company.policies)


class CompanyLines:
    """A line for each seat of one company, as the prompts of the others show it; made once, when first asked for."""

    def __init__(self, company: Organization) -> None:
        self._company = company
        self._agents: dict[str, str] | None = None
        self._humans: dict[str, str] = {}

    def around(self, seat: Seat) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The agents and the people beside the seat."""
        if self._agents is None:
            each = [_colleague(self._company, other) for other in self._company.seats]
            self._agents = {one.handle: _line(one) for one in each if one.kind == "agent"}
            self._humans = {one.handle: _line(one) for one in each if one.kind == "human"}
        return _without(self._agents, seat.handle), _without(self._humans, seat.handle)


def seat_brief(company: Organization, seat: Seat, lines: CompanyLines) -> SeatBrief:
    """What the seat's own prompt says of it and of those around it."""
    unit = None if seat.unit is None else company.unit(seat.unit)
    manager = company.manager(seat.handle)
    team, human_colleagues = lines.around(seat)
    return SeatBrief(
        handle=seat.handle,
        name=seat.name,
        agent_id=seat.agent_id or "",
        goal=seat.goal,
        backstory=seat.backstory,
        responsibilities=seat.responsibilities,
        guidelines=seat.behavioral_guidelines,
        unit="" if unit is None else "\n".join(part for part in (unit.name, unit.purpose, *unit.goals) if part),
        manager="" if manager is None else f"{manager.name} (@{manager.handle})",
        team=team,
        human_colleagues=human_colleagues,
    )


def worker_briefs(company: Organization, seat: Seat, usable: Collection[str]) -> list[WorkerBrief]:
    """The workers that the seat may use; one whose model is left out for want of a key has the seat's own."""
    return [
        WorkerBrief(
            name=template.name,
            description=template.description,
            system_prompt=template.system_prompt,
            tools=template.tools,
            model=template.model if template.model in usable else "",
            max_turns=template.max_turns,
            output=template.output,
        )
        for template in (company.workers[name] for name in seat.workers)
    ]


def _colleague(company: Organization, seat: Seat) -> Colleague:
    unit = None if seat.unit is None else company.unit(seat.unit)
    manager = company.manager(seat.handle)
    return Colleague(
        handle=seat.handle,
        name=seat.name,
        kind=seat.kind,
        unit="" if unit is None else unit.name,
        lead_of=tuple(each.name for each in company.units if each.lead == seat.handle),
        manager="" if manager is None else manager.handle,
        goal=seat.goal,
        responsibilities=seat.responsibilities,
        availability=seat.availability,
        contact="ask with a2a_ask" if seat.is_agent else _contact(seat),
    )


def _without(lines: dict[str, str], handle: str) -> tuple[str, ...]:
    return tuple(line for other, line in lines.items() if other != handle)


def _contact(seat: Seat) -> str:
    ways = {"email": seat.email, **seat.contact}
    return ", ".join(f"{kind.removesuffix('_id')}: {value}" for kind, value in ways.items() if value)


def _line(colleague: Colleague) -> str:
    facts = [colleague.unit, colleague.goal, colleague.availability if colleague.kind == "human" else ""]
    about = "; ".join(fact for fact in facts if fact)
    return f"@{colleague.handle}: {colleague.name}{f' ({about})' if about else ''}"
