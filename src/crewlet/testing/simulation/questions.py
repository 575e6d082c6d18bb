"""Questions in a run: who serves them and how, who asks, and who must have answered when the time is up."""

from __future__ import annotations

import asyncio
from typing import Final

from crewlet import topics
from crewlet.queue import Responder, StreamSubscription
from crewlet.testing.simulation.company import Client
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["Questions"]

_SUBJECT: Final = topics.question("simulated")
_TIMEOUT_S: Final = 0.5
_ROUNDING_S: Final = 1e-3
_ANSWERS, _FAILS, _SILENT = range(3)


class ResponderFault(RuntimeError):
    """What a responder raises that fails."""


class Questions:
    """Each client serves in one way at a time, or not at all."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._serving: dict[Client, tuple[int, StreamSubscription]] = {}

    def ends(self, client: Client) -> None:
        """Its process is gone."""
        self._serving.pop(client, None)

    async def serve(self, client: Client, number: int) -> None:
        """Begin to answer, to fail or to be silent, where it does none of them; or stop. Raises ``Unavailable``."""
        how = number % 4
        if how > _SILENT:
            if serving := self._serving.pop(client, None):
                await serving[1].close()
        elif client not in self._serving:
            self._serving[client] = how, await client.queue.serve(_SUBJECT, _responder(client.node, how))

    async def ask(self, client: Client, _: int) -> None:
        """Ask, and compare who answered what. Raises ``Unavailable``."""
        hears = {each.node: how for each, (how, _) in self._serving.items() if each.is_heard}
        wanted = {node: how for node, how in hears.items() if how != _SILENT}
        begun_s = self._ledger.now_s()
        answers = await client.queue.scatter(_SUBJECT, b"who is there?", timeout_s=_TIMEOUT_S)
        if self._ledger.now_s() - begun_s > _TIMEOUT_S + _ROUNDING_S:
            self._found(f"a question took {self._ledger.now_s() - begun_s:.3f} s, {_TIMEOUT_S} at most")
        told = {answer.node: _FAILS if answer.error else _ANSWERS for answer in answers}
        if told != wanted or len(answers) != len(wanted):
            self._found(f"{told} answered {client.node}, not {wanted}")

    def _found(self, what: str) -> None:
        self._ledger.found("answered", what)


def _responder(node: str, how: int) -> Responder:
    async def answers(_: bytes) -> bytes:
        if how == _FAILS:
            raise ResponderFault(node)
        if how == _SILENT:
            await asyncio.Event().wait()
        return node.encode()

    return answers
