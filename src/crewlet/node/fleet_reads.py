"""What the whole fleet knows of one message: each node's log holds what happened on it, so its peers are asked (S2).

Answers are told apart by the node that gave them. Who is silent within ``limits.FLEET_READ_WAIT_S`` is named in the
answer's coverage, and what it knows is missing until it is asked again: unknown is never no.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import Event, MalformedEvent, decode, encode
from crewlet.node.coverage import WHOLE, Coverage, PeersSilent, coverage_of
from crewlet.node.message_events import chain_events
from crewlet.queue import Answer, EventQueue
from crewlet.store import EventLog

__all__ = ["FleetChain", "FleetReads"]

_log = structlog.get_logger(__name__)

_EVENT: Final = "event"
_CHAIN: Final = "chain"


@dataclass(frozen=True, slots=True)
class FleetChain:
    """The events of a chain by time, each once, and whose logs they come from."""

    events: Sequence[Event]
    coverage: Coverage


class FleetReads:
    """Reads of this node's log and its peers'. ``alive`` names the live nodes, as far as this node ``me`` knows."""

    def __init__(self, queue: EventQueue, log: EventLog, me: str, alive: Callable[[], Collection[str]]) -> None:
        self._queue = queue
        self._log = log
        self._me = me
        self._alive = alive

    async def serve(self, stack: AsyncExitStack) -> None:
        """Answer the peers' questions until ``stack`` ends."""
        for subject, answer in ((_EVENT, self._own_event), (_CHAIN, self._own_chain)):
            served = await self._queue.serve(subject, _answering(answer))
            stack.push_async_callback(served.close)

    async def event(self, event_id: str) -> Event | None:
        """The event with this id, here or at a peer; ``None`` where no live node has it.

        Raises ``Unavailable`` where none of those that answered has it, and one of them did not, or cannot, say.
        """
        own = await self._own_event(event_id)
        if own:
            return own[0]
        theirs, coverage = await self._asked(_EVENT, event_id)
        if theirs:
            return theirs[0]
        if trouble := self._log.trouble:
            raise Unavailable(trouble)
        if missing := coverage.missing():
            raise PeersSilent(event_id, missing)
        return None

    async def chain(self, trace_id: str) -> FleetChain:
        """Every event of a chain that tells how its message stands. Raises ``Unavailable``."""
        own, (theirs, coverage) = await asyncio.gather(self._own_chain(trace_id), self._asked(_CHAIN, trace_id))
        if not theirs:
            return FleetChain(own, coverage)
        events = {event.id: event for event in [*theirs, *own]}
        return FleetChain(sorted(events.values(), key=lambda event: event.timestamp), coverage)

    async def _own_event(self, event_id: str) -> list[Event]:
        stored = await self._log.event(event_id)
        return [] if stored is None else [stored.event]

    async def _own_chain(self, trace_id: str) -> list[Event]:
        return await chain_events(self._log, trace_id)

    async def _asked(self, subject: str, wanted: str) -> tuple[list[Event], Coverage]:
        alive = {*self._alive()} | {self._me}
        if len(alive) == 1:
            return [], WHOLE
        # This node serves the question too, and its own answer comes with the others'.
        answers = await self._queue.scatter(
            subject, wanted.encode(), timeout_s=limits.FLEET_READ_WAIT_S, expected=len(alive)
        )
        events: list[Event] = []
        unreadable: dict[str, str] = {}
        for answer in answers:
            try:
                events += _events(answer)
            except (msgspec.MsgspecError, MalformedEvent) as error:
                unreadable[answer.node] = f"unreadable: {error}"
        coverage = coverage_of(alive, answers, unreadable)
        if not coverage.complete:
            _log.warning("fleet_read_incomplete", question=subject, missing=coverage.missing())
        return events, coverage


def _answering(read: Callable[[str], Awaitable[list[Event]]]) -> Callable[[bytes], Awaitable[bytes]]:
    async def answer(wanted: bytes) -> bytes:
        events: list[msgspec.Raw] = []
        room = limits.FLEET_ANSWER_MAX_BYTES
        for event in await read(wanted.decode("utf-8", "replace")):
            raw = encode(event)
            room -= len(raw)
            if room < 0:
                _log.warning("fleet_answer_cut", events=len(events))
                break
            events.append(msgspec.Raw(raw))
        return msgspec.json.encode(events)

    return answer


def _events(answer: Answer) -> list[Event]:
    """What one node answered. Raises ``MsgspecError``, ``MalformedEvent``."""
    if answer.error:
        return []
    return [decode(bytes(raw)) for raw in msgspec.json.decode(answer.payload, type=list[msgspec.Raw])]
