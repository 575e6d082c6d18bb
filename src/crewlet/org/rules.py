"""Every rule of the company document that no single field can keep; each rule is a generator of problems."""

from __future__ import annotations

from crewlet.base.errors import Problem
from crewlet.org.document import CompanyDocument
from crewlet.org.rules_identity import identity_problems
from crewlet.org.rules_models import model_problems
from crewlet.org.rules_people import people_problems
from crewlet.org.rules_tool_servers import tool_server_problems
from crewlet.org.rules_workers import worker_problems
from crewlet.org.walk import chart_of

__all__ = ["company_problems"]


def company_problems(document: CompanyDocument) -> tuple[Problem, ...]:
    """All that is wrong with a document whose fields are each well-formed."""
    chart = chart_of(document)
    return (
        *identity_problems(chart),
        *people_problems(chart),
        *model_problems(document, chart),
        *tool_server_problems(document, chart),
        *worker_problems(document, chart),
    )
