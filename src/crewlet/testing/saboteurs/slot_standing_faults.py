"""Saboteurs of what stands until it is changed: the pointer, the nodes' statuses, and who follows what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import (
    ActiveConfig,
    ConfigPointer,
    ConfigPointers,
    Follow,
    Follows,
    NodeStatus,
    NodeStatuses,
    Revision,
)
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.stored import first_stored, list_stored, put_stored
from crewlet.testing.contracts.slot_config import ConfigPointerPromises
from crewlet.testing.contracts.slot_follows import FollowPromises
from crewlet.testing.contracts.slot_status import NodeStatusPromises

__all__ = ["CONFIG_FAULTS", "FOLLOW_FAULTS", "STATUS_FAULTS"]

_KEY = "company.activation"


class ConfigFault(ConfigPointers):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class TheLastActivationStands(ConfigFault):
    """What its mover saw does not matter."""

    caught_by = ConfigPointerPromises.test_an_activation_from_a_past_epoch_is_refused_naming_the_current

    async def activate(self, wanted: ConfigPointer, *, expected: Revision) -> ActiveConfig:
        put = await put_stored(self._store, _KEY, wanted)
        return ActiveConfig(put.record, put.revision)


class EveryMoverWins(ConfigFault):
    """Of several that saw one epoch, each moves the pointer."""

    caught_by = ConfigPointerPromises.test_of_several_activations_from_one_epoch_one_stands

    async def activate(self, wanted: ConfigPointer, *, expected: Revision) -> ActiveConfig:
        current = await self.current()
        if current is not None and current.epoch != expected:
            raise Conflict(_KEY, expected=expected, current=current.epoch)
        put = await put_stored(self._store, _KEY, wanted)
        return ActiveConfig(put.record, put.revision)


class TheSameRevisionIsNoActivation(ConfigFault):
    """A revision that is current is not activated again."""

    caught_by = ConfigPointerPromises.test_the_same_revision_activated_again_is_another_epoch

    async def activate(self, wanted: ConfigPointer, *, expected: Revision) -> ActiveConfig:
        current = await self.current()
        if current is not None and current.pointer.revision_id == wanted.revision_id:
            return current
        return await super().activate(wanted, expected=expected)


class DatesByItsOwnClock(ConfigFault):
    """An activation is dated as its node says, and no answer of its own is known again."""

    caught_by = ConfigPointerPromises.test_an_activation_is_dated_after_the_one_before_it

    async def activate(self, wanted: ConfigPointer, *, expected: Revision) -> ActiveConfig:
        value = encode_record(wanted)
        if expected == 0:
            return ActiveConfig(wanted, (await self._store.create(_KEY, value)).revision)
        return ActiveConfig(wanted, (await self._store.update(_KEY, value, expected=expected)).revision)


class ForgetsItsActivation(DatesByItsOwnClock):
    """Who lost the answer is told that somebody else was first."""

    caught_by = ConfigPointerPromises.test_who_lost_the_answer_finds_its_activation_under_its_epoch


class PublishesOver(ConfigFault):
    """A node that boots makes its own revision current."""

    caught_by = ConfigPointerPromises.test_a_revision_is_published_where_there_is_none

    async def publish(self, wanted: ConfigPointer) -> ActiveConfig:
        put = await put_stored(self._store, _KEY, wanted)
        return ActiveConfig(put.record, put.revision)


class TheUnknownIsNone(ConfigFault):
    """What cannot be read is no pointer."""

    caught_by = ConfigPointerPromises.test_an_unreachable_store_is_no_company_without_a_pointer

    async def current(self) -> ActiveConfig | None:
        try:
            return await super().current()
        except Unavailable:
            return None


class StatusFault(NodeStatuses):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class TheFirstReportStays(StatusFault):
    """A node's later reports are not written."""

    caught_by = NodeStatusPromises.test_a_report_takes_the_place_of_the_nodes_last

    async def report(self, status: NodeStatus) -> None:
        await first_stored(self._store, f"node.{status.node}", status)


class TheUnknownIsNobody(StatusFault):
    """A fleet that cannot be read has no nodes."""

    caught_by = NodeStatusPromises.test_an_unreachable_store_is_no_fleet_without_nodes

    async def all(self) -> list[NodeStatus]:
        try:
            return await super().all()
        except Unavailable:
            return []


class FollowFault(Follows):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class FollowsOnce(FollowFault):
    """A follow on record is not written again."""

    caught_by = FollowPromises.test_each_reason_to_follow_writes_the_record_anew

    async def follow(self, backend: str, seat: str, channel: str, thread: str, *, reason: str) -> bool:
        if await self.is_following(backend, seat, channel, thread):
            return True
        return await super().follow(backend, seat, channel, thread, reason=reason)


class FollowsTheChannel(FollowFault):
    """Who follows a thread follows its channel."""

    caught_by = FollowPromises.test_a_thread_is_followed_by_its_own_followers_alone

    async def followers(self, backend: str, channel: str, thread: str) -> frozenset[str]:
        follows = await list_stored(self._store, Follow, f"{backend}.{channel}.*.*")
        return frozenset(each.record.seat for each in follows)


class NoThreadIsAnyThread(FollowFault):
    """What is said outside any thread is said in all of them."""

    caught_by = FollowPromises.test_a_thread_is_followed_by_its_own_followers_alone

    async def followers(self, backend: str, channel: str, thread: str) -> frozenset[str]:
        if thread:
            return await super().followers(backend, channel, thread)
        follows = await list_stored(self._store, Follow, f"{backend}.{channel}.*.*")
        return frozenset(each.record.seat for each in follows)


class TheUnknownIsNoFollow(FollowFault):
    """What cannot be read follows nothing."""

    caught_by = FollowPromises.test_an_unreachable_store_says_of_nobody_that_it_does_not_follow

    async def is_following(self, backend: str, seat: str, channel: str, thread: str) -> bool:
        try:
            return await super().is_following(backend, seat, channel, thread)
        except Unavailable:
            return False


CONFIG_FAULTS: tuple[type[ConfigFault], ...] = (
    TheLastActivationStands,
    EveryMoverWins,
    TheSameRevisionIsNoActivation,
    DatesByItsOwnClock,
    ForgetsItsActivation,
    PublishesOver,
    TheUnknownIsNone,
)
STATUS_FAULTS: tuple[type[StatusFault], ...] = (TheFirstReportStays, TheUnknownIsNobody)
FOLLOW_FAULTS: tuple[type[FollowFault], ...] = (
    FollowsOnce,
    FollowsTheChannel,
    NoThreadIsAnyThread,
    TheUnknownIsNoFollow,
)
