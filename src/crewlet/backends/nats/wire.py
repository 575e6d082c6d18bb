"""The narrow face of the client that everything on the broker stands on; another client can take its place (D3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from crewlet.base.errors import Unavailable

__all__ = ["Message", "NoResponders", "NotDone", "Unsubscribe", "Wire"]


class Message(msgspec.Struct, frozen=True):
    """What arrived: ``status`` is the numeric status of a control frame (404, 408, 409, 503 …), else ``""``."""

    subject: str
    payload: bytes
    headers: Mapping[str, str] = {}
    reply: str = ""
    status: str = ""
    description: str = ""


class NotDone(Unavailable):
    """Unavailable, and for once it is known that the request had no effect."""


class NoResponders(NotDone):
    """Nobody listens on the subject."""


Unsubscribe = Callable[[], Awaitable[None]]
"""Ends a subscription; harmless when repeated or when the link is down.

What the broker had sent before it heard of the end is handed over before this returns, unless the link drops.
"""


class Wire(Protocol):
    """One connection to the broker. What is pending when the link drops fails at once; nothing is buffered."""

    @property
    def connected(self) -> bool:
        """Whether a request sent now would leave this process."""
        ...

    @property
    def max_payload_bytes(self) -> int:
        """The broker's own limit, as it said on the last connect."""
        ...

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Message:
        """One request and its reply.

        Raises ``Unavailable`` when no answer came in time, when nobody listens, when the link is down or drops
        meanwhile: the request may have taken effect, unless it is ``NotDone``. Raises ``PayloadTooLarge`` before
        sending.
        """
        ...

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Hand one message to the link without waiting for anybody. Raises ``Unavailable``, ``PayloadTooLarge``."""
        ...

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        """Call ``on_message`` on the event loop for each message, across reconnects, until unsubscribed.

        The callback must not block; it hands over to a bounded queue of its own.
        """
        ...

    def new_inbox(self) -> str:
        """A subject nobody else uses, for replies."""
        ...

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` on the loop each time the link drops; returns what removes it."""
        ...

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` on the loop each time the link is back; returns what removes it."""
        ...
