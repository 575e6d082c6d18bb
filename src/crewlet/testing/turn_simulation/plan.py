"""How large a simulated company and its troubles are, and the company's document."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crewlet.config import Variables
from crewlet.node import CompanySource
from crewlet.org import CompanyDocument, organize

__all__ = ["HANDLES", "TurnPlan", "company_source"]

HANDLES = ("ceo", "cto", "eng")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """``steps`` troubles and bursts of mail befall ``nodes`` nodes, ``step_s`` apart at most."""

    nodes: int = 3
    steps: int = 12
    step_s: float = 30.0
    burst_max: int = 7
    max_deliver: int = 6
    ttl_s: float = 45.0
    rest_within_s: float = 7200.0


def company_source(*, company_day: int | None = None, seat_day: int | None = None) -> CompanySource:
    """A small company, with ceilings of tokens a day for all of it and for one of its seats."""
    document: dict[str, object] = {
        "name": "Acme",
        "roles": [{"name": "Chief", "handle": "ceo", **_ceiling(seat_day)}],
        "units": [
            {
                "name": "Engineering",
                "lead": "cto",
                "roles": [{"name": "Technology", "handle": "cto"}, {"name": "Engineer", "handle": "eng"}],
            }
        ],
        "notification_coalesce_window_seconds": 2,
        "turn_engine": {"max_tool_rounds": 8, "execute_max_tool_rounds_ceiling": 12, "extension_round_step": 2},
        "providers": {"llm": {"default": {"type": "scripted", "script": "script.yaml"}}},
        **_ceiling(company_day),
    }
    return CompanySource(organize(CompanyDocument.model_validate(document)), Path("/company"), Variables({}))


def _ceiling(day: int | None) -> dict[str, object]:
    return {} if day is None else {"token_budget": {"day": day}}
