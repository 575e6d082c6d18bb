"""The one connection of a node: requests, subscriptions and their survival over any number of links (D3, D5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from nats import errors as nats_errors

from crewlet.backends.nats.link import Interest, Link, Login, LoginRefused, TlsFiles, moved, translated
from crewlet.backends.nats.wire import Message, NoResponders, NotDone, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import CrewletError, PayloadTooLarge, Unavailable
from crewlet.base.ids import Ids, RandomIds
from crewlet.base.tasks import Tasks

__all__ = ["Connection", "connect"]

_log = structlog.get_logger(__name__)

_NO_RESPONDERS = "503"

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
        self._inbox = f"_INBOX.{ids.hex(24)}"
        self._requests = 0
        self._pending: dict[str, asyncio.Future[Message]] = {}
        self._subscriptions: dict[int, _Subscription] = {}
        self._subscribed = 0
        self._link: Link | None = None
        self._max_payload_bytes = 0
        self._discovered: list[str] = []
        self._disconnected_calls: list[Callable[[], None]] = []
        self._reconnected_calls: list[Callable[[], None]] = []
        self._lost = asyncio.Event()
        self._tasks = Tasks("wire")
        self._closed = False

    async def open(self) -> None:
        """Dial the first link and start keeping it; see :func:`connect`."""
        self._remember(_Subscription(f"{self._inbox}.*", self._answered))
        await self._dial()
        self._tasks.start("keep", self._keep())

    async def close(self) -> None:
        """End the connection; what is pending fails as ``Unavailable``."""
        self._closed = True
        await self._tasks.close()
        link, self._link = self._link, None
        self._fail_pending()
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
        return len(self._pending)

    def new_inbox(self) -> str:
        """A subject nobody else uses, for replies."""
        self._requests += 1
        # One token deeper than a request's reply, so that the mux does not see what comes here.
        return f"{self._inbox}.s.{self._requests}"

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Message:
        """One request and its reply; see ``Wire``."""
        self._requests += 1
        reply = f"{self._inbox}.{self._requests}"
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[reply] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self.publish(subject, payload, reply=reply, headers=headers)
                message = await answer
        except TimeoutError as error:
            raise Unavailable(f"{subject}: no answer within {timeout_s:g} s") from error
        finally:
            self._forget(reply)
        if message.status == _NO_RESPONDERS and not message.payload:
            raise NoResponders(f"{subject}: nobody listens")
        return message

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Hand one message to the link; waits only while more than the bound is still unsent."""
        link = self._link
        if link is None or not link.connected:
            raise NotDone(f"{subject}: the link to the broker is down")
        size = len(payload) + (_header_bytes(headers) if headers else 0)
        if size > self._max_payload_bytes:
            raise PayloadTooLarge(subject, size=size, limit=self._max_payload_bytes)
        try:
            await link.publish(subject, payload, reply, headers)
        except (nats_errors.Error, OSError) as error:
            raise translated(error, subject) from error
        if link.unsent_bytes > limits.WIRE_UNSENT_MAX_BYTES:
            await self._echo(limits.BROKER_REQUEST_TIMEOUT_S)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        """Call ``on_message`` for each message, across links, until unsubscribed; see ``Wire``."""
        subscription = _Subscription(subject, on_message)
        key = self._remember(subscription)
        if self._link is not None:
            await subscription.attach(self._link)

        async def unsubscribe() -> None:
            if self._subscriptions.pop(key, None) is not None:
                await subscription.detach(self._drained)

        return unsubscribe

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` each time the link drops; returns what removes it."""
        return _register(self._disconnected_calls, call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call ``call`` each time a new link stands, every subscription on it; returns what removes it."""
        return _register(self._reconnected_calls, call)

    def _remember(self, subscription: _Subscription) -> int:
        self._subscribed += 1
        self._subscriptions[self._subscribed] = subscription
        return self._subscribed

    async def _dial(self) -> None:
        link = Link(self._link_lost)
        urls = [*self._urls()]
        await link.dial([*urls, *(url for url in self._discovered if url not in urls)], self._login, name=self._name)
        try:
            # Others may subscribe while this waits: go on until the link carries the whole table.
            while missing := [each for each in self._subscriptions.values() if each.link is not link]:
                for subscription in missing:
                    await subscription.attach(link)
        except BaseException:
            await link.close()
            raise
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
            _call_each(self._reconnected_calls)

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
        self._requests += 1
        subject = f"{self._inbox}.{self._requests}"
        back: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[subject] = back
        link = self._link
        try:
            if link is None:
                raise Unavailable("the link to the broker is down")
            async with asyncio.timeout(timeout_s):
                await link.publish(subject, b"", "", None)
                await back
        except (TimeoutError, nats_errors.Error, OSError) as error:
            raise Unavailable(f"the broker did not echo within {timeout_s:g} s") from error
        finally:
            self._forget(subject)

    async def _drained(self) -> None:
        """Everything that the broker had sent when this was called has been handed over."""
        await self._echo(limits.BROKER_REQUEST_TIMEOUT_S)

    def _answered(self, message: Message) -> None:
        answer = self._pending.get(message.subject)
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _forget(self, subject: str) -> None:
        answer = self._pending.pop(subject)
        if answer.done() and not answer.cancelled():
            # Seen, even where the caller stopped waiting for another reason first.
            answer.exception()

    def _link_lost(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link = None
        self._lost.set()
        self._fail_pending()
        if not self._closed:
            _log.warning("broker_disconnected")
            _call_each(self._disconnected_calls)

    def _fail_pending(self) -> None:
        for subject, answer in self._pending.items():
            if not answer.done():
                answer.set_exception(Unavailable(f"{subject}: the link dropped before the answer came"))


class _Subscription:
    """One entry of the table: a subject, who is told, and the link that carries it now."""

    def __init__(self, subject: str, on_message: Callable[[Message], None]) -> None:
        self.link: Link | None = None
        self._subject = subject
        self._on_message = on_message
        self._interest: Interest | None = None
        self._ended = False

    async def attach(self, link: Link) -> None:
        self.link = link
        try:
            self._interest = await link.subscribe(self._subject, self._on_message)
        except (nats_errors.Error, OSError) as error:
            # A link that fails here is on its way out; the next one takes the whole table again.
            _log.debug("subscribe_failed", subject=self._subject, error=repr(translated(error, self._subject)))
        if self._ended:
            await self.detach()

    async def detach(self, drained: Callable[[], Awaitable[None]] | None = None) -> None:
        """End the interest; with ``drained``, what was on its way is handed over first."""
        self._ended = True
        interest, self._interest = self._interest, None
        if interest is None or self.link is None or not self.link.connected:
            return
        try:
            await interest.withdraw()
            if drained is not None:
                await drained()
        except (nats_errors.Error, OSError, Unavailable) as error:
            _log.debug("unsubscribe_failed", subject=self._subject, error=repr(error))
        finally:
            interest.forget()


def _register(calls: list[Callable[[], None]], call: Callable[[], None]) -> Callable[[], None]:
    calls.append(call)

    def remove() -> None:
        if call in calls:
            calls.remove(call)

    return remove


def _call_each(calls: list[Callable[[], None]]) -> None:
    for call in [*calls]:
        try:
            call()
        except Exception:  # noqa: BLE001 - one listener must not keep the others, or the next dial, from happening
            _log.exception("wire_listener_failed")


def _header_bytes(headers: Mapping[str, str]) -> int:
    # The version line and the empty line that ends the block, then name, colon, space, value and line end of each.
    return 14 + sum(len(name.encode()) + len(value.encode()) + 4 for name, value in headers.items())
