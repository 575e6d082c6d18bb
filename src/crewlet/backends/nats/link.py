"""One link: a single life of the client library's connection, from a successful dial to its loss.

A lost link is never repaired; the connection dials a new one. So nothing that was queued in the library before a
drop can be written after it, and no half-dead state of the library outlives the link it belongs to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import structlog
from nats import errors as nats_errors
from nats.aio.client import RawCredentials

from crewlet.backends.nats.frames import END, publish_head, subscribe_frame, unsubscribe_frame
from crewlet.backends.nats.link_client import LinkClient
from crewlet.backends.nats.login import Login, LoginRefused, read_credentials
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import CrewletError, PayloadTooLarge, Unavailable

__all__ = ["Interest", "Link", "Progress", "moved", "translated"]

_log = structlog.get_logger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Progress:
    """Messages received, bytes that the operating system took, and bytes that wait for it to take them."""

    received: int
    taken_bytes: int
    unsent_bytes: int


def moved(before: Progress, after: Progress) -> bool:
    """Whether the other side has shown life in between.

    What the operating system takes from an idle link shows nothing, since it has room; from one with a backlog it
    takes more only as the other side reads.
    """
    drained = before.unsent_bytes > 0 and after.taken_bytes > before.taken_bytes
    return drained or after.received != before.received


class Link:
    """One connected client. ``on_lost`` is called once, on the loop, when the link is gone for whatever reason."""

    def __init__(self, on_lost: Callable[[Link], None]) -> None:
        self._client = LinkClient()
        self._subscribed = 0
        self._on_lost = on_lost
        self._lost = False
        self._last_error: Exception | None = None

    async def dial(self, urls: Sequence[str], login: Login, *, name: str) -> None:
        """Connect to the first of ``urls`` that answers. Raises ``Unavailable``, or ``StartRefused``."""
        credentials = await asyncio.to_thread(read_credentials, login.credentials) if login.credentials else ""
        try:
            async with asyncio.timeout(limits.WIRE_CONNECT_TIMEOUT_S):
                await _cancellable(
                    self._client.connect(
                        list(urls),
                        name=name,
                        allow_reconnect=False,
                        dont_randomize=True,
                        # Zero means without end here; one lets each server of the list be tried twice.
                        max_reconnect_attempts=1,
                        reconnect_time_wait=cast("int", limits.WIRE_REDIAL_BACKOFF_FIRST_S),
                        connect_timeout=cast("int", limits.WIRE_CONNECT_TIMEOUT_S),
                        # The connection pings for itself, end to end; the library's own ping is a backstop.
                        ping_interval=int(4 * limits.WIRE_PING_TIMEOUT_S),
                        pending_size=0,
                        error_cb=self._failed,
                        disconnected_cb=self._disconnected,
                        nkeys_seed_str=login.seed or None,
                        user_credentials=RawCredentials(credentials) if credentials else None,
                        token=login.token or None,
                        tls=login.tls.context() if login.tls else None,
                    )
                )
        except (nats_errors.Error, OSError) as error:
            self._client.abort()
            raise _refused(self._last_error or error, urls) from error
        except BaseException:
            self._client.abort()
            raise

    @property
    def connected(self) -> bool:
        """Whether what is sent now would leave this process."""
        return not self._lost and self._client.is_connected

    @property
    def max_payload_bytes(self) -> int:
        """The limit that the server stated when it was dialled."""
        return self._client.max_payload

    @property
    def discovered(self) -> list[str]:
        """Further members of the cluster, as the server named them."""
        return [url.geturl() for url in self._client.discovered_servers]

    @property
    def backlog_bytes(self) -> int:
        """What was accepted here and not yet taken by the operating system, or a little more."""
        return self._client.backlog_bytes

    def progress(self) -> Progress:
        """How far traffic has come, to be compared with a later look: see :func:`moved`."""
        return Progress(self._client.received, self._client.taken_bytes, self._client.unsent_bytes)

    def publish(self, subject: str, payload: bytes, reply: str, headers: Mapping[str, str] | None) -> None:
        """Hand one message to the socket.

        Raises ``PayloadTooLarge``, ``ValueError``, and the library's errors: see :func:`translated`.
        """
        head, size = publish_head(subject, reply, headers, len(payload))
        if size > self._client.max_payload:
            raise PayloadTooLarge(subject, size=size, limit=self._client.max_payload)
        self._client.send(head, payload, END)

    def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Interest:
        """Call ``on_message`` for each message from now on; returns what ends it. Raises the library's errors."""
        self._subscribed += 1
        self._client.send(subscribe_frame(subject, self._subscribed))
        self._client.listen(self._subscribed, on_message)
        return Interest(self._client, self._subscribed)

    def declare_lost(self) -> None:
        """Drop the socket at once: the other side no longer answers."""
        self._client.abort()
        self._tell_lost()

    async def close(self) -> None:
        """End this link; bounded, and silent about what was already broken."""
        self._lost = True
        try:
            async with asyncio.timeout(limits.WIRE_CLOSE_TIMEOUT_S):
                await _cancellable(self._client.close())
        except (TimeoutError, nats_errors.Error, OSError) as error:
            _log.debug("link_close_failed", error=repr(error))
        finally:
            self._client.abort()

    async def _failed(self, error: Exception) -> None:
        self._last_error = error
        _log.debug("link_error", error=repr(error))
        if isinstance(error, nats_errors.UnexpectedEOF):
            self._tell_lost()

    async def _disconnected(self) -> None:
        self._tell_lost()

    def _tell_lost(self) -> None:
        if not self._lost:
            self._lost = True
            self._on_lost(self)


class Interest:
    """One subscription on one link, ended in two steps, since what the broker sent before it heard is still to come."""

    def __init__(self, client: LinkClient, sid: int) -> None:
        self._client = client
        self._sid = sid

    def withdraw(self) -> None:
        """Tell the broker to send no more. Raises the library's errors: see :func:`translated`."""
        self._client.send(unsubscribe_frame(self._sid))

    def forget(self) -> None:
        """Hand on nothing more."""
        self._client.forget(self._sid)


def translated(error: Exception, subject: str) -> CrewletError:
    """The one place where the library's errors become ours."""
    return Unavailable(f"{subject}: {error or type(error).__name__}")


def _refused(error: Exception, urls: Sequence[str]) -> CrewletError:
    where = ", ".join(urls)
    if "authorization violation" in str(error).lower():
        return LoginRefused(f"the broker at {where} refused our login", "check stream.credentials or stream.token")
    return Unavailable(f"no broker answers at {where}: {error or type(error).__name__}")


async def _cancellable(call: Awaitable[_T]) -> _T:
    """Await the library; a cancellation that it swallows on the way, as it does here and there, travels on."""
    task = asyncio.current_task()
    assert task is not None, "only tasks await"
    before = task.cancelling()
    try:
        return await call
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError
