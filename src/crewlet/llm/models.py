"""All models that a company names, built from its ``providers.llm`` once and closed together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import structlog

from crewlet.base.clock import Clock
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.fence import Resolve
from crewlet.llm.bag import OnBench
from crewlet.llm.chain import Chain
from crewlet.llm.contract import Model
from crewlet.llm.provider_config import DEFAULT_KEY_VARIABLES, ProviderConfig
from crewlet.llm.script import load_script
from crewlet.llm.scripted_model import ScriptedModel
from crewlet.llm.vendor_model import VendorModel

__all__ = ["Models", "build_models"]

_log = structlog.get_logger(__name__)

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


class Models:
    """The models of a company, by entry. ``skipped`` are the optional entries whose key variable is unset here."""

    def __init__(self, entries: dict[str, VendorModel | ScriptedModel], skipped: frozenset[str]) -> None:
        self._entries = entries
        self.skipped = skipped

    @property
    def keys(self) -> tuple[str, ...]:
        """The entries that can be used, in the order of the document."""
        return tuple(self._entries)

    @property
    def are_real(self) -> bool:
        """False where a scripted model is all there is."""
        return any(model.is_real for model in self._entries.values())

    def for_chain(self, keys: Sequence[str]) -> Model:
        """One model over these entries, in this order. Raises ``ConfigError``.

        Skipped entries are left out. A scripted one stands in where no real one can be used, and never for a real one
        that failed: its words would pass for an answer.
        """
        unknown = [key for key in keys if key not in self._entries and key not in self.skipped]
        if unknown:
            known = f"known are {', '.join(self.keys)}"
            raise ConfigError(*(Problem(f"providers.llm.{key}", "no such entry", known) for key in unknown))
        members = [self._entries[key] for key in dict.fromkeys(keys) if key in self._entries]
        if not members:
            named = ", ".join(keys) or "none"
            problem = f"no model can be used for the chain ({named})"
            raise ConfigError(Problem("providers.llm", problem, "set a key, or name another entry"))
        members = [model for model in members if model.is_real] or members
        # A chain of one too: its end is a ChainExhausted like that of any other, and is told as a fallback to nobody.
        return Chain(members)

    async def aclose(self) -> None:
        """Close every connection."""
        for model in self._entries.values():
            await model.aclose()


def build_models(
    configs: Sequence[ProviderConfig], *, resolve: Resolve, clock: Clock, on_bench: OnBench | None = None
) -> Models:
    """The models of these entries. Raises one ``ConfigError`` for all that is missing. Loads no SDK, dials nobody.

    An optional entry whose key variable is unset is left out (``llm_entry_skipped``). ``on_bench`` is told of each
    key that is benched, before the call goes on with another.
    """
    entries: dict[str, VendorModel | ScriptedModel] = {}
    skipped: set[str] = set()
    problems: list[Problem] = []
    for config in configs:
        secrets, unset = _secrets_of(config, resolve)
        found = _shape_problems(config)
        if unset and config.optional:
            skipped.add(config.key)
            _log.info("llm_entry_skipped", provider=config.key, variables=[_variable_in(each) for each in unset])
        elif found or unset:
            problems += [*found, *(_unset(config, reference) for reference in unset)]
        elif config.script is not None:
            entries[config.key] = ScriptedModel(config.key, load_script(config.script))
        else:
            entries[config.key] = VendorModel(config, secrets=secrets, clock=clock, on_bench=on_bench)
    if problems:
        raise ConfigError(*problems)
    return Models(entries, frozenset(skipped))


def _shape_problems(config: ProviderConfig) -> list[Problem]:
    where = f"providers.llm.{config.key}"
    if config.type == "scripted":
        return [] if config.script is not None else [Problem(f"{where}.script", "is required for a scripted model")]
    found: list[Problem] = []
    if not config.model:
        found.append(Problem(f"{where}.model", "is required"))
    if config.type == "openai-compatible" and not config.base_url:
        found.append(Problem(f"{where}.base_url", "is required for an openai-compatible model"))
    return found


def _secrets_of(config: ProviderConfig, resolve: Resolve) -> tuple[list[str], list[str]]:
    """The keys of an entry, and the references behind which there is none. A single empty key: none is asked for."""
    default = DEFAULT_KEY_VARIABLES.get(config.type)
    references = config.api_keys or (() if default is None else (f"${{{default}}}",))
    resolved = {reference: _secret(reference, resolve) for reference in references}
    unset = [reference for reference, secret in resolved.items() if not secret]
    return list(resolved.values()) or [""], unset


def _secret(reference: str, resolve: Resolve) -> str:
    """The key behind a reference, empty where its variable is unset: the error of ``resolve`` names no field."""
    try:
        return resolve(reference).strip()
    except ConfigError:
        return ""


def _variable_in(reference: str) -> str:
    found = _VARIABLE.search(reference)
    return found[1] if found else ""


def _unset(config: ProviderConfig, reference: str) -> Problem:
    variable = _variable_in(reference)
    return Problem(
        f"providers.llm.{config.key}.api_keys",
        f"${{{variable}}} is not set" if variable else "holds an empty key",
        f"export {variable}, or write `optional: true` to do without this model" if variable else "",
    )
