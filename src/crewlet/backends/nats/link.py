"""One link: a single life of the client library's connection, from a successful dial to its loss.

A lost link is never repaired; the connection dials a new one. So nothing that was queued in the library before a
drop can be written after it, and no half-dead state of the library outlives the link it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, cast

import structlog
from nats import errors as nats_errors
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import CrewletError, StartRefused, Unavailable

__all__ = ["Interest", "Link", "Login", "LoginRefused", "Progress", "TlsFiles", "moved", "translated"]

_log = structlog.get_logger(__name__)

_T = TypeVar("_T")

_STATUS: Final = "Status"
_DESCRIPTION: Final = "Description"
_CREDENTIALS_PARTS: Final = ("-----BEGIN NATS USER JWT-----", "-----BEGIN USER NKEY SEED-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files: the authority that signed the broker's certificate, and our own certificate and key."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        """The context to dial with. Raises ``StartRefused`` naming the files when they do not load."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(path for path in (self.ca, self.cert, self.key) if path)
            raise StartRefused(f"cannot load the broker's TLS files {files}: {error}", "check stream.tls") from error
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who we are to the broker: a seed held in memory, a credentials file, or a token; and how the link is secured."""

    seed: str = field(default="", repr=False)
    credentials: str = ""
    token: str = field(default="", repr=False)
    tls: TlsFiles | None = None


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


class LoginRefused(StartRefused):
    """The broker does not know us."""


class Link:
    """One connected client. ``on_lost`` is called once, on the loop, when the link is gone for whatever reason."""

    def __init__(self, on_lost: Callable[[Link], None]) -> None:
        self._client = _Client()
        self._on_lost = on_lost
        self._lost = False
        self._last_error: Exception | None = None

    async def dial(self, urls: Sequence[str], login: Login, *, name: str) -> None:
        """Connect to the first of ``urls`` that answers. Raises ``Unavailable``, or ``StartRefused``."""
        credentials = await asyncio.to_thread(_read_credentials, login.credentials) if login.credentials else ""
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
    def unsent_bytes(self) -> int:
        """What was accepted here and not yet taken by the operating system."""
        return self._client.unsent_bytes

    def progress(self) -> Progress:
        """How far traffic has come, to be compared with a later look: see :func:`moved`."""
        return Progress(self._client.stats["in_msgs"], self._client.taken_bytes, self._client.unsent_bytes)

    async def publish(self, subject: str, payload: bytes, reply: str, headers: Mapping[str, str] | None) -> None:
        """Hand one message to the socket. Raises the library's errors: see :func:`translated`."""
        await _cancellable(self._client.publish(subject, payload, reply, dict(headers) if headers else None))

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Interest:
        """Call ``on_message`` for each message from now on; returns what ends it."""
        sink = _Sink(subject, on_message)
        # The library hands a message to a waiting future at once, without a queue and a task for each subscription.
        start = cast("Callable[..., Awaitable[Subscription]]", self._client.subscribe)  # pyright: ignore[reportUnknownMemberType]
        return Interest(self._client, await _cancellable(start(subject, future=sink)))

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

    def __init__(self, client: _Client, subscription: Subscription) -> None:
        self._client = client
        self._subscription = subscription

    async def withdraw(self) -> None:
        """Tell the broker to send no more. Raises the library's errors: see :func:`translated`."""
        await _cancellable(self._client.withdraw(self._subscription))

    def forget(self) -> None:
        """Hand on nothing more."""
        self._client.forget(self._subscription)


def translated(error: Exception, subject: str) -> CrewletError:
    """The one place where the library's errors become ours."""
    if isinstance(error, nats_errors.BadSubjectError | nats_errors.BadHeaderError):
        raise ValueError(f"{subject!r}: {error}") from error  # noqa: TRY004 - the value is wrong, not its type
    return Unavailable(f"{subject}: {error or type(error).__name__}")


def _read_credentials(path: str) -> str:
    try:
        text = Path(path).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise StartRefused(f"cannot read the credentials file {path}: {error}", "check stream.credentials") from error
    # The library searches a file that lacks either of them for ever, on the event loop.
    if not all(part in text for part in _CREDENTIALS_PARTS):
        raise StartRefused(f"{path} is not a credentials file: it holds no login and seed", "check stream.credentials")
    return text


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


class _Sink:
    """Stands where the library expects a future: takes each message at once, in order."""

    def __init__(self, subject: str, on_message: Callable[[Message], None]) -> None:
        self._subject = subject
        self._on_message = on_message

    def cancelled(self) -> bool:
        return False

    def set_result(self, msg: Msg) -> None:
        try:
            self._on_message(_message(msg))
        except Exception:  # noqa: BLE001 - a raise here would end the library's read loop and leave everybody deaf
            _log.exception("wire_callback_failed", subject=self._subject)


def _message(msg: Msg) -> Message:
    if not msg.headers:
        return Message(msg.subject, msg.data, {}, msg.reply)
    headers = dict(msg.headers)
    status = headers.pop(_STATUS, "")
    description = headers.pop(_DESCRIPTION, "")
    return Message(msg.subject, msg.data, headers, msg.reply, status, description)


class _Transport(TcpTransport):
    """The library's socket, with a way to drop it that does not wait for unsent bytes on a dead link."""

    def __init__(self) -> None:
        super().__init__()
        self.written_bytes = 0

    def abort(self) -> None:
        for writer in (self._io_writer, self._bare_io_writer):
            if writer is not None:
                with contextlib.suppress(RuntimeError):
                    writer.transport.abort()

    def write(self, payload: bytes) -> None:
        self.written_bytes += len(payload)
        super().write(payload)

    def writelines(self, payload: list[bytes]) -> None:
        self.written_bytes += sum(map(len, payload))
        super().writelines(payload)

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._io_writer is None else self._io_writer.transport.get_write_buffer_size()

    def __bool__(self) -> bool:
        # The library replaces a transport that is not connected yet by its own.
        return True


class _Client(Client):
    def __init__(self) -> None:
        super().__init__()
        self._socket = _Transport()
        self._transport = self._socket

    def abort(self) -> None:
        self._socket.abort()

    async def withdraw(self, subscription: Subscription) -> None:
        await self._send_unsubscribe(subscription._id)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def forget(self, subscription: Subscription) -> None:
        self._remove_sub(subscription._id)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    @property
    def taken_bytes(self) -> int:
        return self._socket.written_bytes - self._socket.unsent_bytes

    @property
    def unsent_bytes(self) -> int:
        return self.pending_data_size + self._socket.unsent_bytes

    def _connect_command(self) -> bytes:
        # The library would go on in plain text where the server offers no TLS, and send the token with it.
        if "tls" in self.options and not self._server_info.get("tls_required", False):
            raise nats_errors.SecureConnWantedError
        return super()._connect_command()
