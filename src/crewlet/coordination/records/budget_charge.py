"""A charge on its way through the records it counts in: the company's first, then the seat's, none taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.coordination.records.budget_line import BudgetLine
from crewlet.coordination.records.budget_record import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    agent_scope,
    counted,
    landed,
)
from crewlet.coordination.records.budget_windows import Period, Windows

__all__ = ["Charge", "Refusal", "SeatShareMissing", "Share", "Spend", "Verdict", "refusals_of"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Tokens that are spent, and the name by which their charge is known again.

    ``lane`` is whatever charges one after another: a turn (its id), a worker of it (``{turn_id}/{task}``), else the
    process incarnation; ``number`` is the charge's place in it, from 1. No ``agent_id``: the company's alone.
    """

    tokens: int
    lane: str
    number: int
    agent_id: str = ""

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for what cannot be counted."""
        if self.tokens < 0 or self.number < 1 or not self.lane:
            raise ValueError(f"no charge: {self}")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that it counts in, in order."""
        return (COMPANY_SCOPE, agent_scope(self.agent_id)) if self.agent_id else (COMPANY_SCOPE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One window without room: what stood in it after the charge, and its ceiling (``None`` where it was lifted).

    ``period`` is a ``Period``, or the name of one that only a newer build counts: without a label then.
    """

    scope: str
    period: str
    label: str
    used: int
    ceiling: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate said to a charge, which is counted either way: nothing refused it, or these windows did."""

    refusals: tuple[Refusal, ...] = ()

    @property
    def admitted(self) -> bool:
        """Whether every capped window of both scopes had room."""
        return not self.refusals


class SeatShareMissing(Unavailable):
    """The company's record has the charge, and whether the seat's has it is not known (C-177).

    This process goes on trying. Who offers the spend again after its end offers the seat's share alone.
    """

    def __init__(self, scope: str, tokens: int, why: object) -> None:
        self.scope = scope
        self.tokens = tokens
        super().__init__(f"{scope}: its share of {tokens} tokens is not known to be counted, the company's is: {why}")


class Charge:
    """One spend, until each of its records has it. It goes on when its caller hangs up: the tokens are spent.

    ``windows`` is asked at each write. ``ceilings`` by scope, in order; ``None`` where nothing is judged.
    """

    def __init__(
        self,
        spend: Spend,
        ceilings: Mapping[str, Ceilings | None],
        *,
        line_of: Callable[[str], BudgetLine],
        windows: Callable[[], Windows],
        check: Callable[[], None],
    ) -> None:
        self.spend = spend
        self.windows = windows
        self.check = check
        self.line_of = line_of
        self._shares = [Share(self, scope, each) for scope, each in ceilings.items()]
        self._counted = 0
        self._refusals: list[Refusal] = []
        self._told: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._is_said_uncounted = False

    async def verdict(self) -> Verdict:
        """Begin, and return once every record has it; an outage is raised while the charge stays in line."""
        self._next()
        return await self._told

    def counted_in(self, refusals: Sequence[Refusal]) -> None:
        """One more record has it."""
        self._refusals += refusals
        self._counted += 1
        if self._counted < len(self._shares):
            self._next()
            return
        if self._is_said_uncounted:
            _log.info("coord_kv_budget_spend_counted_late", **self._facts)
        if not self._told.done():
            self._told.set_result(Verdict((*self._refusals,)))

    def held_up(self, why: object) -> None:
        """Whether the next record has it is not known, and the caller need not wait for it."""
        self._tell(self.outage(why))
        if self._counted:
            self._say_uncounted(why)

    def dropped(self, error: Fenced | Unavailable) -> None:
        """The rest of it is not counted here."""
        self._tell(error if isinstance(error, Fenced) else self.outage(error))
        self._say_uncounted(error)

    def outage(self, why: object) -> Unavailable:
        """What a caller is told who does not hear the verdict."""
        if self._counted:
            return SeatShareMissing(self._shares[self._counted].scope, self.spend.tokens, why)
        return Unavailable(f"whether {self.spend.tokens} tokens of {self.spend.lane} are counted is not known: {why}")

    def _next(self) -> None:
        try:
            self._shares[self._counted].begin()
        except Unavailable as error:
            self.dropped(error)

    def _tell(self, error: CrewletError) -> None:
        if not self._told.done():
            self._told.set_exception(error)

    def _say_uncounted(self, why: object) -> None:
        if not self._is_said_uncounted:
            self._is_said_uncounted = True
            _log.warning("coord_kv_budget_spend_uncounted", **self._facts, error=str(why))

    @property
    def _facts(self) -> dict[str, object]:
        scope = self._shares[min(self._counted, len(self._shares) - 1)].scope
        return {"scope": scope, "tokens": self.spend.tokens, "lane": self.spend.lane, "number": self.spend.number}


class Share:
    """One record's part of a charge, as its line sees it."""

    def __init__(self, charge: Charge, scope: str, ceilings: Ceilings | None) -> None:
        self.scope = scope
        self.charge = charge
        self.spend = charge.spend
        self.ceilings = ceilings
        self.lanes = (self.spend.lane,)
        self.reads_first = False

    def begin(self) -> None:
        """Wait in the line of its record. Raises ``Unavailable``."""
        self.charge.line_of(self.scope).join(self)

    def stands_in(self, record: BudgetRecord) -> bool:
        """Whether the lane has come so far."""
        return landed(record, self.spend.lane, self.spend.number) is not None

    def check(self) -> None:
        """Ask the fence of whoever spent it."""
        self.charge.check()

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        """The record with it counted, in the windows of this very moment."""
        spend = self.spend
        return counted(
            record,
            self.charge.windows(),
            spend.tokens,
            lane=spend.lane,
            number=spend.number,
            ceilings=self.ceilings,
        )

    def decided(self, record: BudgetRecord) -> None:
        """Go on with the next record."""
        refused = landed(record, self.spend.lane, self.spend.number)
        assert refused is not None, "what is decided has its lane in the record"
        self.charge.counted_in(refusals_of(record, refused, self.ceilings or UNCAPPED))

    def held_up(self, error: Unavailable) -> bool:
        """Tell the caller, and stay."""
        self.charge.held_up(error)
        return True

    def dropped(self, error: Fenced | Unavailable) -> None:
        """Tell the caller."""
        self.charge.dropped(error)


def refusals_of(record: BudgetRecord, periods: Sequence[str], ceilings: Ceilings) -> list[Refusal]:
    """The windows of ``periods``, as the record has them now."""
    return [_refusal(record, period, ceilings) for period in periods]


def _refusal(record: BudgetRecord, period: str, ceilings: Ceilings) -> Refusal:
    if period not in {*Period}:
        return Refusal(scope=record.scope, period=period, label="", used=0, ceiling=None)
    known = Period(period)
    slot = record.slot(known)
    return Refusal(scope=record.scope, period=known, label=slot.label, used=slot.used, ceiling=ceilings.of(known))
