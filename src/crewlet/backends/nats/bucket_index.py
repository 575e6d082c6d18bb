"""The stream's own index of a bucket's keys, as its leader holds it: what a pass is certified against (S0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.base import limits
from crewlet.base.errors import Unavailable

__all__ = ["BucketIndex", "read_index"]


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Every key on which the leader held a message, a live one or a marker.

    What it does not name was gone when the leader had come as far as ``revision``: 0, where it says nothing of them.
    """

    keys: frozenset[str]
    revision: int


async def read_index(leader: BucketLeader, patterns: Sequence[str]) -> BucketIndex:
    """The keys under the patterns. Raises ``Unavailable``, during an election too (C-023).

    Up to ``limits.LISTING_INDEX_PAGE`` keys under a pattern come in one answer. Beyond, the broker sorts its list anew
    for each page: a key removed before a page's boundary can push another across it, which is then not named (C-047).
    """
    parts = [await _read_part(leader, pattern) for pattern in patterns]
    keys = frozenset(key for part in parts for key in part.keys)
    return BucketIndex(keys, min(part.revision for part in parts))


async def _read_part(leader: BucketLeader, pattern: str) -> BucketIndex:
    prefix_length = len(leader.bucket.subject(""))
    keys: set[str] = set()
    revision, taken = 0, 0
    for page in range(limits.API_PAGES_MAX):
        info = await leader.info(subjects_filter=leader.bucket.subject(pattern), offset=taken)
        subjects = info.state.subjects or {}
        keys.update([subject[prefix_length:] for subject in subjects])
        taken += len(subjects)
        revision = 0 if page else info.state.last_seq
        if not subjects or taken >= info.total:
            return BucketIndex(frozenset(keys), revision)
    raise Unavailable(f"the bucket {leader.bucket.name}: its index has more than {limits.API_PAGES_MAX} pages")
