"""Taking a changed company into force while the node runs: built whole, then swapped, then everything comes after it.

What can be wrong with a document is found before the swap, and leaves everything as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.base.tasks import Tasks
from crewlet.config import LoadedCompany, company_of, source_of
from crewlet.coordination import ActiveConfig, Mailboxes
from crewlet.events.types import ConfigRevisionActivated, ConfigRevisionApplied
from crewlet.node.company_change import (
    AppliedCompany,
    ApplyUnderWay,
    CheckedCompany,
    CompanyChange,
    CompanyView,
    company_change,
)
from crewlet.node.company_in_force import (
    BuiltCompany,
    CompanyInForce,
    CompanyModels,
    built_company,
    company_models,
)
from crewlet.node.company_parts import CompanySource, placed_seats, shared_server_specs
from crewlet.node.fleet_company import revision_of
from crewlet.node.key_cooldowns import KeyCooldowns
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.node.news import News
from crewlet.node.shared_tools import start_shared_tools
from crewlet.node.turn_runner import TurnRunner
from crewlet.queue import EventQueue
from crewlet.seats import Host
from crewlet.tools import ToolHost
from crewlet.turns import TurnConfig, TurnEngine

__all__ = ["Activate", "ApplyingParts", "CompanyApplying"]

_log = structlog.get_logger(__name__)

Activate = Callable[[str, str], Awaitable[int]]
"""Makes a document, on somebody's word, the one that is current everywhere; returns its number.

Raises ``Conflict`` where another one is current than this node runs, ``Unavailable``.
"""


class ForgetPauses(Protocol):
    """Lifts what people paused of seats that left the company."""

    async def __call__(self, handles: Iterable[str], *, before: datetime) -> None:
        """Lift those set ``before``; what fails is said."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyingParts:
    """What a change of company touches. ``lasts``: whether it outlives this process."""

    in_force: CompanyInForce
    new_engine: Callable[[TurnConfig], TurnEngine]
    runner: TurnRunner
    cooldowns: KeyCooldowns
    tools: ToolHost
    host: Host
    queue: EventQueue
    mailboxes: Mailboxes
    mail_held_anew: Callable[[], Awaitable[None]]
    forget_pauses: ForgetPauses
    news: News
    clock: Clock
    lasts: bool


