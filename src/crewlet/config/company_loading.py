"""Reading a company document: checked field by field, then as a whole, then turned into the organisation."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from crewlet.base.errors import ConfigError, Problem
from crewlet.config.other_file import NODE_KEYS_ELSEWHERE, refuse_the_other
from crewlet.config.problems import located, problems_of
from crewlet.config.yaml_source import Source, read_source
from crewlet.org import CompanyDocument, Organization, organize

__all__ = ["LoadedCompany", "company_of", "load_company"]

_log = structlog.get_logger(__name__)


class LoadedCompany(NamedTuple):
    """A company as written, as organised, what in it has no effect, and its text."""

    document: CompanyDocument
    organization: Organization
    warnings: tuple[Problem, ...]
    text: str = ""


def load_company(path: Path | str) -> LoadedCompany:
    """Read one company document, without any environment, and log each warning. Raises ``ConfigError``."""
    loaded = company_of(read_source(Path(path)))
    for warning in loaded.warnings:
        _log.warning("company_warning", path=warning.path, problem=warning.problem, remedy=warning.remedy)
    return loaded


def company_of(source: Source) -> LoadedCompany:
    """The same for a document already read."""
    refuse_the_other(source, "company")
    try:
        document = CompanyDocument.model_validate(source.values)
        organization = organize(document)
    except ValidationError as error:
        found = problems_of(error, CompanyDocument, elsewhere=NODE_KEYS_ELSEWHERE)
        raise ConfigError(*located(found, source.lines), file=source.file) from None
    except ConfigError as error:
        raise ConfigError(*located(error.problems, source.lines), file=source.file) from None
    return LoadedCompany(document, organization, located(organization.dangling, source.lines), source.text)
