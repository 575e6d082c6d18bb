"""The company that this node runs at this moment, and how a document becomes one that it can run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from crewlet.base.clock import Clock
from crewlet.config import models_without_keys
from crewlet.llm import Models, OnBench, build_models
from crewlet.node.company_parts import CompanySource, provider_configs, shared_server_specs, turn_config
from crewlet.node.fleet_company import revision_of
from crewlet.node.turn_runner import CompanyEpoch
from crewlet.org import Organization
from crewlet.turns import TurnConfig, TurnEngine

__all__ = ["BuiltCompany", "CompanyInForce", "CompanyModels", "built_company", "company_models"]


class CompanyModels(NamedTuple):
    """A company's models, and the entries that are left out for want of a key."""

    models: Models
    skipped: frozenset[str]


@dataclass(frozen=True, slots=True)
class BuiltCompany:
    """A company and all that turns need of it."""

    source: CompanySource
    epoch: CompanyEpoch


@dataclass(slots=True)
class CompanyInForce:
    """Which company this is, under which number; whoever needs it asks anew each time, and keeps nothing of it.

    ``number`` is the fleet's epoch of the configuration; a node that shares none counts its own.
    """

    company: BuiltCompany
    number: int

    def source(self) -> CompanySource:
        """The company as its document has it."""
        return self.company.source

    def organization(self) -> Organization:
        """The company itself."""
        return self.company.source.organization

    def epoch(self) -> CompanyEpoch:
        """What a turn that begins now works with."""
        return self.company.epoch

    async def next_number(self, document: str, by: str) -> int:
        """The number of a document that this node alone will run."""
        await asyncio.sleep(0)
        return self.number + 1

    async def close(self) -> None:
        """Close the models."""
        await self.company.epoch.models.aclose()


def built_company(
    source: CompanySource, built: CompanyModels, new_engine: Callable[[TurnConfig], TurnEngine]
) -> BuiltCompany:
    """The company whose models these are."""
    engine = new_engine(turn_config(source.organization))
    revision = revision_of(source.document)
    return BuiltCompany(source, CompanyEpoch(source.organization, built.models, built.skipped, engine, revision))


def company_models(source: CompanySource, clock: Clock, on_bench: OnBench) -> CompanyModels:
    """Build the models, which dials nobody, once all else that could be wrong with the company here was looked at.

    ``on_bench`` is told of each key that a vendor turns away. Reads the files that the company names. Raises
    ``ConfigError``.
    """
    shared_server_specs(source)
    skipped = models_without_keys(source.organization, source.resolve)
    models = build_models(provider_configs(source, skipped), resolve=source.resolve, clock=clock, on_bench=on_bench)
    return CompanyModels(models, skipped)
