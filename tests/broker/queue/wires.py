"""A link that a test puts itself in the way of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from crewlet.backends.nats.wire import Message, Unsubscribe, Wire

__all__ = ["DelayedInfo", "Forgetful", "PassedOn"]


class PassedOn(Wire):
    """Hands everything on to the link behind it."""

    def __init__(self, inner: Wire) -> None:
        self._inner = inner

    @property
    def connected(self) -> bool:
        return self._inner.connected

    @property
    def max_payload_bytes(self) -> int:
        return self._inner.max_payload_bytes

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        return await self._inner.request(subject, payload, headers=headers, timeout_s=timeout_s)

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        await self._inner.publish(subject, payload, reply=reply, headers=headers)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        return await self._inner.subscribe(subject, on_message)

    def new_inbox(self) -> str:
        return self._inner.new_inbox()

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._inner.on_disconnected(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._inner.on_reconnected(call)


class Forgetful(PassedOn):
    """Loses one mailbox's next requests for mail, as they are lost when a leader changes."""

    def __init__(self, inner: Wire, losses: int) -> None:
        super().__init__(inner)
        self._losses = losses

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if "CONSUMER.MSG.NEXT.CREWLET_AGENT" in subject and self._losses:
            self._losses -= 1
            return
        await super().publish(subject, payload, reply=reply, headers=headers)


class DelayedInfo(PassedOn):
    """Lets no question about a mailbox through before the gate is open."""

    def __init__(self, inner: Wire) -> None:
        super().__init__(inner)
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.answered = asyncio.Event()

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        if "CONSUMER.INFO.CREWLET_AGENT" not in subject:
            return await super().request(subject, payload, headers=headers, timeout_s=timeout_s)
        self.asked.set()
        await self.gate.wait()
        answer = await super().request(subject, payload, headers=headers, timeout_s=timeout_s)
        self.answered.set()
        return answer
