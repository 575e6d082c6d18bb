"""Saboteurs of what belongs to the company: its surfaces, its file store and its asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.errors import StartRefused, Unavailable
from crewlet.coordination import (
    Channel,
    Channels,
    CollectorReport,
    Integrations,
    IntegrationStatus,
    ObjectBackend,
    Objects,
    RecordStore,
    Revision,
    Stored,
)
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_channels import ChannelPromises
from crewlet.testing.contracts.slot_integrations import IntegrationPromises
from crewlet.testing.contracts.slot_objects import ObjectPromises

__all__ = ["CHANNEL_FAULTS", "INTEGRATION_FAULTS", "OBJECT_FAULTS"]


class IntegrationFault(Integrations):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class EachNodeHasItsOwnAnswer(IntegrationFault):
    """What a pass found is told by the node that ran it."""

    caught_by = IntegrationPromises.test_what_a_pass_found_is_the_same_from_every_node

    async def record(self, found: IntegrationStatus) -> IntegrationStatus:
        await super().record(replace(found, findings=(), address=""))
        return found


class RowsStayForEver(IntegrationFault):
    """What is forgotten is told all the same."""

    caught_by = IntegrationPromises.test_a_row_goes_when_it_is_forgotten_and_no_clock_takes_it

    async def forget(self, surface: str, *, expected: Revision) -> None:
        """Nothing."""


class APassReplacesTheRow(IntegrationFault):
    """A request that came while a pass ran is lost."""

    caught_by = IntegrationPromises.test_a_pass_that_began_before_a_request_to_disconnect_does_not_lose_it

    async def record(self, found: IntegrationStatus) -> IntegrationStatus:
        return (await put_stored(self._store, f"surface.{found.surface}", found)).record


class TheLastAskStands(IntegrationFault):
    """Each request replaces the one before."""

    caught_by = IntegrationPromises.test_the_first_request_to_disconnect_stands

    async def ask_disconnect(self, surface: str, *, at: datetime, by: str) -> IntegrationStatus | None:
        read = await self.get(surface)
        if read is None:
            return None
        asked = replace(read.record, disconnect_asked_at=at, disconnect_asked_by=by)
        return (await put_stored(self._store, f"surface.{surface}", asked)).record


class EveryPassWrites(IntegrationFault):
    """What stands is written again."""

    caught_by = IntegrationPromises.test_a_pass_that_found_what_stood_writes_nothing

    async def record(self, found: IntegrationStatus) -> IntegrationStatus:
        await super().record(replace(found, attempts=found.attempts + 1))
        return await super().record(found)


class ForgetsWhateverStands(IntegrationFault):
    """A row is forgotten that a pass has just written."""

    caught_by = IntegrationPromises.test_a_row_that_changed_since_it_was_read_is_not_forgotten

    async def forget(self, surface: str, *, expected: Revision) -> None:
        read = await self.get(surface)
        if read is not None:
            await super().forget(surface, expected=read.revision)


class FindingsAreThisBuilds(IntegrationFault):
    """What another build found is cut down to what this one knows."""

    caught_by = IntegrationPromises.test_what_a_newer_build_wrote_stays_in_a_row_and_in_its_findings

    async def ask_disconnect(self, surface: str, *, at: datetime, by: str) -> IntegrationStatus | None:
        asked = await super().ask_disconnect(surface, at=at, by=by)
        if asked is None:
            return None
        known = tuple(replace(finding, unknown={}) for finding in asked.findings)
        return (await put_stored(self._store, f"surface.{surface}", replace(asked, findings=known))).record


class TheUnknownIsNeverSetUp(IntegrationFault):
    """A status that cannot be read was never written."""

    caught_by = IntegrationPromises.test_a_status_that_cannot_be_read_is_not_never_set_up

    async def get(self, surface: str) -> Stored[IntegrationStatus] | None:
        try:
            return await super().get(surface)
        except Unavailable:
            return None


class ObjectFault(Objects):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class TheLastStoreCounts(ObjectFault):
    """The record is overwritten by each node that boots."""

    caught_by = ObjectPromises.test_a_node_with_another_store_than_the_first_is_refused_and_both_are_named

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        return (await put_stored(self._store, "backend", backend)).record


class EveryStoreWillDo(ObjectFault):
    """Who has another store starts all the same."""

    caught_by = ObjectPromises.test_of_two_first_nodes_with_different_stores_one_is_refused

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        try:
            return await super().agree(backend)
        except StartRefused:
            return backend


class LooksAndThenNames(ObjectFault):
    """Two first nodes both name the store."""

    caught_by = ObjectPromises.test_of_two_first_nodes_with_different_stores_one_is_refused

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        if await self.backend() is None:
            return (await put_stored(self._store, "backend", backend)).record
        return await super().agree(backend)


class WhoNamedItIsLost(ObjectFault):
    """Each node takes itself for the first."""

    caught_by = ObjectPromises.test_a_node_with_the_same_store_reads_who_named_it

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        await super().agree(backend)
        return backend


class AStoreIsNamedOnce(ObjectFault):
    """A first node that asks again is refused its own store."""

    caught_by = ObjectPromises.test_a_first_node_whose_answer_was_lost_is_not_refused

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        if await self.backend() is not None:
            raise StartRefused("named already")
        return await super().agree(backend)


class OneReportForAll(ObjectFault):
    """An audit replaces what a collection found."""

    caught_by = ObjectPromises.test_every_node_reads_the_latest_report_of_each_pass

    async def reports(self) -> list[CollectorReport]:
        return (await super().reports())[:1]


class TheLastReportCounts(ObjectFault):
    """Whoever writes last has the latest report."""

    caught_by = ObjectPromises.test_a_report_that_comes_late_does_not_replace_a_later_one

    async def report(self, report: CollectorReport) -> CollectorReport:
        return (await put_stored(self._store, f"collector.{report.kind}", report)).record


class NewReportFieldsAreLost(ObjectFault):
    """A report has what this build knows."""

    caught_by = ObjectPromises.test_what_a_newer_build_wrote_stays

    async def report(self, report: CollectorReport) -> CollectorReport:
        key = f"collector.{report.kind}"
        standing = await self._store.get(key)
        if standing is not None:
            await self._store.delete(key, expected=standing.revision)
        return await super().report(report)


class TheUnknownIsAgreed(ObjectFault):
    """Who cannot ask starts on its own word."""

    caught_by = ObjectPromises.test_a_store_that_cannot_be_asked_agrees_to_nothing

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        try:
            return await super().agree(backend)
        except Unavailable:
            return backend


class ChannelFault(Channels):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class AsksStayWithTheirOpener(ChannelFault):
    """Who opened a channel knows it as it was opened."""

    caught_by = ChannelPromises.test_the_answering_seats_node_reads_what_the_asking_ones_wrote

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self._opened: dict[str, Channel] = {}

    async def open(self, channel: Channel) -> Channel:
        self._opened[channel.channel_id] = await super().open(channel)
        return channel

    async def get(self, channel_id: str) -> Channel | None:
        return self._opened.get(channel_id) or await super().get(channel_id)


class ClosesWhatWasIdle(ChannelFault):
    """What is answered since it was listed is closed all the same."""

    caught_by = ChannelPromises.test_an_ask_that_is_answered_meanwhile_is_not_closed_as_idle

    async def close_idle(self, channel_id: str, *, since: datetime, at: datetime) -> Channel | None:
        return await self.close(channel_id, at=at)


class AnsweredIsOver(ChannelFault):
    """An answered ask that was never closed is nobody's."""

    caught_by = ChannelPromises.test_what_nobody_touched_for_long_enough_is_idle_answered_or_not

    async def idle(self, *, since: datetime) -> list[Stored[Channel]]:
        return [each for each in await super().idle(since=since) if each.record.answered_at is None]


