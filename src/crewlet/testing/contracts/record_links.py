"""A client's link to a real broker that a case can cut, and whose next write it can lose or keep back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

from crewlet.backends.nats import Connection, JetStream, Wire
from crewlet.backends.nats.wire import Message, Unsubscribe
from crewlet.base.errors import Unavailable
from crewlet.testing.links import LinkProxy
from crewlet.testing.waiting import wait_until

__all__ = ["BUCKETS_ROOT", "RecordLink"]

BUCKETS_ROOT: Final = "$KV."
"""Below which every write of a record is published."""


class RecordLink(Wire):
    """A connection through a proxy. What is spoiled is a write below ``root``, and each time the next one."""

    def __init__(self, proxy: LinkProxy, connection: Connection, *, root: str) -> None:
        self._root = root
        self._proxy = proxy
        self._connection = connection
        self._next_write: Literal["arrives", "lost reply", "cut after", "withheld"] = "arrives"
        self._withheld: list[Callable[[], Awaitable[Message]]] = []

    async def cut(self) -> None:
        """Nothing passes until :meth:`mend`."""
        self._proxy.refuse = True
        self._proxy.drop()
        await wait_until(lambda: not self._connection.connected, what="a client that knows that it is cut off")

    async def mend(self) -> None:
        """Return once the link stands again."""
        self._proxy.refuse = False
        await wait_until(lambda: self._connection.connected, what="a link that is whole again")

    def lose_reply(self) -> None:
        """The next write lands and its answer is lost."""
        self._next_write = "lost reply"

    def cut_after_write(self) -> None:
        """The next write lands and the link is cut before its answer comes back."""
        self._next_write = "cut after"

    def withhold(self) -> None:
        """The next write does not arrive before :meth:`deliver`."""
        self._next_write = "withheld"

    async def deliver(self) -> None:
        """What was withheld arrives."""
        late, self._withheld = self._withheld, []
        for write in late:
            await write()

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        """One request, spoiled if it is the write that was to be."""

        async def arrive() -> Message:
            return await self._connection.request(subject, payload, headers=headers, timeout_s=timeout_s)

        if not subject.startswith(self._root):
            return await arrive()
        fate, self._next_write = self._next_write, "arrives"
        if fate == "arrives":
            return await arrive()
        if fate == "withheld":
            self._withheld.append(arrive)
        else:
            await arrive()
        if fate == "cut after":
            await self.cut()
        raise Unavailable(f"{subject}: no answer in time")

    @property
    def connected(self) -> bool:
        """As the connection says."""
        return self._connection.connected

    @property
    def max_payload_bytes(self) -> int:
        """As the broker said."""
        return self._connection.max_payload_bytes

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """As the connection does."""
        await self._connection.publish(subject, payload, reply=reply, headers=headers)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        """As the connection does."""
        return await self._connection.subscribe(subject, on_message)

    def new_inbox(self) -> str:
        """As the connection does."""
        return self._connection.new_inbox()

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """As the connection does."""
        return self._connection.on_disconnected(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """As the connection does."""
        return self._connection.on_reconnected(call)

    def jetstream(self) -> JetStream:
        """The broker, at the end of this link."""
        return JetStream(self)
