"""Waiting until a clustered broker serves: a majority has found together, and this member holds what the others do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import structlog

from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, StreamInfo
from crewlet.backends.nats.member_health import member_lacks
from crewlet.backends.nats.patience import Patience
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable

__all__ = ["behind", "refuse_second_of_a_name", "wait_current", "wait_for_peers"]

_log = structlog.get_logger(__name__)
_TWO_OF_A_NAME: Final = "duplicate name"
_ONE_NAME_EACH: Final = "node.id must be another in every node file"


async def wait_for_peers(
    wire: Wire,
    *,
    cluster: str,
    peers: Sequence[str],
    last_words: Callable[[], Awaitable[list[str]]],
    timeout_s: float = limits.CLUSTER_PEERS_WAIT_S,
) -> None:
    """Return once the cluster has a leader, which takes a majority of its members.

    Raises ``StartRefused`` after ``timeout_s``, with why they do not find together where the broker's log tells.
    """
    api = JetStream(wire, timeout_s=limits.CLUSTER_ASK_S)
    patience = Patience(timeout_s)
    while True:
        try:
            await api.account_info()
        except (Unavailable, ApiError) as error:
            reason = str(error)
        else:
            if patience.has_spoken:
                _log.info("cluster_has_a_majority", cluster=cluster)
            return
        words = await last_words()
        if patience.is_over():
            raise StartRefused(
                f"no majority of the cluster {cluster} in {timeout_s:g} s; peers: {', '.join(peers)}; {reason}",
                _why_apart(words) or "start the other members, and see that this machine reaches the peers' ports",
            )
        if patience.speaks():
            _log.warning("cluster_awaiting_peers", cluster=cluster, peers=list(peers), hint=_why_apart(words))
        await asyncio.sleep(limits.CLUSTER_ASK_PAUSE_S)


async def refuse_second_of_a_name(*, member: str, last_words: Callable[[], Awaitable[list[str]]]) -> None:
    """Raise ``StartRefused`` where this run's broker has met another one, alive, that is called ``member`` too.

    The cluster takes both for one: what this one votes and confirms would count as the other's.
    """
    if any(_TWO_OF_A_NAME in line for line in await last_words()):
        raise StartRefused(f"the cluster has a member {member} already, and it runs", _ONE_NAME_EACH)


async def wait_current(
    overseer: Wire, *, member: str, wire: Wire, quiet_s: float = limits.CLUSTER_CURRENT_WAIT_S
) -> None:
    """Return once the broker ``member`` itself says that all it keeps copies of is current.

    What the leaders say of it is not enough: of a member that was restarted they go on saying what held before.
    ``overseer`` is logged in to the brokers' own account, ``wire`` to the company's. As long as it catches up there is
    no end to this. Raises ``StartRefused`` where nothing moves for ``quiet_s``.
    """
    api = JetStream(wire)
    patience = Patience(quiet_s)
    least: tuple[int, int] | None = None
    while True:
        try:
            lacks = await member_lacks(overseer, member)
            if not lacks:
                return
            reason = lacks[0]
            left = (len(lacks), sum(behind(await api.stream_infos(), member).values()))
            if least is None or left < least:
                least = left
                patience.begin_again()
        except (Unavailable, ApiError) as error:
            reason = str(error)
        if patience.is_over():
            raise StartRefused(
                f"this member has not caught up with its cluster, and nothing moved in {quiet_s:g} s: {reason}",
                "see that the other members run and that the disk has room, then start it again",
            )
        if patience.speaks():
            _log.info("cluster_catching_up", behind=reason)
        await asyncio.sleep(limits.CLUSTER_ASK_PAUSE_S)


def behind(streams: Iterable[StreamInfo], member: str) -> dict[str, int]:
    """The streams of which ``member`` lacks entries, as far as their leaders know, and how many."""
    copies = [
        (stream.config.name, copy.lag)
        for stream in streams
        for copy in (() if stream.cluster is None else stream.cluster.replicas)
        if copy.name == member
    ]
    return {name: lag for name, lag in copies if lag}


def _why_apart(words: Iterable[str]) -> str:
    """What the broker's last words say of members that do not find together; empty where they say nothing."""
    text = "\n".join(words)
    if "authentication error" in text or "Authorization Violation" in text:
        return "a member shows another secret: stream.cluster.secret must be the same in every node file"
    if _TWO_OF_A_NAME in text:
        return f"two members have one name: {_ONE_NAME_EACH}"
    return ""