class ClosesForSomebody(ChannelFault):
    """A swept close is put down to a participant."""

    caught_by = ChannelPromises.test_an_idle_ask_is_closed_for_nobody

    async def close_idle(self, channel_id: str, *, since: datetime, at: datetime) -> Channel | None:
        idle = await super().close_idle(channel_id, since=since, at=at)
        return None if idle is None else replace(idle, closed_by=idle.requester)


class OpenOnesAreOldToo(ChannelFault):
    """What was opened long ago is removed, over or not."""

    caught_by = ChannelPromises.test_what_was_closed_long_ago_is_found_and_removed

    async def closed(self, *, before: datetime) -> list[Stored[Channel]]:
        return [each for each in await self._every() if each.record.opened_at < before]


class RemovesWhateverStands(ChannelFault):
    """A channel is removed that moved on since it was read."""

    caught_by = ChannelPromises.test_a_channel_is_removed_as_it_was_read_alone

    async def remove(self, channel_id: str, *, expected: Revision) -> None:
        record = await self._store.get(f"channel.{channel_id}")
        if record is not None:
            await super().remove(channel_id, expected=record.revision)


class TheUnknownIsNoAsk(ChannelFault):
    """What cannot be listed is not there."""

    caught_by = ChannelPromises.test_asks_that_cannot_be_listed_are_not_none

    async def idle(self, *, since: datetime) -> list[Stored[Channel]]:
        try:
            return await super().idle(since=since)
        except Unavailable:
            return []


INTEGRATION_FAULTS: tuple[type[IntegrationFault], ...] = (
    EachNodeHasItsOwnAnswer,
    RowsStayForEver,
    APassReplacesTheRow,
    TheLastAskStands,
    EveryPassWrites,
    ForgetsWhateverStands,
    FindingsAreThisBuilds,
    TheUnknownIsNeverSetUp,
)
OBJECT_FAULTS: tuple[type[ObjectFault], ...] = (
    TheLastStoreCounts,
    EveryStoreWillDo,
    LooksAndThenNames,
    WhoNamedItIsLost,
    AStoreIsNamedOnce,
    OneReportForAll,
    TheLastReportCounts,
    NewReportFieldsAreLost,
    TheUnknownIsAgreed,
)
CHANNEL_FAULTS: tuple[type[ChannelFault], ...] = (
    AsksStayWithTheirOpener,
    ClosesWhatWasIdle,
    AnsweredIsOver,
    ClosesForSomebody,
    OpenOnesAreOldToo,
    RemovesWhateverStands,
    TheUnknownIsNoAsk,
)
