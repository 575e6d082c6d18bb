"""Promises about sealed secrets: they are the fleet's, they stay sealed, and they go when somebody unsets them."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import SECRETS, Revision, SealedSecret, SealedSecrets, SealedText
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["SecretPromises"]

SEALED = "enc:v1:k1:c2VhbGVkIHdvcmRz"
TOKEN = SealedSecret(
    name="SLACK_TOKEN", sealed=SealedText(SEALED), key_id="k1", updated_at=AT, updated_by="ada", source="cli"
)
ROTATED = replace(TOKEN, sealed=SealedText("enc:v1:k2:cm90YXRlZA=="), key_id="k2")
KEY = "secret.SLACK_TOKEN"


class SecretPromises(Contract):
    """What is true of one sealed text for each name."""

    kind: ClassVar[type[SealedSecrets]] = SealedSecrets

    @pytest.mark.spec("C-078")
    async def test_what_one_node_seals_every_node_reads_still_sealed(self, records: RecordHarness) -> None:
        store = await records.client(SECRETS)
        here, there = self.kind(store), self.kind(await records.client(SECRETS))

        revision = await here.set(TOKEN, expected=None)
        await records.disturb()

        read = await there.get("SLACK_TOKEN")
        assert read is not None
        assert (read.record, read.revision) == (TOKEN, revision)
        assert (await fields(store, KEY))["sealed"] == SEALED

    async def test_a_rotation_is_read_everywhere(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(SECRETS)), self.kind(await records.client(SECRETS))
        first = await here.set(TOKEN, expected=None)
        await there.get("SLACK_TOKEN")

        await here.set(ROTATED, expected=first)

        read = await there.get("SLACK_TOKEN")
        assert read is not None
        assert read.record == ROTATED

    async def test_a_secret_is_set_over_what_was_read_alone(self, records: RecordHarness) -> None:
        secrets = self.kind(await records.client(SECRETS))
        first = await secrets.set(TOKEN, expected=None)
        second = await secrets.set(ROTATED, expected=first)

        for expected in (None, first):
            with pytest.raises(Conflict):
                await secrets.set(TOKEN, expected=expected)

        read = await secrets.get("SLACK_TOKEN")
        assert read is not None
        assert (read.record, read.revision) == (ROTATED, second)

    async def test_of_two_operators_who_set_at_once_one_is_told(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(SECRETS)), self.kind(await records.client(SECRETS))

        ended = await asyncio.gather(
            here.set(TOKEN, expected=None), there.set(ROTATED, expected=None), return_exceptions=True
        )

        assert sum(isinstance(each, Conflict) for each in ended) == 1

    async def test_a_set_whose_answer_was_lost_can_be_repeated(self, records: RecordHarness) -> None:
        store = await records.client(SECRETS)
        secrets = self.kind(store)
        records.cut_after_write(store)
        await goes_unheard(secrets.set(TOKEN, expected=None))
        await records.mend(store)

        revision = await secrets.set(TOKEN, expected=None)

        read = await secrets.get("SLACK_TOKEN")
        assert read is not None
        assert (read.record, read.revision) == (TOKEN, revision)

    @pytest.mark.spec("C-137")
    async def test_a_secret_goes_when_it_is_unset_and_no_clock_takes_it(self, records: RecordHarness) -> None:
        store = await records.client(SECRETS)
        secrets = self.kind(store)
        revision = await secrets.set(TOKEN, expected=None)
        await records.advance(records.quiet_s)
        assert store.age_s is None
        assert await secrets.get("SLACK_TOKEN") is not None

        await secrets.unset("SLACK_TOKEN", expected=revision)

        assert await secrets.get("SLACK_TOKEN") is None
        assert await secrets.entries() == []
        await secrets.unset("SLACK_TOKEN", expected=revision)

    async def test_an_unset_does_not_take_what_was_rotated_meanwhile(self, records: RecordHarness) -> None:
        secrets = self.kind(await records.client(SECRETS))
        first = await secrets.set(TOKEN, expected=None)
        await secrets.set(ROTATED, expected=first)

        with pytest.raises(Conflict):
            await secrets.unset("SLACK_TOKEN", expected=first)

        assert await secrets.get("SLACK_TOKEN") is not None

    async def test_what_is_listed_is_names_and_never_a_sealed_text(self, records: RecordHarness) -> None:
        secrets = self.kind(await records.client(SECRETS))
        await secrets.set(replace(TOKEN, name="Z_" + "x" * 200), expected=None)
        revision = await secrets.set(TOKEN, expected=None)
        await records.disturb()

        entries = await secrets.entries()

        assert [entry.name for entry in entries] == ["SLACK_TOKEN", "Z_" + "x" * 200]
        assert (entries[0].revision, entries[0].key_id, entries[0].updated_by) == (revision, "k1", "ada")
        assert SEALED not in repr(entries)

    async def test_whoever_prints_a_secret_prints_no_sealed_text(self, records: RecordHarness) -> None:
        secrets = self.kind(await records.client(SECRETS))
        await secrets.set(TOKEN, expected=None)

        read = await secrets.get("SLACK_TOKEN")

        assert read is not None
        shown = [repr(read), str(read), repr(read.record), f"{read.record}", repr(read.record.__rich_repr__())]
        assert [text for text in shown if SEALED in text or "SLACK_TOKEN" not in text] == []

    async def test_what_is_no_variables_name_is_refused(self, records: RecordHarness) -> None:
        secrets = self.kind(await records.client(SECRETS))

        for name in ("", "1X", "A B", "A-B", "ä", "A.B", "A\n"):
            with pytest.raises(ValueError, match="name of a variable"):
                await secrets.set(replace(TOKEN, name=name), expected=None)

    async def test_what_a_newer_build_wrote_is_read_and_written_back(self, records: RecordHarness) -> None:
        store = await records.client(SECRETS)
        secrets = self.kind(store)
        await secrets.set(TOKEN, expected=None)
        await add_fields(store, KEY, expires_at="2031")
        read = await secrets.get("SLACK_TOKEN")
        assert read is not None

        await secrets.set(replace(read.record, key_id="k2"), expected=read.revision)

        assert (await fields(store, KEY))["expires_at"] == "2031"

    async def test_a_secret_that_cannot_be_read_is_not_unset_and_the_error_shows_none_of_it(
        self, records: RecordHarness
    ) -> None:
        store = await records.client(SECRETS)
        secrets = self.kind(store)
        await secrets.set(TOKEN, expected=None)

        await has_no_answer(
            records,
            store,
            lambda: secrets.get("SLACK_TOKEN"),
            lambda: secrets.set(ROTATED, expected=None),
            lambda: secrets.unset("SLACK_TOKEN", expected=Revision(1)),
            secrets.entries,
            secrets.every,
        )
        await add_fields(store, KEY, key_id={"sealed": SEALED})
        for call in (secrets.get("SLACK_TOKEN"), secrets.entries()):
            with pytest.raises(Unavailable) as caught:
                await call
            assert SEALED not in str(caught.value)
        await damage(store, KEY)
        with pytest.raises(Unavailable):
            await secrets.every()
