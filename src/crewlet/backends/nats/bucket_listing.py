"""A certified listing: one pass, what the leader's index says that it lost, and the decision what stood (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crewlet.backends.nats.bucket_index import BucketIndex, read_index
from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.backends.nats.bucket_messages import Shown, shown_of
from crewlet.backends.nats.bucket_pass import BucketPass
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once, together
from crewlet.coordination import Record

__all__ = ["Answer", "answer_of", "certified", "unsettled"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What stood, each record once.

    ``settled`` says up to which revision it speaks for a key, ``revision`` up to which for every other.
    """

    records: tuple[Record, ...]
    settled: Mapping[str, int]
    revision: int


async def certified(
    leader: BucketLeader, walk: BucketPass, patterns: Sequence[str], take_shown: Callable[[], Mapping[str, Shown]]
) -> Answer:
    """Open ``walk`` and answer with every record that was live throughout, or not at all.

    ``take_shown``, asked once at the end of the pass, says what it showed last of each key. Raises ``Unavailable``
    where any step fails or all of it takes longer than ``limits.LISTING_MAX_S``.
    """
    try:
        async with asyncio.timeout(limits.LISTING_MAX_S):
            index, is_level = await _walked_beside_the_index(leader, walk, patterns)
            shown = take_shown()
            return answer_of(shown, index, await _read_each(leader, unsettled(shown, index, is_level=is_level)))
    except TimeoutError as error:
        raise Unavailable(f"the bucket {leader.bucket.name}: not listed in {limits.LISTING_MAX_S:g} s") from error


def unsettled(shown: Mapping[str, Shown], index: BucketIndex, *, is_level: bool) -> list[str]:
    """The keys that only the leader can speak for: named by the index, and lost by the pass or shown as removed.

    All of them, where the member that served the pass was not level with the leader before it went quiet.
    """
    return [key for key in index.keys if not is_level or not isinstance(shown.get(key), Record)]


def answer_of(shown: Mapping[str, Shown], index: BucketIndex, read: Mapping[str, Shown | None]) -> Answer:
    """What stood, from what the pass showed, the index named and the leader answered for what was unsettled.

    A key that the index does not name was gone when the leader had come that far: what the pass showed of it from
    before then, be it a marker or a record from a member that is behind, is over. Raises ``Unavailable`` where
    the leader answered from before what a member has shown: then it is cut off and speaks from an old copy.
    """
    records: list[Record] = []
    settled: dict[str, int] = {}
    for key, item in shown.items():
        if key in read:
            continue
        if isinstance(item, Record) and (key in index.keys or item.revision > index.revision):
            records.append(item)
            settled[key] = item.revision
        else:
            settled[key] = max(item.revision, index.revision)
    for key, item in read.items():
        if item is None:
            continue
        seen = shown.get(key)
        if seen is not None and item.revision < seen.revision:
            raise Unavailable(f"{key!r}: the leader answers revision {item.revision}, and {seen.revision} was shown")
        settled[key] = item.revision
        if isinstance(item, Record):
            records.append(item)
    return Answer(tuple(records), settled, index.revision)


async def _walked_beside_the_index(
    leader: BucketLeader, walk: BucketPass, patterns: Sequence[str]
) -> tuple[BucketIndex, bool]:
    index: asyncio.Future[BucketIndex] = asyncio.get_running_loop().create_future()
    was_level: list[bool] = []

    async def read() -> None:
        index.set_result(await read_index(leader, patterns))

    async def walked() -> None:
        await walk.open()
        was_level.append(await walk.wait_end(index))

    await together(read(), walked())
    return index.result(), was_level[0]


async def _read_each(leader: BucketLeader, keys: Sequence[str]) -> dict[str, Shown | None]:
    read: dict[str, Shown | None] = {}

    async def read_one(key: str) -> None:
        message = await leader.last(key)
        read[key] = None if message is None else shown_of(key, message)

    await each_at_once(keys, read_one, at_once=limits.LISTING_READS_AT_ONCE)
    return read