class CompanyApplying:
    """One change at a time. What is begun is brought to its end, whether or not whoever asked still waits."""

    def __init__(self, parts: ApplyingParts, activate: Activate) -> None:
        self._parts = parts
        self._activate = activate
        self._one_at_a_time = asyncio.Lock()
        self._is_looking = False
        self._tasks = Tasks("company")

    def current(self) -> CompanyView:
        """The company in force."""
        parts = self._parts
        source = parts.in_force.source()
        return CompanyView(
            company=source.organization.name, epoch=parts.in_force.number, document=source.document, lasts=parts.lasts
        )

    async def check(self, document: str) -> CheckedCompany:
        """What applying it would change. Raises ``ConfigError``."""
        loaded, models = await self._read(document)
        await models.models.aclose()
        return self._checked(loaded)

    async def apply(self, document: str, *, by: str) -> AppliedCompany:
        """Take the document into force. Raises ``ConfigError``, ``ApplyUnderWay``, ``Conflict``, ``Unavailable``."""
        # A look at what the fleet runs is no document: it is waited for, and whoever applies hears nothing of it.
        if self._one_at_a_time.locked() and not self._is_looking:
            raise ApplyUnderWay("another document is being applied; try again in a moment")

        async def activate() -> int:
            return await self._activate(document, by)

        # Held while the store is asked: a second document must not overtake the first. Each wait has its own bound.
        await self._one_at_a_time.acquire()
        return await self._in_turn(document, activate, by=by)

    async def follow(self, current: Callable[[], Awaitable[ActiveConfig]]) -> ActiveConfig:
        """Take into force what the fleet runs; nothing happens where this node runs it. Returns what it is.

        It is asked for once no other change is under way: an answer from before that change would undo it.

        Raises ``ConfigError``, ``Unavailable``.
        """
        await self._one_at_a_time.acquire()
        self._is_looking = True
        try:
            active = await current()
        except BaseException:
            self._one_at_a_time.release()
            raise
        finally:
            self._is_looking = False
        if active.epoch == self._parts.in_force.number:
            self._one_at_a_time.release()
            return active

        async def activated() -> int:
            await asyncio.sleep(0)
            return active.epoch

        await self._in_turn(active.pointer.document, activated)
        return active

    async def close(self) -> None:
        """Nothing is applied any more; models that a turn still uses are closed with the rest."""
        await self._tasks.close()

    async def _in_turn(self, document: str, activate: Callable[[], Awaitable[int]], *, by: str = "") -> AppliedCompany:
        applying = self._tasks.start("apply", self._outcome(document, activate, by))
        applying.add_done_callback(lambda _: self._one_at_a_time.release())
        outcome = await asyncio.shield(applying)
        if isinstance(outcome, CrewletError):
            raise outcome
        return outcome

    async def _outcome(
        self, document: str, activate: Callable[[], Awaitable[int]], by: str
    ) -> AppliedCompany | CrewletError:
        try:
            return await self._apply(document, activate, by)
        except CrewletError as error:
            _log.warning("company_refused", error=str(error))
            return error

    async def _apply(self, document: str, activate: Callable[[], Awaitable[int]], by: str) -> AppliedCompany:
        loaded, models = await self._read(document)
        try:
            checked = self._checked(loaded)
            # Before anybody can write to the new seats: a message to a seat without a mailbox is gone (E-053).
            await ensure_mailboxes(self._parts.queue, self._parts.mailboxes, self._coming(loaded))
            number = await activate()
        except BaseException:
            await models.models.aclose()
            raise
        self._swap(built_company(self._source(loaded), models, self._parts.new_engine), number)
        trouble = ""
        try:
            await self._come_after(checked.change)
        except CrewletError as error:
            # In force it is all the same: whoever was told of a refusal would look for the company of before.
            trouble = str(error)
            _log.error("company_not_come_after", epoch=number, error=trouble)
        _log.info("company_applied", company=loaded.organization.name, epoch=number)
        await self._tell(loaded, number, by=by, trouble=trouble)
        return AppliedCompany(checked=checked, epoch=number, lasts=self._parts.lasts, trouble=trouble)

    async def _tell(self, loaded: LoadedCompany, number: int, *, by: str, trouble: str) -> None:
        """Who put it in force is told by the node that was asked, and that it runs by every node for itself."""
        company, revision, news = loaded.organization.name, revision_of(loaded.text), self._parts.news
        if by:
            activated = ConfigRevisionActivated(company=company, revision_id=revision, epoch=number, activated_by=by)
            await news.tell(activated, source="engine")
        applied = ConfigRevisionApplied(company=company, revision_id=revision, epoch=number, trouble=trouble)
        await news.tell(applied, source="engine")

    async def _read(self, document: str) -> tuple[LoadedCompany, CompanyModels]:
        """In a thread: a large document takes seconds."""

        def read() -> tuple[LoadedCompany, CompanyModels]:
            loaded = company_of(source_of(document))
            return loaded, company_models(self._source(loaded), self._parts.clock, self._parts.cooldowns.benched)

        return await asyncio.to_thread(read)

    def _source(self, loaded: LoadedCompany) -> CompanySource:
        return replace(self._parts.in_force.source(), organization=loaded.organization, document=loaded.text)

    def _coming(self, loaded: LoadedCompany) -> list[str]:
        """Agent seats that this node has made no mailbox for; a person's seat may have become an agent's."""
        had = self._parts.in_force.organization()
        return [each.handle for each in loaded.organization.agent_seats if not had.agent_seat_by_handle(each.handle)]

    def _checked(self, loaded: LoadedCompany) -> CheckedCompany:
        change = company_change(self._parts.in_force.organization(), loaded.organization)
        return CheckedCompany(company=loaded.organization.name, change=change, warnings=loaded.warnings)

    def _swap(self, company: BuiltCompany, number: int) -> None:
        left = self._parts.in_force.company
        self._parts.cooldowns.take_over(company.epoch.models)
        self._parts.in_force.company, self._parts.in_force.number = company, number
        self._tasks.start("retire", self._retire(left))

    async def _retire(self, left: BuiltCompany) -> None:
        """Close the old company's models once its last turn has ended, or has had all the time that a turn may want."""
        try:
            async with asyncio.timeout(limits.COMPANY_RETIRED_AFTER_S):
                await self._parts.runner.wait_ended(left.epoch)
        except TimeoutError:
            _log.warning("company_retired_under_turns", company=left.source.organization.name)
        finally:
            self._parts.cooldowns.retire(left.epoch.models)
            await left.epoch.models.aclose()

    async def _come_after(self, change: CompanyChange) -> None:
        """What fails from here on is tried again by whoever owns it, and is on ``/health`` until it works.

        The pass over the seats comes last: all that a seat is established from is current then (S-026).
        """
        parts, source = self._parts, self._parts.in_force.source()
        await parts.mail_held_anew()
        await parts.forget_pauses(change.removed, before=parts.clock.now())
        try:
            await start_shared_tools(parts.tools, shared_server_specs(source), self._tasks)
        finally:
            parts.host.apply(placed_seats(source.organization), anew=change.tools_renewed)
