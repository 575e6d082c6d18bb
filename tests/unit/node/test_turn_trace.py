"""What a turn is run under."""

from __future__ import annotations

from typing import Any

import pytest

from crewlet.base.fence import Fence
from crewlet.base.ids import TurnId
from crewlet.base.trace import Trace
from crewlet.inbox import Decision, NoJournal, Trigger, TurnJournal, TurnOutcome
from crewlet.node.turn_runner import TurnRunner
from crewlet.testing import SeededIds
from crewlet.tracing import trace_of
from tests.unit.turns.turn_kit import TRIGGER_TRACE, CountingFence, trigger_from

IDS = SeededIds(4)


class Epoch:
    """A company whose engine keeps the trace that it finds itself in, and ends every turn at once."""

    def __init__(self) -> None:
        self.found: list[Trace] = []

    @property
    def engine(self) -> Epoch:
        return self

    def setup(self, handle: str, tools: object) -> object:
        return handle, tools

    async def run(self, trigger: Trigger, fence: Fence, setup: object, journal: TurnJournal) -> TurnOutcome:
        self.found.append(trace_of(IDS))
        return TurnOutcome(turn_id=TurnId("t-1"), decision=Decision.DONE, finished=True)


@pytest.mark.spec("E-182")
async def test_a_turn_runs_under_the_trace_of_the_event_that_woke_it_and_nothing_after_it_does() -> None:
    epoch, unused = Epoch(), object()
    parts: Any = (lambda: epoch, unused)
    tools: Any = unused

    await TurnRunner(*parts).run(trigger_from(), CountingFence(), NoJournal(TurnId("turn-1")), tools)

    assert epoch.found == [TRIGGER_TRACE]
    assert trace_of(IDS).trace_id != TRIGGER_TRACE.trace_id
