"""The list of seats as an operator sees it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from crewlet.base.errors import Unavailable
from crewlet.coordination import SeatPause
from crewlet.node.face import SeatView
from crewlet.node.pause_views import pause_view
from crewlet.node.seat_activity import SeatActivities
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.org import Organization, Phase, Seat
from crewlet.seats import Host

__all__ = ["KnownPauses", "seat_views"]


class KnownPauses(Protocol):
    """Which seats are paused, as this node knows."""

    def paused(self, handle: str) -> SeatPause | None:
        """The seat's pause, if any. Raises ``Unavailable`` while nothing is known."""
        ...


def seat_views(
    epoch: CompanyEpoch,
    host: Host,
    activities: SeatActivities,
    pauses: KnownPauses,
    budget_refuses: Callable[[str], bool] = lambda _: False,
) -> tuple[SeatView, ...]:
    """Every seat of the company, people included, in the document's order.

    ``budget_refuses`` says of an agent's id whether a window that its tokens count in has no room.
    """
    held, unplaced = frozenset(host.held()), frozenset(seat.handle for seat in host.unplaceable())

    def view(seat: Seat) -> SeatView:
        pause, reason = _stopped(seat, pauses, unplaced)
        if reason is None and seat.is_agent and budget_refuses(seat.agent_id or ""):
            reason = "budget"
        return _view(epoch, seat, host, activities, pause, reason, held=seat.handle in held)

    return tuple(view(seat) for seat in epoch.organization.seats)


def _stopped(seat: Seat, pauses: KnownPauses, unplaced: frozenset[str]) -> tuple[SeatPause | None, str | None]:
    """The pause of an agent's seat, and why it works nothing as far as the fleet goes."""
    if not seat.is_agent:
        return None, None
    try:
        pause = pauses.paused(seat.handle)
    except Unavailable:
        # Nothing of it is worked meanwhile: the word is not "idle".
        return None, "pauses_unknown"
    if pause is not None:
        return pause, "paused"
    return None, "unplaced" if seat.handle in unplaced else None


def _view(
    epoch: CompanyEpoch,
    seat: Seat,
    host: Host,
    activities: SeatActivities,
    pause: SeatPause | None,
    stopped: str | None,
    *,
    held: bool,
) -> SeatView:
    company = epoch.organization
    activity = activities.of(seat.handle)
    models = _models(company, seat, epoch.skipped)
    manager = company.manager(seat.handle)
    stopped = stopped or ("provider" if activity.provider_down else None)
    word = "stopped" if stopped and activity.word == "idle" else activity.word
    return SeatView(
        handle=seat.handle,
        name=seat.name,
        kind=seat.kind,
        unit=seat.unit or "",
        manager="" if manager is None else manager.handle,
        agent_id=seat.agent_id or "",
        held_here=held,
        epoch=host.epoch_of(seat.handle),
        activity=word if seat.is_agent else None,
        stopped_reason=stopped if seat.is_agent and word == "stopped" else None,
        paused=None if pause is None else pause_view(pause),
        turn_id=activity.turn_id,
        last_turn_id=activity.last_turn_id,
        last_error=activity.last_error,
        models=models,
        models_are_real=all(company.models[key].is_real for key in models),
    )


def _models(company: Organization, seat: Seat, skipped: frozenset[str]) -> tuple[str, ...]:
    return company.model_chain(seat, Phase.EXECUTE, skipped=skipped) if seat.is_agent else ()
