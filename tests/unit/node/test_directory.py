"""Who is behind an identity, in the company of the moment."""

from __future__ import annotations

from uuid import uuid5

import pytest

from crewlet import topics
from crewlet.base.clock import SystemClock
from crewlet.base.trace import fresh_trace
from crewlet.events import Event, new_event
from crewlet.events.types import ExternalNotification, RawWebhook
from crewlet.node.directory import CompanyDirectory
from crewlet.notify import NotificationService, OperatorSource, Seat, Sources, inbound_subscription
from crewlet.org import AGENT_NAMESPACE
from crewlet.queue import Delivery
from crewlet.testing import SeededIds
from tests.unit.node.companies import acme


def resolved(identity: str) -> str | None:
    seat = CompanyDirectory(acme).resolve(identity)
    return None if seat is None else seat.handle


@pytest.mark.parametrize(
    ("identity", "handle"),
    [
        ("ceo", "ceo"),
        ("Chief", "ceo"),
        ("chief@acme.example", "ceo"),
        ("CHIEF@ACME.EXAMPLE", "ceo"),
        ("ann@acme.example", "ann"),
        ("notif+cto@acme.example", "cto"),
        ("notif+ann@acme.example", "ann"),
    ],
)
def test_a_seat_is_known_by_handle_name_address_and_tag(identity: str, handle: str) -> None:
    assert resolved(identity) == handle


@pytest.mark.parametrize(
    "identity", ["", "nobody", "@", "+ceo", "nobody@acme.example", "notif+nobody@acme.example", "notif+@acme.example"]
)
def test_an_identity_of_nobody_is_nobodys(identity: str) -> None:
    assert resolved(identity) is None


def test_an_agent_is_known_by_its_id_and_a_person_has_none() -> None:
    company = acme()
    directory = CompanyDirectory(lambda: company)
    ceo = directory.resolve("ceo")
    assert ceo is not None

    assert directory.resolve(ceo.agent_id) == ceo
    assert ceo.is_agent
    assert directory.resolve("ann") == Seat("ann", "", is_agent=False)


@pytest.mark.spec("E-052")
@pytest.mark.parametrize("identity", ["ceo", "Chief", str(uuid5(AGENT_NAMESPACE, "Acme:ceo"))])
async def test_mail_finds_a_seat_that_nobody_runs_by_handle_name_and_agent_id(identity: str) -> None:
    """There is no host here, no database and no store: the document is all that is asked."""
    published: list[tuple[str, Event]] = []

    async def publish(topic: str, event: Event) -> Event:
        published.append((topic, event))
        return event

    ids, clock = SeededIds(1), SystemClock()
    raw = RawWebhook(integration="operator", recipient=identity, sender="operator:ann", body="What first?")
    delivered = new_event(raw, trace=fresh_trace(ids), now=clock.now(), ids=ids)
    sources = Sources([OperatorSource()])
    service = NotificationService(
        publish=publish, directory=CompanyDirectory(acme), sources=sources, clock=clock, ids=ids
    )

    await service.handle(Delivery(inbound_subscription(), delivered, 24))

    ((topic, wake),) = published
    assert isinstance(wake.data, ExternalNotification)
    assert (topic, wake.data.agent_handle) == (topics.agent_inbox("ceo"), "ceo")
    found = acme().agent_seat_by_id(wake.data.agent_id)
    assert found == acme().agent_seat_by_handle("ceo")
    assert found is not None
    assert found.agent_id == str(uuid5(AGENT_NAMESPACE, "Acme:ceo"))


def test_a_name_or_an_address_that_two_seats_have_means_neither() -> None:
    roles = [{"name": "Twin", "handle": handle, "email": "twin@acme.example"} for handle in ("one", "two")]
    directory = CompanyDirectory(lambda: acme(roles=roles))

    assert directory.resolve("Twin") is None
    assert directory.resolve("twin@acme.example") is None


def test_an_address_that_is_somebodys_own_is_theirs_tag_and_all() -> None:
    roles = [{"name": "Chief", "handle": "ceo"}, {"name": "Bo", "handle": "bo", "email": "bo+ceo@acme.example"}]
    found = CompanyDirectory(lambda: acme(roles=roles)).resolve("bo+ceo@acme.example")

    assert found is not None
    assert found.handle == "bo"


@pytest.mark.spec("E-051")
def test_the_company_is_read_when_asked_and_never_kept() -> None:
    companies = [acme(), acme(roles=[{"name": "Chief", "handle": "boss", "email": "chief@acme.example"}])]
    directory = CompanyDirectory(lambda: companies[0])
    before = directory.resolve("chief@acme.example")
    companies.pop(0)

    after = directory.resolve("chief@acme.example")

    assert before is not None
    assert after is not None
    assert (before.handle, after.handle) == ("ceo", "boss")
