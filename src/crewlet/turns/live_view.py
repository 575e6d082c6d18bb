"""The live frames of one phase: where it stands, the call that runs, the text as it streams in."""

from __future__ import annotations

import asyncio

import msgspec

from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.base.trace import Trace
from crewlet.events.types import AgentTurnProgress, ToolExecution
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.turn_events import TurnEvents

__all__ = ["LiveText", "LiveView"]


class LiveView:
    """Publishes one phase's ``agent_turn_progress`` frames. They are live only, so results are cut in them."""

    def __init__(self, events: TurnEvents, trace: Trace, plan: PhasePlan, *, model: str) -> None:
        self._events = events
        self._trace = trace
        self._plan = plan
        self.model = model

    async def opened(self) -> None:
        """The frame before the first round; its round is -1."""
        await self._frame(-1, "opened")

    async def said(self, round_num: int, text: str, *, state: str = "answered") -> None:
        """The text of a round as far as it is known."""
        await self._frame(round_num, state, text=text)

    async def calling(self, call: ToolExecution, text: str) -> None:
        """A call is about to be made."""
        await self._frame(call.round, "calling", text=text, running=call)

    async def called(self, call: ToolExecution) -> None:
        """A call came back."""
        if len(call.result) > limits.LIVE_RESULT_MAX_CHARS:
            cut = f"{call.result[: limits.LIVE_RESULT_MAX_CHARS]}…"
            call = msgspec.structs.replace(call, result=cut, error=cut if call.error else "")
        await self._frame(call.round, "called", finished=call)

    def streaming(self, round_num: int) -> LiveText:
        """The text of one reply while it streams in."""
        return LiveText(self, round_num, every_s=self._events.config.live_text_every_s)

    async def _frame(
        self,
        round_num: int,
        state: str,
        *,
        text: str = "",
        running: ToolExecution | None = None,
        finished: ToolExecution | None = None,
    ) -> None:
        frame = AgentTurnProgress(
            **self._events.of_turn,
            phase=self._plan.phase,
            iteration=self._plan.iteration,
            host_phase=self._plan.host.phase if self._plan.host else "",
            task_id=self._plan.task_id,
            round_num=round_num,
            state=state,
            partial_text=text,
            running_call=running,
            finished_call=finished,
            model=self.model,
        )
        await self._events.show(frame, self._trace)


class LiveText:
    """Collects one reply's text and publishes all of it so far, at most once in ``every_s``.

    The longer the text, the longer the pause: every frame holds all of it and is kept as long as any event, so a long
    reply in frames of one pace would fill the disk with copies of its own beginning.

    It begins ``limits.LIVE_TEXT_FIRST_S`` after the first piece: of a reply that is whole by then there is no part to
    show, and it costs no task.
    """

    def __init__(self, view: LiveView, round_num: int, *, every_s: float) -> None:
        self._view = view
        self._round = round_num
        self._every_s = every_s
        self._pieces: list[str] = []
        self._more = asyncio.Event()
        self._tasks = Tasks("turn")
        self._begins: asyncio.TimerHandle | None = None

    def add(self, piece: str) -> None:
        """Take the next piece; never blocks."""
        self._pieces.append(piece)
        self._more.set()
        if self._begins is None:
            self._begins = asyncio.get_running_loop().call_later(limits.LIVE_TEXT_FIRST_S, self._begin)

    async def close(self) -> None:
        """End the stream. A frame still on its way is dropped: the whole reply follows it."""
        if self._begins is not None:
            self._begins.cancel()
        if len(self._tasks):
            await self._tasks.close()

    def _begin(self) -> None:
        self._tasks.start("live_text", self._pump())

    async def _pump(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            text = "".join(self._pieces)
            await self._view.said(self._round, text, state="streaming")
            await asyncio.sleep(max(self._every_s, len(text) / limits.LIVE_TEXT_CHARS_PER_S))
