"""The sockets that the API listens on, taken before anything else so that a port in use is said at once."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterable, Sequence
from typing import Final

from crewlet.base import limits
from crewlet.base.errors import StartRefused

__all__ = ["listen", "port_of"]

_Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


async def listen(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of ``host``; port 0 takes a free one. Raises ``StartRefused``."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartRefused(f"{host} is no address of this machine: {error}", "set `api.host`") from None
    addresses = [(family, address) for family, _, _, _, address in dict.fromkeys(found)]
    # One address is enough where the port is to be a free one: the next would get another.
    return _listen_on(addresses[:1] if port == 0 else addresses, host, port)


def port_of(sockets: Iterable[socket.socket]) -> int:
    """The port that was taken."""
    return int(next(iter(sockets)).getsockname()[1])


def _listen_on(addresses: Sequence[tuple[socket.AddressFamily, _Address]], host: str, port: int) -> list[socket.socket]:
    opened: list[socket.socket] = []
    absent: OSError | None = None
    for family, address in addresses:
        try:
            opened.append(_open(family, address))
        except OSError as error:
            if error.errno in _ABSENT:
                absent = error
                continue
            _close(opened)
            raise _refusal(error, host, port) from None
    if not opened and absent is not None:
        raise _refusal(absent, host, port) from None
    return opened


def _open(family: socket.AddressFamily, address: _Address) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        listener.bind(address)
        # Two sockets may be bound to one port as long as neither listens: only this call claims it.
        listener.listen(limits.API_BACKLOG_MAX)
    except OSError:
        listener.close()
        raise
    return listener


def _refusal(error: OSError, host: str, port: int) -> StartRefused:
    if error.errno == errno.EADDRINUSE:
        return StartRefused(
            f"{host}:{port} is in use by another process", "stop it, or set `api.port` to a free one in the node file"
        )
    if error.errno == errno.EACCES:
        return StartRefused(f"this user may not listen on {host}:{port}", "set `api.port` to one above 1023")
    remedy = "set `api.host` to an address of this machine"
    return StartRefused(f"the API cannot listen on {host}:{port}: {error.strerror or error}", remedy)


def _close(sockets: Iterable[socket.socket]) -> None:
    for listener in sockets:
        listener.close()
