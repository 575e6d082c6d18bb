"""The company in force, and putting another document in its place while the node runs."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import asdict
from typing import Any, TypeVar

import structlog
from fastapi import APIRouter

from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import CompanyApplied, CompanyChecked, NewCompany
from crewlet.api.refusals import Refused
from crewlet.base import limits
from crewlet.base.errors import ConfigError, Conflict
from crewlet.node.company_change import ApplyUnderWay, CheckedCompany, CompanyView
from crewlet.node.fleet_tools import ToolsView

__all__ = ["router"]

router = APIRouter(prefix="/company", tags=["company"], dependencies=[NEEDS_TOKEN])

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


@router.get("")
async def company(face: Face) -> CompanyView:
    """The document in force, as it was written, and its number."""
    return face.company.current()


@router.post("")
async def apply(new: NewCompany, face: Face, principal: Principal) -> CompanyApplied:
    """Put this document in force, here and on every node of the fleet.

    Refused with 400 and every problem found, or with 409 where another document came first, everything stays as it
    was. Tool servers start once it is in force, on each node its own: `GET /company/tools` says how they stand. A turn
    under way keeps the company that it began with. Where `lasts` is false, nothing but this process knows of the
    change: the next start runs the node's own file.
    """
    applied = await _answered(face.company.apply(_sized(new.document), by=principal))
    _log.info("company_applied_by_operator", epoch=applied.epoch, principal=principal)
    said = _said(applied.checked)
    return CompanyApplied(**said, epoch=applied.epoch, lasts=applied.lasts, trouble=applied.trouble)


@router.post("/check")
async def check(new: NewCompany, face: Face) -> CompanyChecked:
    """What putting this document in force would change, found out with this node's own environment and files."""
    return CompanyChecked(**_said(await _answered(face.company.check(_sized(new.document)))))


@router.get("/tools")
async def tools(face: Face) -> ToolsView:
    """How the tool servers of the document in force stand on every live node.

    `failures` are those that do not serve; `pending` says what is not settled yet; a node that did not answer is named
    in `coverage`. Where all three have nothing to say, the document is in place.
    """
    return await face.tools()


def _sized(document: str) -> str:
    if len(document.encode()) > limits.DOCUMENT_MAX_BYTES:
        raise Refused(413, "body_too_large", f"the document is larger than {limits.DOCUMENT_MAX_BYTES} bytes")
    return document


async def _answered(asked: Awaitable[_T]) -> _T:
    try:
        return await asked
    except ConfigError as error:
        problems = [{**asdict(each), "file": error.file} for each in error.problems]
        raise Refused(400, "bad_company", str(error), detail={"problems": problems}) from None
    except ApplyUnderWay as error:
        raise Refused(409, "apply_under_way", str(error)) from None
    except Conflict:
        message = "another document was put in force meanwhile, and this node is about to run it; look, and apply again"
        raise Refused(409, "company_moved", message) from None


def _said(checked: CheckedCompany) -> dict[str, Any]:
    change = checked.change
    return {
        "company": checked.company,
        "seats": {"added": change.added, "removed": change.removed, "changed": change.changed},
        "tools_renewed": change.tools_renewed,
        "models": change.models,
        "tool_servers": change.tool_servers,
        "ceilings": change.ceilings,
        "warnings": [asdict(each) for each in checked.warnings],
    }
