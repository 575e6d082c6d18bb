"""The shared records as a person reads them."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.coordination.slots import BUDGETS, LEDGER, MAILBOXES, SECRETS, Slot
from crewlet.node.face import NoSuchSlot
from crewlet.node.shared_records import StoredRecords
from crewlet.testing import VirtualClock


class Company:
    """A few buckets and what is read of them."""

    def __init__(self) -> None:
        self.buckets = {slot.name: MemoryBucket(slot, VirtualClock()) for slot in (BUDGETS, LEDGER, MAILBOXES, SECRETS)}
        self.records = StoredRecords(
            {name: MemoryRecordStore(bucket) for name, bucket in self.buckets.items()}, {"ledger": "a note"}
        )

    async def write(self, slot: Slot, key: str, value: bytes) -> None:
        await MemoryRecordStore(self.buckets[slot.name]).create(key, value)


@pytest.fixture
async def company() -> Company:
    return Company()


async def test_the_slots_are_named_with_the_age_in_force(company: Company) -> None:
    slots = {slot.name: slot for slot in company.records.slots()}

    assert [*slots] == ["ledger", "budgets", "secrets", "mailboxes"]
    assert (slots["ledger"].age_s, slots["ledger"].note) == (7 * 24 * 3600.0, "a note")
    assert slots["secrets"].age_s is None


async def test_every_class_of_a_slot_is_listed_by_key(company: Company) -> None:
    for key in ("agent.ceo", "org", "agent.cto"):
        await company.write(BUDGETS, key, b'{"day": 1}')

    page = await company.records.page("budgets", limit=10)

    assert [(record.key, record.value) for record in page.records] == [
        ("agent.ceo", {"day": 1}),
        ("agent.cto", {"day": 1}),
        ("org", {"day": 1}),
    ]
    assert page.next is None


async def test_pages_follow_one_another(company: Company) -> None:
    for handle in "edcba":
        await company.write(MAILBOXES, f"seat.{handle}", b"{}")

    first = await company.records.page("mailboxes", "seat", limit=2)
    assert first.next is not None
    second = await company.records.page("mailboxes", "seat", after=first.next, limit=2)
    assert second.next is not None
    third = await company.records.page("mailboxes", "seat", after=second.next, limit=2)

    keys = [[record.key for record in page.records] for page in (first, second, third)]
    assert keys == [["seat.a", "seat.b"], ["seat.c", "seat.d"], ["seat.e"]]
    assert third.next is None


async def test_a_slot_of_open_classes_asks_for_one(company: Company) -> None:
    await company.write(LEDGER, "ceo.e1", b"{}")

    with pytest.raises(ValueError, match="name one"):
        await company.records.page("ledger", limit=10)

    assert [each.key for each in (await company.records.page("ledger", "ceo", limit=10)).records] == ["ceo.e1"]


@pytest.mark.parametrize("key_class", ["*", ">", "a b", "a.b"])
async def test_what_can_be_no_class_is_refused(company: Company, key_class: str) -> None:
    with pytest.raises(ValueError, match="class"):
        await company.records.page("ledger", key_class, limit=10)


async def test_a_record_is_found_by_its_key_and_by_its_name(company: Company) -> None:
    await company.write(MAILBOXES, "seat.ceo", b'{"handle": "ceo"}')

    by_key, by_name = (
        await company.records.get("mailboxes", "seat.ceo"),
        await company.records.get("mailboxes", "seat:ceo"),
    )

    assert by_key == by_name
    assert by_key is not None
    assert by_key.value == {"handle": "ceo"}
    assert await company.records.get("mailboxes", "seat.cto") is None


async def test_sealed_values_stay_sealed(company: Company) -> None:
    await company.write(SECRETS, "secret.KEY", b'{"sealed": "c2VjcmV0"}')

    one = await company.records.get("secrets", "secret.KEY")
    page = await company.records.page("secrets", limit=10)

    assert one is not None
    assert (one.sealed, one.value, one.size_bytes) == (True, None, 22)
    assert page.records == (one,)


async def test_what_is_no_json_is_shown_as_text(company: Company) -> None:
    await company.write(MAILBOXES, "seat.ceo", b"\xff not json")

    found = await company.records.get("mailboxes", "seat.ceo")

    assert found is not None
    assert found.value == "\N{REPLACEMENT CHARACTER} not json"


@pytest.mark.parametrize("depth", [300, 5000])
async def test_what_is_nested_too_deep_to_be_printed_is_shown_as_text_and_hides_no_other(
    company: Company, depth: int
) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    await company.write(MAILBOXES, "seat.ceo", deep)
    await company.write(MAILBOXES, "seat.cto", b'{"handle": "cto"}')

    page = await company.records.page("mailboxes", limit=10)

    assert [view.value for view in page.records] == [deep.decode(), {"handle": "cto"}]


async def test_an_unknown_slot_names_those_that_are_known(company: Company) -> None:
    with pytest.raises(NoSuchSlot) as caught:
        await company.records.page("leses", limit=10)

    assert "ledger" in caught.value.known


async def test_a_store_that_cannot_be_reached_is_not_an_empty_list(company: Company) -> None:
    company.buckets["mailboxes"].cut = True

    with pytest.raises(Unavailable):
        await company.records.page("mailboxes", limit=10)
