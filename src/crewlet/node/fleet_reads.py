"""What the whole fleet knows of one message: each node's log holds what happened on it, so its peers are asked (S2).

Answers are told apart by the node that gave them; who is silent within ``limits.FLEET_READ_WAIT_S`` is logged, and
what it knows is missing until it is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Final

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import Event, MalformedEvent, decode, encode
from crewlet.node.message_events import chain_events
from crewlet.queue import Answer, EventQueue
from crewlet.store import EventLog

__all__ = ["FleetReads"]

_log = structlog.get_logger(__name__)

_EVENT: Final = "event"
_CHAIN: Final = "chain"


class FleetReads:
    """Reads of this node's log and its peers'. ``peers`` is how many others are alive, as far as this node knows."""

    def __init__(self, queue: EventQueue, log: EventLog, peers: Callable[[], int]) -> None:
        self._queue = queue
        self._log = log
        self._peers = peers

    async def serve(self, stack: AsyncExitStack) -> None:
        """Answer the peers' questions until ``stack`` ends."""
        for subject, answer in ((_EVENT, self._own_event), (_CHAIN, self._own_chain)):
            served = await self._queue.serve(subject, _answering(answer))
            stack.push_async_callback(served.close)

    async def event(self, event_id: str) -> Event | None:
        """The event with this id, here or at a peer. Raises ``Unavailable`` where this node's own log cannot say."""
        own = await self._own_event(event_id)
        if own:
            return own[0]
        theirs = await self._asked(_EVENT, event_id)
        if not theirs and (trouble := self._log.trouble):
            raise Unavailable(trouble)
        return theirs[0] if theirs else None

    async def chain(self, trace_id: str) -> list[Event]:
        """Every event of a chain that tells how its message stands, by time, each once. Raises ``Unavailable``."""
        own, theirs = await asyncio.gather(self._own_chain(trace_id), self._asked(_CHAIN, trace_id))
        if not theirs:
            return own
        events = {event.id: event for event in [*theirs, *own]}
        return sorted(events.values(), key=lambda event: event.timestamp)

    async def _own_event(self, event_id: str) -> list[Event]:
        stored = await self._log.event(event_id)
        return [] if stored is None else [stored.event]

    async def _own_chain(self, trace_id: str) -> list[Event]:
        return await chain_events(self._log, trace_id)

    async def _asked(self, subject: str, wanted: str) -> list[Event]:
        peers = self._peers()
        if peers <= 0:
            return []
        # This node serves the question too, and its own answer comes with the others'.
        expected = peers + 1
        answers = await self._queue.scatter(
            subject, wanted.encode(), timeout_s=limits.FLEET_READ_WAIT_S, expected=expected
        )
        if len(answers) < expected:
            _log.warning("fleet_read_incomplete", question=subject, answered=[each.node for each in answers])
        return [event for answer in answers for event in _events(answer)]


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


def _events(answer: Answer) -> Iterable[Event]:
    """What one node answered; what cannot be read of it counts as not said."""
    if answer.error:
        _log.warning("fleet_read_failed", node=answer.node, error=answer.error)
        return []
    try:
        return [decode(bytes(raw)) for raw in msgspec.json.decode(answer.payload, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, MalformedEvent) as error:
        _log.warning("fleet_read_failed", node=answer.node, error=str(error))
        return []
