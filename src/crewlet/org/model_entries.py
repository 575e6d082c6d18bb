"""The models of a company, what a seat picks from them, and the chain that one phase of its turn tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from crewlet.org.document_providers import ModelType, ReasoningEffort
from crewlet.org.variable_references import variable_names

__all__ = ["ModelEntry", "ModelPick", "Phase", "SkippedModel", "model_chain", "skipped_models"]

_VENDOR_KEYS: Final[Mapping[str, str]] = {"anthropic": "${ANTHROPIC_API_KEY}", "openai": "${OPENAI_API_KEY}"}
_DEFAULT_ENTRY: Final = "default"


class Phase(StrEnum):
    """What a model call is for. Onboarding and execution use the seat's default chain."""

    EXECUTE = "execute"
    ONBOARDING = "onboarding"
    REVIEW = "review"
    SUBAGENT = "subagent"
    AUXILIARY = "auxiliary"
    JUDGE = "judge"
    SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One entry of ``providers.llm``. ``api_keys`` are ``${VAR}`` references, the vendor's usual one filled in."""

    key: str
    type: ModelType
    model: str
    api_keys: tuple[str, ...] = field(repr=False)
    optional: bool
    base_url: str
    timeout_s: float
    rate_limit_cooldown_s: int
    auth_cooldown_s: int
    reasoning: bool
    reasoning_effort: ReasoningEffort
    reasoning_budget_tokens: int
    script: str

    @property
    def is_real(self) -> bool:
        """False for the scripted model."""
        return self.type != "scripted"

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The variables that its keys come from."""
        return tuple(name for text in self.api_keys for name in variable_names(text))


@dataclass(frozen=True, slots=True)
class ModelPick:
    """What a seat names: chains by phase, the flat overrides already laid over the mapping."""

    default: tuple[str, ...] = ()
    by_phase: Mapping[Phase, tuple[str, ...]] = field(default_factory=dict[Phase, tuple[str, ...]])

    @property
    def names_any(self) -> bool:
        """Whether the seat names a model at all."""
        return bool(self.default or self.by_phase)

    def for_phase(self, phase: Phase) -> tuple[tuple[str, ...], ...]:
        """The chains that speak for ``phase``, the most particular first."""
        return tuple(chain for chain in (self.by_phase.get(phase, ()), self.default) if chain)


@dataclass(frozen=True, slots=True)
class SkippedModel:
    """An entry that is left out because these variables of its keys are not set."""

    key: str
    variables: tuple[str, ...]


def vendor_keys(kind: ModelType, written: tuple[str, ...]) -> tuple[str, ...]:
    """The keys as written, or the vendor's usual variable where none is written."""
    return written or ((_VENDOR_KEYS[kind],) if kind in _VENDOR_KEYS else ())


def skipped_models(entries: Mapping[str, ModelEntry], is_set: Callable[[str], bool]) -> tuple[SkippedModel, ...]:
    """The entries one of whose key variables is unset. What is not ``optional`` among them is a fault of the start."""
    missing = {key: tuple(name for name in entry.key_variables if not is_set(name)) for key, entry in entries.items()}
    return tuple(SkippedModel(key, names) for key, names in missing.items() if names)


def model_chain(
    entries: Mapping[str, ModelEntry], pick: ModelPick, phase: Phase, *, skipped: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The keys that ``phase`` tries, in order; empty when no entry can serve it.

    The first of these that holds a usable entry: the seat's chain for the phase, its default chain, the entry named
    ``default``, the first entry. A seat that names models is never served by one that it did not name. A scripted
    entry is left out of a chain that holds a real one: it must never answer in place of a real model that failed.
    """
    named = pick.for_phase(phase)
    fallbacks = () if pick.names_any else ((_DEFAULT_ENTRY,), *((key,) for key in entries))
    for chain in (*named, *fallbacks):
        usable = tuple(key for key in chain if key in entries and key not in skipped)
        if usable:
            return tuple(key for key in usable if entries[key].is_real) or usable
    return ()
