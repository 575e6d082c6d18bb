"""All models that a company names, built from its ``providers.llm`` once and closed together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from crewlet.base.clock import Clock
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.fence import Resolve
from crewlet.llm.bag import Bench, OnBench
from crewlet.llm.chain import Chain
from crewlet.llm.contract import Model
from crewlet.llm.provider_config import ProviderConfig
from crewlet.llm.script import load_script
from crewlet.llm.scripted_model import ScriptedModel
from crewlet.llm.vendor_model import VendorModel

__all__ = ["Models", "build_models"]


class Models:
    """The models of a company, by entry."""

    def __init__(self, entries: dict[str, VendorModel | ScriptedModel]) -> None:
        self._entries = entries

    @property
    def keys(self) -> tuple[str, ...]:
        """The entries that can be used, in the order of the document."""
        return tuple(self._entries)

    @property
    def are_real(self) -> bool:
        """False where a scripted model is all there is."""
        return any(model.is_real for model in self._entries.values())

    def for_chain(self, keys: Sequence[str]) -> Model:
        """One model over these entries, in this order. Raises ``ConfigError``."""
        unknown = [key for key in keys if key not in self._entries]
        if unknown:
            known = f"known are {', '.join(self.keys)}"
            raise ConfigError(*(Problem(f"providers.llm.{key}", "no such entry", known) for key in unknown))
        if not keys:
            raise ConfigError(Problem("providers.llm", "no model can be used", "set a key, or name another entry"))
        # A chain of one too: its end is a ChainExhausted like that of any other, and is told as a fallback to nobody.
        return Chain([self._entries[key] for key in dict.fromkeys(keys)])

    def rests_until(self, keys: Sequence[str], now: datetime) -> datetime | None:
        """When the first key of any of these entries may be used again; ``None`` where one may be used now."""
        ends: list[datetime] = []
        for key in keys:
            entry = self._entries.get(key)
            end = entry.rests_until(now) if isinstance(entry, VendorModel) else None
            if end is None:
                return None
            ends.append(end)
        return min(ends, default=None)

    def rest(self, bench: Bench) -> bool:
        """Take a bench that somebody else met with; whether it was news to the entry that it is about."""
        entry = self._entries.get(bench.provider_key)
        return isinstance(entry, VendorModel) and entry.rest(bench)

    def take_over(self, before: Models) -> None:
        """Know of the keys of each entry what ``before`` knows of them: an entry's keys are the same by its name."""
        for key, entry in self._entries.items():
            known = before._entries.get(key)
            if isinstance(entry, VendorModel) and isinstance(known, VendorModel):
                entry.take_over(known)

    async def aclose(self) -> None:
        """Close every connection."""
        for model in self._entries.values():
            await model.aclose()


def build_models(
    configs: Sequence[ProviderConfig], *, resolve: Resolve, clock: Clock, on_bench: OnBench | None = None
) -> Models:
    """The models of these entries. Raises one ``ConfigError`` for all that is missing. Loads no SDK, dials nobody.

    ``on_bench`` is told of each key that is benched, before the call goes on with another.
    """
    entries: dict[str, VendorModel | ScriptedModel] = {}
    problems: list[Problem] = []
    for config in configs:
        secrets, empty = _secrets_of(config, resolve)
        found = [*_without_address(config), *(_without_key(config, reference) for reference in empty)]
        if found:
            problems += found
        elif config.script is not None:
            entries[config.key] = ScriptedModel(config.key, load_script(config.script))
        else:
            entries[config.key] = VendorModel(config, secrets=secrets, clock=clock, on_bench=on_bench)
    if problems:
        raise ConfigError(*problems)
    return Models(entries)


def _without_address(config: ProviderConfig) -> list[Problem]:
    """An address was written, and the variable that it comes from may hold none."""
    if config.type != "openai-compatible" or config.base_url:
        return []
    return [Problem(f"providers.llm.{config.key}.base_url", "is empty", "set the variable that it comes from")]


def _secrets_of(config: ProviderConfig, resolve: Resolve) -> tuple[list[str], list[str]]:
    """The keys of an entry, and the references behind which there is none. A single empty key: none is asked for."""
    resolved = {reference: _secret(reference, resolve) for reference in config.api_keys}
    empty = [reference for reference, secret in resolved.items() if not secret]
    return list(resolved.values()) or [""], empty


def _secret(reference: str, resolve: Resolve) -> str:
    """The key behind a reference, empty where its variable is unset: the error of ``resolve`` names no field."""
    try:
        return resolve(reference).strip()
    except ConfigError:
        return ""


def _without_key(config: ProviderConfig, reference: str) -> Problem:
    is_reference = reference.startswith("${")
    problem = f"there is no key behind {reference}" if is_reference else "holds an empty key"
    return Problem(f"providers.llm.{config.key}.api_keys", problem)
