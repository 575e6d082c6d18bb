"""Waiting until a clustered broker serves: a majority has found together, and this member holds what the others do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import structlog

from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, StreamInfo
from crewlet.backends.nats.patience import Patience
from crewlet.backends.nats.wire import Wire
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable

__all__ = ["behind", "wait_current", "wait_for_peers"]

_log = structlog.get_logger(__name__)


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


async def wait_current(wire: Wire, *, member: str, quiet_s: float = limits.CLUSTER_CURRENT_WAIT_S) -> None:
    """Return once every stream that ``member`` keeps a copy of calls that copy current.

    As long as it catches up there is no end to this. Raises ``StartRefused`` where nothing moves for ``quiet_s``.
    """
    api = JetStream(wire)
    patience = Patience(quiet_s)
    least: tuple[int, int] | None = None
    while True:
        try:
            late = await _behind(api, member)
            lacks = ", ".join(sorted(late)[: limits.SEATS_SHOWN_MAX])
            left = (len(late), sum(late.values()))
            if not late:
                return
            if least is None or left < least:
                least = left
                patience.begin_again()
        except (Unavailable, ApiError) as error:
            lacks = str(error)
        if patience.is_over():
            raise StartRefused(
                f"this member has not caught up with its cluster, and nothing moved in {quiet_s:g} s: {lacks}",
                "see that the other members run and that the disk has room, then start it again",
            )
        if patience.speaks():
            _log.warning("cluster_catching_up", behind=lacks)
        await asyncio.sleep(limits.CLUSTER_ASK_PAUSE_S)


def behind(streams: Iterable[StreamInfo], member: str) -> dict[str, int]:
    """The streams of which ``member`` keeps a copy that is not current, and how many entries it lacks of each."""
    late: dict[str, int] = {}
    for stream in streams:
        if stream.cluster is None or stream.cluster.leader == member:
            continue
        mine = [copy for copy in stream.cluster.replicas if copy.name == member]
        if mine and not mine[0].current:
            late[stream.config.name] = mine[0].lag
        elif not stream.cluster.leader:
            late[stream.config.name] = 0
    return late


async def _behind(api: JetStream, member: str) -> dict[str, int]:
    names, streams = await api.stream_names(), await api.stream_infos()
    # A stream without a leader is known by name alone.
    answered = {stream.config.name for stream in streams}
    return {name: 0 for name in names if name not in answered} | behind(streams, member)


def _why_apart(words: Iterable[str]) -> str:
    """What the broker's last words say of members that do not find together; empty where they say nothing."""
    text = "\n".join(words)
    if "authentication error" in text or "Authorization Violation" in text:
        return "a member shows another secret: stream.cluster.secret must be the same in every node file"
    if "duplicate name" in text:
        return "two members have one name: node.id must be another in every node file"
    return ""
