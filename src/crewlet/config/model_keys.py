"""Which models can be used with the keys at hand: the optional ones without a key are left out, and said so."""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from crewlet.base.errors import ConfigError, Problem
from crewlet.base.fence import Resolve
from crewlet.org import Organization, Phase, SkippedModel, skipped_models

__all__ = ["models_without_keys"]

_log = structlog.get_logger(__name__)


def models_without_keys(organization: Organization, resolve: Resolve) -> frozenset[str]:
    """The optional entries to leave out of every chain, because a variable of their keys is not set; each is logged.

    Raises ``ConfigError`` when an entry that is not optional lacks a key, or when that leaves an agent with no model at
    all in a company that has some. A company without any entry is valid: its mail waits.
    """
    skipped = skipped_models(organization.models, lambda name: _has_value(name, resolve))
    left_out = [each for each in skipped if organization.models[each.key].optional]
    optional = frozenset(each.key for each in left_out)
    problems = (
        *(_key_missing(each) for each in skipped if each.key not in optional),
        *_seats_without_a_model(organization, optional),
    )
    if problems:
        raise ConfigError(*problems)
    for each in left_out:
        _log.info("llm_entry_skipped", provider=each.key, variables=[*each.variables])
    return optional


def _has_value(name: str, resolve: Resolve) -> bool:
    """Whether there is a key behind a variable: one that is empty, or all blanks, is none."""
    try:
        return bool(resolve(f"${{{name}}}").strip())
    except ConfigError:
        return False


def _key_missing(entry: SkippedModel) -> Problem:
    names = ", ".join(entry.variables)
    return Problem(
        f"providers.llm.{entry.key}",
        f"has no key: {names} is not set",
        f"export {entry.variables[0]}=…, or set `optional: true` to do without this model",
    )


def _seats_without_a_model(organization: Organization, skipped: frozenset[str]) -> Iterator[Problem]:
    if not organization.models:
        return
    for seat in organization.agent_seats:
        silent = [phase for phase in Phase if not organization.model_chain(seat, phase, skipped=skipped)]
        if silent:
            yield Problem(
                f"the `llm` of seat {seat.handle}",
                f"no usable model for {silent[0].value}: {', '.join(sorted(skipped))} left out for want of a key",
                "set one of the keys, or name another model",
            )
