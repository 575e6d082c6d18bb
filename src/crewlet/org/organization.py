"""The normalised organisation: immutable, with every reference resolved and every lookup a dictionary's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from crewlet.base.errors import Problem
from crewlet.base.ids import AgentId, Handle
from crewlet.org.model_entries import ModelEntry, Phase, model_chain
from crewlet.org.names import UnitKey, agent_id_for
from crewlet.org.seats import Seat, Unit
from crewlet.org.token_budget import TokenBudget
from crewlet.org.tool_servers import ToolServer
from crewlet.org.workers import DelegationLimits, WorkerTemplate

__all__ = ["NotificationLimits", "Organization", "TurnLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """How far a turn may go: executions, model calls of one execution and what a judge may add, asks within asks.

    ``onboarding_max_tool_rounds`` are the model calls of an onboarding, 0 for none.
    """

    max_iterations: int
    max_tool_rounds: int
    delegation_depth_limit: int
    onboarding_max_tool_rounds: int
    extension_enabled: bool
    execute_max_tool_rounds_ceiling: int
    onboarding_max_tool_rounds_ceiling: int
    extension_round_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationLimits:
    """How notifications are gathered before a turn, and how many a seat is let have (0: as many as come)."""

    gather_s: float
    gather_max: int
    a_second_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """A company. Seats and units stand in walk order: root seats first, then each unit before the units inside it.

    ``dangling`` holds the references that name nothing; they are reported and have no other effect.
    """

    name: str
    mission: str
    vision: str
    timezone: str
    policies: tuple[str, ...]
    seats: tuple[Seat, ...]
    units: tuple[Unit, ...]
    models: Mapping[str, ModelEntry]
    tool_servers: tuple[ToolServer, ...]
    turn_limits: TurnLimits
    notifications: NotificationLimits
    token_budget: TokenBudget
    workers: Mapping[str, WorkerTemplate]
    delegation: DelegationLimits
    dangling: tuple[Problem, ...] = ()
    _by_handle: Mapping[Handle, Seat] = field(init=False, repr=False, compare=False)
    _by_agent_id: Mapping[AgentId, Seat] = field(init=False, repr=False, compare=False)
    _units: Mapping[UnitKey, Unit] = field(init=False, repr=False, compare=False)
    _managers: Mapping[Handle, Seat] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        freeze = object.__setattr__  # The dataclass is frozen; these indexes follow from its fields alone.
        by_agent_id = {seat.agent_id: seat for seat in self.seats if seat.agent_id is not None}
        managers = {report: seat for seat in reversed(self.seats) for report in seat.manages}
        freeze(self, "_by_handle", MappingProxyType({seat.handle: seat for seat in self.seats}))
        freeze(self, "_by_agent_id", MappingProxyType(by_agent_id))
        freeze(self, "_units", MappingProxyType({unit.key: unit for unit in self.units}))
        freeze(self, "_managers", MappingProxyType(managers))

    @property
    def agent_seats(self) -> tuple[Seat, ...]:
        """The seats that the engine runs."""
        return tuple(seat for seat in self.seats if seat.is_agent)

    @property
    def human_seats(self) -> tuple[Seat, ...]:
        """The people."""
        return tuple(seat for seat in self.seats if not seat.is_agent)

    def seat(self, handle: str) -> Seat | None:
        """The seat of that handle, agent or human."""
        return self._by_handle.get(Handle(handle))

    def agent_seat_by_handle(self, handle: str) -> Seat | None:
        """The agent seat of that handle; ``None`` for a human's too."""
        seat = self.seat(handle)
        return seat if seat is not None and seat.is_agent else None

    def agent_seat_by_id(self, agent_id: str) -> Seat | None:
        """The agent seat behind an agent id; found without any record or running seat (E-052)."""
        return self._by_agent_id.get(AgentId(agent_id))

    def agent_id_for(self, seat: Seat) -> AgentId:
        """The id of the agent in ``seat``; follows from the company's name and the handle alone."""
        return agent_id_for(self.name, seat.handle)

    def find_seat(self, token: str) -> Seat | None:
        """The seat that ``token`` means: its handle, its agent id, or a name that only one seat has."""
        exact = self.seat(token) or self.agent_seat_by_id(token)
        if exact is not None:
            return exact
        named = [seat for seat in self.seats if seat.name == token]
        return named[0] if len(named) == 1 else None

    def unit(self, key: str) -> Unit | None:
        """The unit of that key."""
        return self._units.get(UnitKey(key))

    def manager(self, handle: str) -> Seat | None:
        """The first seat in walk order that manages this one."""
        return self._managers.get(Handle(handle))

    def reports(self, handle: str) -> tuple[Seat, ...]:
        """The seats that this one manages."""
        seat = self.seat(handle)
        return () if seat is None else tuple(self._by_handle[report] for report in seat.manages)

    def model_chain(self, seat: Seat, phase: Phase, *, skipped: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The keys of ``models`` that this phase of the seat's turn tries, in order."""
        return model_chain(self.models, seat.models, phase, skipped=skipped)
