"""How a member of a cluster stands, as its broker itself says, and as those know who lead the streams.

The broker is asked under a login of the brokers' own account, which sees nothing that is stored. Neither word is
enough: of a member that was restarted the leaders go on saying what held before, and a member that may store no more
calls itself well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from crewlet.backends.nats.connection import connect
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, StreamInfo
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.ids import Ids

__all__ = ["MemberCopies", "MemberHealth", "copies_of", "look_at_copies", "look_at_member", "member_lacks"]

_HEALTH: Final = "$SYS.REQ.SERVER.PING.HEALTHZ"
_FOR_GOOD: Final = ("JetStream not enabled", "write error")
"""What it says once a disk has taken nothing of it: all of it is switched off, or one stream's part is. Neither comes
back without a restart, whatever room there is by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHealth:
    """How a member stands: by its own word, and by what the leaders of the streams know of its copies.

    ``lacks`` is what is not as it should be in it, in its broker's words. ``behind`` names the streams of which it
    lacks entries and that do not count it as current, with how many: a busy moment, unless it stays so. A member that
    may store no more says no word of it. ``others_whole``: whether every other member's copies are current.
    """

    lacks: Sequence[str] = ()
    behind: Mapping[str, int] = field(default_factory=dict[str, int])
    others_whole: bool = True

    @property
    def has_stopped(self) -> bool:
        """Whether by its own word it will store nothing, or not everything, until it is started again."""
        return any(words in lack for lack in self.lacks for words in _FOR_GOOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCopies:
    """What the leaders know of a member's copies: see ``MemberHealth``."""

    behind: Mapping[str, int]
    others_whole: bool


async def look_at_copies(api: JetStream, member: str) -> MemberCopies:
    """What the leaders of the streams know of the copies at ``member``. Raises ``Unavailable``."""
    try:
        return copies_of(await api.stream_infos(), member)
    except ApiError as error:
        raise Unavailable(str(error)) from error


def copies_of(streams: Iterable[StreamInfo], member: str) -> MemberCopies:
    """The same, of these streams. Pure."""
    stale = [
        (stream.config.name, copy)
        for stream in streams
        for copy in (() if stream.cluster is None else stream.cluster.replicas)
        if not copy.current
    ]
    return MemberCopies(
        behind={name: copy.lag for name, copy in stale if copy.name == member and copy.lag},
        others_whole=all(copy.name == member for _, copy in stale),
    )


async def look_at_member(urls: Callable[[], Sequence[str]], *, seed: str, member: str, ids: Ids) -> Sequence[str]:
    """What the broker ``member`` says is not as it should be in it; nothing where it is well.

    Over a connection for this one question: a node works over one. Raises ``Unavailable`` where it does not say.
    """
    try:
        overseer = await connect(urls, seed=seed, name=f"{member} overseer", ids=ids)
    except StartRefused as refusal:
        # A broker that is just being started again, or another one on its port.
        raise Unavailable(str(refusal)) from refusal
    try:
        return await member_lacks(overseer, member, timeout_s=limits.MEMBER_LOOK_WAIT_S)
    finally:
        await overseer.close()


async def member_lacks(overseer: Wire, member: str, *, timeout_s: float = limits.CLUSTER_ASK_S) -> Sequence[str]:
    """What the broker says is not current in it, or why it keeps nothing; empty where it is well.

    Raises ``Unavailable``.
    """
    asked = msgspec.json.encode({"server_name": member, "exact_match": True, "details": True})
    answer = await overseer.request(_HEALTH, asked, timeout_s=timeout_s)
    try:
        told = msgspec.json.decode(answer.payload, type=_HealthAnswer)
    except msgspec.DecodeError as error:
        raise Unavailable(f"{_HEALTH}: unreadable answer: {error}") from error
    if told.server.name != member:
        raise Unavailable(f"{_HEALTH}: {told.server.name} answered for {member}")
    if told.data.status == "ok":
        return []
    return [each.error for each in told.data.errors] or [told.data.error or told.data.status]


class _HealthError(msgspec.Struct, frozen=True):
    error: str = ""


class _Health(msgspec.Struct, frozen=True):
    status: str = ""
    error: str = ""
    errors: list[_HealthError] = []


class _Server(msgspec.Struct, frozen=True):
    name: str = ""


class _HealthAnswer(msgspec.Struct, frozen=True):
    server: _Server = _Server()
    data: _Health = _Health()
