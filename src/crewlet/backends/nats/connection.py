"""The one connection of a node: requests, subscriptions and their survival over any number of links (D3, D5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog
from nats import errors as nats_errors

from crewlet.backends.nats.link import Link, moved, translated
from crewlet.backends.nats.login import Login, LoginRefused, TlsFiles
from crewlet.backends.nats.replies import Replies
from crewlet.backends.nats.wire import Message, NoResponders, NotDone, Unsubscribe, Wire
from crewlet.backends.nats.wire_listeners import WireListeners
from crewlet.backends.nats.wire_subscription import WireSubscription
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.ids import Ids, RandomIds
from crewlet.base.tasks import Tasks

__all__ = ["Connection", "connect"]

_log = structlog.get_logger(__name__)

_NO_RESPONDERS: Final = "503"

Urls = Callable[[], Sequence[str]]
"""Where to dial now; asked again for each new link, since an embedded broker may come back on another port."""


async def connect(
    url: str | Urls,
    *,
    seed: str = "",
    credentials: str = "",
    token: str = "",
    tls: TlsFiles | None = None,
    name: str = "crewlet",
    ids: Ids | None = None,
) -> Connection:
    """Dial the broker; afterwards the connection keeps itself up until it is closed.

    ``url`` may name several servers, separated by commas. Raises ``Unavailable`` when none answers, ``StartRefused``
    when the broker refuses the login or a file named for it cannot be read.
    """
    urls: Urls = url if callable(url) else lambda: [part.strip() for part in url.split(",")]
    login = Login(seed=seed, credentials=credentials, token=token, tls=tls)
    connection = Connection(urls, login, name=name, ids=ids or RandomIds())
    await connection.open()
    return connection


class Connection(Wire):
    """Our own request mux and subscription table over one link after another."""

    def __init__(self, urls: Urls, login: Login, *, name: str, ids: Ids) -> None:
        self._urls = urls
        self._login = login
        self._name = name
        self._replies = Replies(f"_INBOX.{ids.hex(24)}")
        self._subscriptions: dict[int, WireSubscription] = {}
        self._subscribed = 0
        self._link: Link | None = None
        self._max_payload_bytes = 0
        self._discovered: list[str] = []
        self._drops = WireListeners()
        self._returns = WireListeners()
        self._lost = asyncio.Event()
        self._tasks = Tasks("wire")
        self._closed = False

    async def open(self) -> None:
        """Dial the first link and start keeping it; see :func:`connect`."""
        self._remember(WireSubscription(self._replies.pattern, self._replies.take))
        await self._dial()
        self._tasks.start("keep", self._keep())

    async def close(self) -> None:
        """End the connection; what is pending fails as ``Unavailable``."""
        self._closed = True
        await self._tasks.close()
        link, self._link = self._link, None
        self._replies.fail()
        if link is not None:
            await link.close()

    @property
    def connected(self) -> bool:
        """Whether a request sent now would leave this process."""
        return self._link is not None and self._link.connected

    @property
    def max_payload_bytes(self) -> int:
        """The broker's own limit, as it said on the last connect."""
        return self._max_payload_bytes

    @property
    def pending_requests(self) -> int:
        """How many requests wait for an answer."""
        return len(self._replies)

    def new_inbox(self) -> str:
        """A subject nobody else uses, for replies."""
        return self._replies.new_inbox()

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Message:
        """One request and its reply; see ``Wire``."""
        reply, answer = self._replies.expect()
        alarm = asyncio.get_running_loop().call_later(timeout_s, _time_out, answer)
        try:
            link = self._link
            if link is not None and link.backlog_bytes + len(payload) > limits.WIRE_UNSENT_MAX_BYTES // 2:
                # One that may have to wait before it is sent must not wait longer than for its answer.
                await asyncio.wait_for(self.publish(subject, payload, reply=reply, headers=headers), timeout_s)
            else:
                self._send(subject, payload, reply, headers)
            message = await answer
        except TimeoutError as error:
            raise Unavailable(f"{subject}: no answer within {timeout_s:g} s") from error
        finally:
            alarm.cancel()
            self._replies.forget(reply)
        if message.status == _NO_RESPONDERS and not message.payload:
            raise NoResponders(f"{subject}: nobody listens")
        return message

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Hand one message to the link; waits only while more than the bound is still unsent."""
        link = self._send(subject, payload, reply, headers)
        if link.backlog_bytes > limits.WIRE_UNSENT_MAX_BYTES:
            await self._echo(limits.BROKER_REQUEST_TIMEOUT_S)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        """Call ``on_message`` for each message, across links, until unsubscribed; see ``Wire``."""
        subscription = WireSubscription(subject, on_message)
        if self._link is not None:
            subscription.attach(self._link)
        key = self._remember(subscription)

        async def unsubscribe() -> None:
            if self._subscriptions.pop(key, None) is not None:
                await subscription.detach(self._drained)

        return unsubscribe

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` each time the link drops; returns what removes it."""
        return self._drops.add(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` each time a new link stands, every subscription on it; returns what removes it."""
        return self._returns.add(call)

    def _remember(self, subscription: WireSubscription) -> int:
        self._subscribed += 1
        self._subscriptions[self._subscribed] = subscription
        return self._subscribed

    async def _dial(self) -> None:
        link = Link(self._link_lost)
        urls = [*self._urls()]
        await link.dial([*urls, *(url for url in self._discovered if url not in urls)], self._login, name=self._name)
        for subscription in self._subscriptions.values():
            subscription.attach(link)
        if not link.connected:
            await link.close()
            raise Unavailable("the link dropped while its subscriptions were made")
        self._lost.clear()
        self._discovered = link.discovered
        self._max_payload_bytes = link.max_payload_bytes
        self._link = link

    async def _keep(self) -> None:
        """Watch the link until it is lost, dial the next one, for as long as the connection is open."""
        while True:
            lost = self._link
            await self._watch()
            if lost is not None:
                await lost.close()
            await self._redial()
            _log.info("broker_reconnected")
            self._returns.tell()

    async def _redial(self) -> None:
        backoff_s = limits.WIRE_REDIAL_BACKOFF_FIRST_S
        while True:
            try:
                await self._dial()
            except (CrewletError, TimeoutError) as error:
                log = _log.error if isinstance(error, LoginRefused) else _log.debug
                log("broker_dial_failed", error=str(error), retry_in_s=backoff_s)
            except Exception:  # noqa: BLE001 - a fault in here must not leave the node deaf for ever
                _log.exception("broker_dial_broke", retry_in_s=backoff_s)
            else:
                return
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, limits.WIRE_REDIAL_BACKOFF_MAX_S)

    async def _watch(self) -> None:
        """Return when the link is lost; a link that neither answers nor moves a byte is declared lost."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(limits.WIRE_PING_INTERVAL_S):
                    await self._lost.wait()
            except TimeoutError:
                await self._probe()

    async def _probe(self) -> None:
        link = self._link
        if link is None:
            return
        before = link.progress()
        try:
            await self._echo(limits.WIRE_PING_TIMEOUT_S)
        except Unavailable:
            if link is self._link and not moved(before, link.progress()):
                _log.warning("broker_silent", timeout_s=limits.WIRE_PING_TIMEOUT_S)
                link.declare_lost()

    async def _echo(self, timeout_s: float) -> None:
        """Send ourselves a message through the broker: proves both directions and the reply subscription."""
        subject, back = self._replies.expect()
        link = self._link
        try:
            if link is None:
                raise Unavailable("the link to the broker is down")
            async with asyncio.timeout(timeout_s):
                link.publish(subject, b"", "", None)
                await back
        except (TimeoutError, nats_errors.Error, OSError) as error:
            raise Unavailable(f"the broker did not echo within {timeout_s:g} s") from error
        finally:
            self._replies.forget(subject)

    def _send(self, subject: str, payload: bytes, reply: str, headers: Mapping[str, str] | None) -> Link:
        link = self._link
        if link is None:
            raise NotDone(f"{subject}: the link to the broker is down")
        try:
            link.publish(subject, payload, reply, headers)
        except nats_errors.ConnectionClosedError as closed:
            raise NotDone(f"{subject}: the link to the broker is down") from closed
        except (nats_errors.Error, OSError) as error:
            raise translated(error, subject) from error
        return link

    async def _drained(self) -> None:
        """Everything that the broker had sent when this was called has been handed over."""
        await self._echo(limits.BROKER_REQUEST_TIMEOUT_S)

    def _link_lost(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link = None
        self._lost.set()
        self._replies.fail()
        if not self._closed:
            _log.warning("broker_disconnected")
            self._drops.tell()


def _time_out(answer: asyncio.Future[Message]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
