"""Models: each entry is complete for its type, its keys are references, and what seats name exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from crewlet.base.errors import Problem
from crewlet.org.credentials import credential_in_url, reference_needed
from crewlet.org.document import CompanyDocument
from crewlet.org.document_providers import ModelEntryDocument
from crewlet.org.document_role import RoleDocument
from crewlet.org.variable_references import is_whole_reference
from crewlet.org.walk import Chart

__all__ = ["model_problems"]


def model_problems(document: CompanyDocument, chart: Chart) -> Iterator[Problem]:
    """Incomplete entries, literal keys, and names of models that are not configured."""
    for key, entry in document.providers.llm.items():
        yield from _entry(f"providers.llm.{key}", entry)
    for role in chart.roles:
        yield from _named(role.path, role.written, list(document.providers.llm))


def _entry(path: str, entry: ModelEntryDocument) -> Iterator[Problem]:
    yield from _completeness(path, entry)
    for index, key in enumerate(entry.api_keys):
        if not is_whole_reference(key):
            yield reference_needed(f"{path}.api_keys[{index}]", "must be exactly one ${VAR}")
    if credential_in_url(entry.base_url):
        yield reference_needed(f"{path}.base_url", "carries a literal credential")


def _completeness(path: str, entry: ModelEntryDocument) -> Iterator[Problem]:
    is_scripted = entry.type == "scripted"
    if is_scripted and not entry.script:
        yield Problem(f"{path}.script", "is required for type scripted", "name the file that holds its replies")
    if not is_scripted and entry.script:
        yield Problem(f"{path}.script", "is for type scripted only", "remove it")
    if is_scripted and (entry.api_keys or entry.base_url):
        yield Problem(path, "a scripted model calls nobody: it takes no api_keys and no base_url", "remove them")
    if not is_scripted and not entry.model.strip():
        yield Problem(f"{path}.model", "is required", "the vendor's name of the model")
    if entry.type == "openai-compatible" and not entry.base_url:
        yield Problem(
            f"{path}.base_url", "is required for type openai-compatible", "for example http://127.0.0.1:11434/v1"
        )
    if entry.base_url and not entry.base_url.startswith(("http://", "https://", "${")):
        yield Problem(f"{path}.base_url", "must be an http or https address", "or one ${VAR}")


def _named(path: str, written: RoleDocument, known: list[str]) -> Iterator[Problem]:
    pick = written.llm
    chains = {
        "llm": pick.default,
        "llm.judge": pick.judge,
        "llm.review": pick.review,
        "llm.subagent": pick.subagent,
        "llm_judge": written.llm_judge,
        "llm_review": written.llm_review,
        "llm_subagent": written.llm_subagent,
    }
    for field, chain in chains.items():
        for key in chain:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                remedy = f"did you mean {close[0]!r}?" if close else f"configured: {', '.join(known) or 'none'}"
                yield Problem(f"{path}.{field}", f"no model {key!r} in providers.llm", remedy)
