"""Saboteurs of cooldowns: ends that move the wrong way, and writes that wait for the wrong people."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.errors import Unavailable
from crewlet.coordination import Cooldown, Cooldowns
from crewlet.coordination.records.stored import first_stored, put_stored
from crewlet.testing.contracts.slot_cooldowns import CooldownPromises

__all__ = ["COOLDOWN_FAULTS"]


class CooldownFault(Cooldowns):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class LastWordStands(CooldownFault):
    """Whoever reports last shortens what the others know."""

    caught_by = CooldownPromises.test_a_later_end_extends_and_an_earlier_shortens_nothing

    async def _publish(self, cooldown: Cooldown) -> None:
        await put_stored(self._store, f"credential.{cooldown.provider_key}.{cooldown.hint}", cooldown)


class FirstWordStands(CooldownFault):
    """A cooldown on record is not extended."""

    caught_by = CooldownPromises.test_a_later_end_extends_and_an_earlier_shortens_nothing

    async def _publish(self, cooldown: Cooldown) -> None:
        await first_stored(self._store, f"credential.{cooldown.provider_key}.{cooldown.hint}", cooldown)


class LooksThenWrites(CooldownFault):
    """What is looked at and what is written is not compared."""

    caught_by = CooldownPromises.test_of_several_ends_at_once_the_furthest_stands

    async def _publish(self, cooldown: Cooldown) -> None:
        if all(each.until < cooldown.until for each in await self.all()):
            await put_stored(self._store, f"credential.{cooldown.provider_key}.{cooldown.hint}", cooldown)


class CooldownsAreLengths(CooldownFault):
    """A cooldown begins when it is read."""

    caught_by = CooldownPromises.test_what_one_node_publishes_another_reads_as_the_same_instant

    async def all(self) -> list[Cooldown]:
        since = timedelta(seconds=asyncio.get_running_loop().time())
        return [replace(each, until=each.until + since) for each in await super().all()]


class OneEntryForAll(CooldownFault):
    """A key rests everywhere."""

    caught_by = CooldownPromises.test_a_key_rests_in_one_entry_alone

    async def _publish(self, cooldown: Cooldown) -> None:
        await super()._publish(replace(cooldown, provider_key="fast"))


class HangsUpToo(CooldownFault):
    """A publish ends with its caller."""

    caught_by = CooldownPromises.test_a_publish_whose_caller_hung_up_lands

    async def publish(self, cooldown: Cooldown) -> None:
        await self._publish(cooldown)


class FailsItsCaller(CooldownFault):
    """A publish raises what it met."""

    caught_by = CooldownPromises.test_what_cannot_be_published_costs_its_caller_nothing

    async def publish(self, cooldown: Cooldown) -> None:
        await put_stored(self._store, f"credential.{cooldown.provider_key}.{cooldown.hint}", cooldown)


class TheUnknownIsNothing(CooldownFault):
    """What cannot be read is no cooldown."""

    caught_by = CooldownPromises.test_what_cannot_be_read_is_no_empty_list

    async def all(self) -> list[Cooldown]:
        try:
            return await super().all()
        except Unavailable:
            return []


COOLDOWN_FAULTS: tuple[type[CooldownFault], ...] = (
    LastWordStands,
    FirstWordStands,
    LooksThenWrites,
    CooldownsAreLengths,
    OneEntryForAll,
    HangsUpToo,
    FailsItsCaller,
    TheUnknownIsNothing,
)
