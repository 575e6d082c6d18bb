"""Promises about the status of outside surfaces: one answer from every node, and no request to disconnect is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import INTEGRATIONS, Finding, IntegrationPhase, Integrations, IntegrationStatus, Revision
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer

__all__ = ["IntegrationPromises"]

FOUND = IntegrationStatus(
    surface="github",
    phase=IntegrationPhase.AWAITING_ADMIN,
    actor="admin",
    attempts=1,
    last_attempt_at=AT,
    findings=(Finding(kind="approval_required", subject="cto"),),
    address="https://crewlet.example",
)
READY = replace(FOUND, phase=IntegrationPhase.READY, actor="none", findings=(), settled_at=AT)


class IntegrationPromises(Contract):
    """What is true of a surface's row from its first pass until its block leaves the company document."""

    kind: ClassVar[type[Integrations]] = Integrations

    @pytest.mark.spec("C-080")
    async def test_what_a_pass_found_is_the_same_from_every_node(self, records: RecordHarness) -> None:
        here, there = (self.kind(await records.client(INTEGRATIONS)), self.kind(await records.client(INTEGRATIONS)))
        await here.record(FOUND)
        await here.ask_disconnect("github", at=AT, by="ada")
        await records.disturb()

        read = await there.get("github")

        assert read is not None
        assert read.record == replace(FOUND, disconnect_asked_at=AT, disconnect_asked_by="ada")
        assert [each.record for each in await there.every()] == [read.record]

    async def test_a_pass_that_began_before_a_request_to_disconnect_does_not_lose_it(
        self, records: RecordHarness
    ) -> None:
        here, there = (self.kind(await records.client(INTEGRATIONS)), self.kind(await records.client(INTEGRATIONS)))
        await here.record(FOUND)
        await there.ask_disconnect("github", at=AT, by="ada")

        stands = await here.record(READY)

        assert (stands.phase, stands.disconnect_asked_by) == (IntegrationPhase.READY, "ada")

    async def test_the_first_request_to_disconnect_stands(self, records: RecordHarness) -> None:
        surfaces = self.kind(await records.client(INTEGRATIONS))
        await surfaces.record(FOUND)
        first = await surfaces.ask_disconnect("github", at=AT, by="ada")

        assert await surfaces.ask_disconnect("github", at=AT + timedelta(hours=1), by="bob") == first
        assert await surfaces.ask_disconnect("gitlab", at=AT, by="ada") is None

    async def test_a_pass_that_found_what_stood_writes_nothing(self, records: RecordHarness) -> None:
        store = await records.client(INTEGRATIONS)
        surfaces = self.kind(store)
        await surfaces.record(FOUND)
        before = await store.last_revision()

        await surfaces.record(FOUND)

        assert await store.last_revision() == before

    @pytest.mark.spec("C-138")
    async def test_a_row_goes_when_it_is_forgotten_and_no_clock_takes_it(self, records: RecordHarness) -> None:
        store = await records.client(INTEGRATIONS)
        surfaces = self.kind(store)
        await surfaces.record(FOUND)
        await records.advance(records.quiet_s)
        read = await surfaces.get("github")
        assert store.age_s is None
        assert read is not None

        await surfaces.forget("github", expected=read.revision)

        assert await surfaces.get("github") is None
        assert await surfaces.every() == []
        await surfaces.forget("github", expected=read.revision)

    async def test_a_row_that_changed_since_it_was_read_is_not_forgotten(self, records: RecordHarness) -> None:
        surfaces = self.kind(await records.client(INTEGRATIONS))
        await surfaces.record(FOUND)
        read = await surfaces.get("github")
        assert read is not None
        await surfaces.record(READY)

        with pytest.raises(Conflict):
            await surfaces.forget("github", expected=read.revision)

        assert await surfaces.get("github") is not None

    async def test_what_a_newer_build_wrote_stays_in_a_row_and_in_its_findings(self, records: RecordHarness) -> None:
        store = await records.client(INTEGRATIONS)
        surfaces = self.kind(store)
        await surfaces.record(FOUND)
        newer = [{"kind": "approval_required", "subject": "cto", "detail": "", "action_url": "", "severity": 3}]
        await add_fields(store, "surface.github", mood="calm", findings=newer)

        await surfaces.ask_disconnect("github", at=AT, by="ada")
        asked = await fields(store, "surface.github")
        await surfaces.record(READY)

        assert (asked["mood"], asked["findings"]) == ("calm", newer)
        assert (await fields(store, "surface.github"))["mood"] == "calm"

    async def test_a_status_that_cannot_be_read_is_not_never_set_up(self, records: RecordHarness) -> None:
        store = await records.client(INTEGRATIONS)
        surfaces = self.kind(store)
        await surfaces.record(FOUND)

        await has_no_answer(
            records,
            store,
            lambda: surfaces.get("github"),
            surfaces.every,
            lambda: surfaces.record(READY),
            lambda: surfaces.ask_disconnect("github", at=AT, by="ada"),
            lambda: surfaces.forget("github", expected=Revision(1)),
        )
        await damage(store, "surface.github")

        for call in (surfaces.get("github"), surfaces.every(), surfaces.record(READY)):
            with pytest.raises(Unavailable):
                await call
