"""The stream's own index of a bucket's keys, as its leader holds it: what a pass is certified against (S0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once

__all__ = ["BucketIndex", "read_index"]


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Every key on which the leader held a message, a live one or a marker.

    What it does not name was gone when the leader had come as far as ``revision``: 0, where it says nothing of them.
    ``newest`` is the newest revision that a member with a copy of its own has to show to be level with the leader: 0
    where there are no such members, or nothing to show.
    """

    keys: frozenset[str]
    revision: int
    newest: int = 0


async def read_index(leader: BucketLeader, patterns: Sequence[str]) -> BucketIndex:
    """The keys under the patterns. Raises ``Unavailable``, during an election too (C-023).

    Up to ``limits.LISTING_INDEX_PAGE`` keys under a pattern come in one answer. Beyond, the broker sorts its list anew
    for each page: a key removed before a page's boundary can push another across it, which is then not named (C-047).
    """
    parts: list[BucketIndex] = []

    async def read(pattern: str) -> None:
        parts.append(await _read_part(leader, pattern))

    await each_at_once(patterns, read, at_once=len(patterns))
    return BucketIndex(
        frozenset(key for part in parts for key in part.keys),
        min(part.revision for part in parts),
        max(part.newest for part in parts),
    )


async def _read_part(leader: BucketLeader, pattern: str) -> BucketIndex:
    prefix_length = len(leader.bucket.subject(""))
    keys: set[str] = set()
    taken = 0
    for page in range(limits.API_PAGES_MAX):
        info = await leader.info(subjects_filter=leader.bucket.subject(pattern), offset=taken)
        subjects = info.state.subjects or {}
        keys.update([subject[prefix_length:] for subject in subjects])
        taken += len(subjects)
        if not subjects or taken >= info.total:
            revision = 0 if page else info.state.last_seq
            newest = await leader.newest_under(pattern) if info.config.num_replicas > 1 else 0
            return BucketIndex(frozenset(keys), revision, newest)
    raise Unavailable(f"the bucket {leader.bucket.name}: its index has more than {limits.API_PAGES_MAX} pages")
