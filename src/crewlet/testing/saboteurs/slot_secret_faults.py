"""Saboteurs of sealed secrets: sealed texts that show, sets that are lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import (
    RecordStore,
    Revision,
    SealedSecret,
    SealedSecrets,
    SecretEntry,
    Stored,
    key_token,
)
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_secrets import SecretPromises

__all__ = ["SECRET_FAULTS"]


class SecretFault(SealedSecrets):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class KeptByOneNode(SecretFault):
    """What was read once is not asked for again."""

    caught_by = SecretPromises.test_a_rotation_is_read_everywhere

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self._kept: dict[str, Stored[SealedSecret] | None] = {}

    async def get(self, name: str) -> Stored[SealedSecret] | None:
        if name not in self._kept:
            self._kept[name] = await super().get(name)
        return self._kept[name]


class TheLastSetCounts(SecretFault):
    """A secret is set over whatever stands."""

    caught_by = SecretPromises.test_a_secret_is_set_over_what_was_read_alone

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        return (await put_stored(self._store, f"secret.{secret.name}", secret)).revision


class NobodyIsTold(SecretFault):
    """Who lost a race is told that it set the secret."""

    caught_by = SecretPromises.test_of_two_operators_who_set_at_once_one_is_told

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        try:
            return await super().set(secret, expected=expected)
        except Conflict:
            return Revision(0)


class ARepeatIsAConflict(SecretFault):
    """Who set a secret and never heard of it is in its own way."""

    caught_by = SecretPromises.test_a_set_whose_answer_was_lost_can_be_repeated

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        if expected is None and await self.get(secret.name) is not None:
            raise Conflict(secret.name, expected=0)
        return await super().set(secret, expected=expected)


class UnsetsWhateverStands(SecretFault):
    """A rotation is unset with what it replaced."""

    caught_by = SecretPromises.test_an_unset_does_not_take_what_was_rotated_meanwhile

    async def unset(self, name: str, *, expected: Revision) -> None:
        read = await self.get(name)
        if read is not None:
            await super().unset(name, expected=read.revision)


class UnsetIsForLater(SecretFault):
    """What is unset stays, for an age to take."""

    caught_by = SecretPromises.test_a_secret_goes_when_it_is_unset_and_no_clock_takes_it

    async def unset(self, name: str, *, expected: Revision) -> None:
        """Nothing."""


class ListsWhatIsSealed(SecretFault):
    """A list of names that is not one."""

    caught_by = SecretPromises.test_what_is_listed_is_names_and_never_a_sealed_text

    async def entries(self) -> list[SecretEntry]:
        sealed = {each.record.name: each.record.sealed for each in await self.every()}
        return [dataclasses.replace(entry, source=sealed[entry.name]) for entry in await super().entries()]


class PrintsWhatIsSealed(SecretFault):
    """What is read is printed with all it holds."""

    caught_by = SecretPromises.test_whoever_prints_a_secret_prints_no_sealed_text

    async def get(self, name: str) -> Stored[SealedSecret] | None:
        read = await super().get(name)
        if read is None:
            return None
        secret = replace(read.record, key_id=read.record.sealed)
        return Stored(read.key, secret, read.revision, read.written_at)


class SealsItsOwnWay(SecretFault):
    """What is stored is not what was sealed."""

    caught_by = SecretPromises.test_what_one_node_seals_every_node_reads_still_sealed

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        return await super().set(replace(secret, sealed=secret.sealed.upper()), expected=expected)  # pyright: ignore[reportArgumentType]


class NewSecretFieldsAreLost(SecretFault):
    """A set writes what this build knows."""

    caught_by = SecretPromises.test_what_a_newer_build_wrote_is_read_and_written_back

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        return await super().set(replace(secret, unknown={}), expected=expected)


class AnyNameWillDo(SecretFault):
    """What no variable can be called is set all the same."""

    caught_by = SecretPromises.test_what_is_no_variables_name_is_refused

    async def set(self, secret: SealedSecret, *, expected: Revision | None) -> Revision:
        return (await put_stored(self._store, f"secret.{key_token(secret.name)}", secret)).revision


class TheUnknownIsUnset(SecretFault):
    """A secret that cannot be read is not set."""

    caught_by = SecretPromises.test_a_secret_that_cannot_be_read_is_not_unset_and_the_error_shows_none_of_it

    async def get(self, name: str) -> Stored[SealedSecret] | None:
        try:
            return await super().get(name)
        except Unavailable:
            return None


SECRET_FAULTS: tuple[type[SecretFault], ...] = (
    KeptByOneNode,
    TheLastSetCounts,
    NobodyIsTold,
    ARepeatIsAConflict,
    UnsetsWhateverStands,
    UnsetIsForLater,
    ListsWhatIsSealed,
    PrintsWhatIsSealed,
    SealsItsOwnWay,
    NewSecretFieldsAreLost,
    AnyNameWillDo,
    TheUnknownIsUnset,
)
