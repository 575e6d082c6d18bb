"""The list of seats as an operator sees it. Pure."""

from __future__ import annotations

from crewlet.node.face import SeatView
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.org import Organization, Phase, Seat
from crewlet.seats import Host

__all__ = ["seat_views"]


def seat_views(epoch: CompanyEpoch, host: Host, activities: SeatActivities) -> tuple[SeatView, ...]:
    """Every seat of the company, people included, in the document's order."""
    held = frozenset(host.held())
    return tuple(_view(epoch, seat, host, activities, held=seat.handle in held) for seat in epoch.organization.seats)


def _view(epoch: CompanyEpoch, seat: Seat, host: Host, activities: SeatActivities, *, held: bool) -> SeatView:
    company = epoch.organization
    activity = activities.of(seat.handle)
    models = _models(company, seat, epoch.skipped)
    manager = company.manager(seat.handle)
    return SeatView(
        handle=seat.handle,
        name=seat.name,
        kind=seat.kind,
        unit=seat.unit or "",
        manager="" if manager is None else manager.handle,
        agent_id=seat.agent_id or "",
        held_here=held,
        epoch=host.epoch_of(seat.handle),
        activity=activity.word if seat.is_agent else None,
        turn_id=activity.turn_id,
        last_turn_id=activity.last_turn_id,
        last_error=activity.last_error,
        models=models,
        models_are_real=all(company.models[key].is_real for key in models),
    )


def _models(company: Organization, seat: Seat, skipped: frozenset[str]) -> tuple[str, ...]:
    return company.model_chain(seat, Phase.EXECUTE, skipped=skipped) if seat.is_agent else ()
