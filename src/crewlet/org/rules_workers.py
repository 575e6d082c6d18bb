"""Workers: their models exist, their rounds and their results are bounded, and seats name ones that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from crewlet.base.errors import Problem
from crewlet.org.document import CompanyDocument
from crewlet.org.output_schema import output_problems
from crewlet.org.walk import Chart

__all__ = ["worker_problems"]


def worker_problems(document: CompanyDocument, chart: Chart) -> Iterator[Problem]:
    """What is wrong with the templates, then with the names of them that seats give."""
    ceiling = document.turn_engine.delegation.max_turns_ceiling
    if document.turn_engine.delegation.max_turns > ceiling:
        yield _too_many("turn_engine.delegation.max_turns", ceiling)
    for name, worker in document.workers.items():
        path = f"workers.{name}"
        if worker.model and worker.model not in document.providers.llm:
            yield _unknown(f"{path}.model", "model", worker.model, document.providers.llm)
        if worker.max_turns is not None and worker.max_turns > ceiling:
            yield _too_many(f"{path}.max_turns", ceiling)
        if worker.output:
            yield from (Problem(f"{path}.output", said) for said in output_problems(worker.output))
    for role in chart.roles:
        for index, name in enumerate(role.written.workers):
            if name not in document.workers:
                yield _unknown(f"{role.path}.workers[{index}]", "worker", name, document.workers)


def _too_many(path: str, ceiling: int) -> Problem:
    return Problem(path, f"is above max_turns_ceiling, which is {ceiling}", "lower it, or raise the ceiling")


def _unknown(path: str, what: str, name: str, known: Iterable[str]) -> Problem:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return Problem(
        path, f"no {what} {name!r}", f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}"
    )
