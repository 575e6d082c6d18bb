"""The company document: what a person writes down about the whole company."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from crewlet.base import limits
from crewlet.org.document_budget import TokenBudgetDocument
from crewlet.org.document_part import DocumentPart, Later, Required, Texts, refused
from crewlet.org.document_providers import ProvidersDocument
from crewlet.org.document_role import RoleDocument
from crewlet.org.document_tool_servers import ToolServerDocument
from crewlet.org.document_turn_engine import TurnEngineDocument
from crewlet.org.document_unit import UnitDocument
from crewlet.org.document_workers import WorkerDocument

__all__ = ["CompanyDocument"]


def _check_timezone(name: str) -> str:
    if name.lower() in {"local", "localtime"}:
        raise refused("the host's own zone is no company time: nodes would disagree", "name an IANA zone, or UTC")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise refused("is no IANA time zone", "write it like Europe/Paris, or UTC") from None
    return name


def _check_window(seconds: int) -> int:
    if not 0 <= seconds <= limits.MAX_LINGER_SECONDS:
        raise refused(f"must be between 0 and {limits.MAX_LINGER_SECONDS}")
    return seconds


def _check_batch(events: int) -> int:
    if not 1 <= events <= limits.MAX_BATCH_EVENTS:
        raise refused(f"must be between 1 and {limits.MAX_BATCH_EVENTS}")
    return events


class CompanyDocument(DocumentPart):
    """A company of seats and units, and what they work with."""

    name: Required
    """Part of every agent's identity: another name is another company, whose agents remember nothing."""
    mission: str = ""
    vision: str = ""
    timezone: Annotated[str, AfterValidator(_check_timezone)] = "UTC"
    """The company's clock: an IANA zone."""
    policies: Texts = ()
    """Told in full to every agent."""
    roles: Annotated[tuple[RoleDocument, ...], Field(strict=False)] = ()
    """The seats outside any unit."""
    units: Annotated[tuple[UnitDocument, ...], Field(strict=False)] = ()
    providers: ProvidersDocument = ProvidersDocument()
    turn_engine: TurnEngineDocument = TurnEngineDocument()
    mcp_servers: Annotated[tuple[ToolServerDocument, ...], Field(strict=False)] = ()
    notification_coalesce_window_seconds: Annotated[int, AfterValidator(_check_window)] = 0
    """How long an inbox gathers after the first message before its turn begins; what waits is gathered in any case."""
    notification_coalesce_max_batch: Annotated[int, AfterValidator(_check_batch)] = limits.BATCH_EVENTS
    """Messages taken from an inbox at once, over all their conversations; bounds what one turn is told of one."""
    notification_rate_limit: Annotated[int, Field(ge=0)] = 0
    """Notifications a second that one seat is let have, the rest being dropped. 0: no limit. A valve against storms
    and loops alone; bursts are what gathering is for."""
    token_budget: TokenBudgetDocument = TokenBudgetDocument()
    """What all its agents together may spend."""
    workers: dict[str, WorkerDocument] = Field(default_factory=dict[str, WorkerDocument])
    """What agents hand parts of their work to, by name."""
    learning: Annotated[object, Later()] = None
    scheduling: Annotated[object, Later()] = None
    knowledge: Annotated[object, Later()] = None
    tracker: Annotated[object, Later()] = None
    integrations: Annotated[object, Later()] = None
    skill_variables: Annotated[object, Later()] = None
