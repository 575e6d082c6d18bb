"""How a member of a cluster stands, as its broker itself says.

Asked under a login of the brokers' own account, which sees nothing that is stored. What the leaders say of a member is
not enough: of one that was restarted, or whose disk took nothing, they go on saying what held before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from crewlet.backends.nats.connection import connect
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.ids import Ids

__all__ = ["MemberHealth", "look_at_member", "member_lacks"]

_HEALTH: Final = "$SYS.REQ.SERVER.PING.HEALTHZ"
_FOR_GOOD: Final = ("JetStream not enabled", "write error")
"""What it says once a disk has taken nothing of it: all of it is switched off, or one stream's part is. Neither comes
back without a restart, whatever room there is by then."""


@dataclass(frozen=True, slots=True)
class MemberHealth:
    """What is not as it should be in a member, in its broker's own words; nothing where it is well."""

    lacks: Sequence[str] = ()

    @property
    def has_stopped(self) -> bool:
        """Whether it will store nothing, or not everything, until it is started again."""
        return any(words in lack for lack in self.lacks for words in _FOR_GOOD)


async def look_at_member(urls: Callable[[], Sequence[str]], *, seed: str, member: str, ids: Ids) -> MemberHealth:
    """How the broker ``member`` stands.

    Over a connection for this one question: a node works over one. Raises ``Unavailable`` where it does not say.
    """
    try:
        overseer = await connect(urls, seed=seed, name=f"{member} overseer", ids=ids)
    except StartRefused as refusal:
        # A broker that is just being started again, or another one on its port.
        raise Unavailable(str(refusal)) from refusal
    try:
        return MemberHealth(await member_lacks(overseer, member, timeout_s=limits.MEMBER_LOOK_WAIT_S))
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
