"""What is told of a changed company."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet import topics
from crewlet.base.errors import Unavailable
from crewlet.events import Category, Event, category_of
from crewlet.events.types import ConfigRevisionActivated, ConfigRevisionApplied
from crewlet.node.company_news import CompanyNews, Revision
from crewlet.node.fleet_company import revision_of
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time

REVISION = Revision(company="Acme", document="name: Acme", epoch=7)


async def test_who_put_it_in_force_and_that_it_runs_are_rows_of_the_companys_life() -> None:
    published: list[tuple[str, Event]] = []

    async def publish(topic: str, event: Event) -> Event:
        published.append((topic, event))
        return event

    news = CompanyNews(publish, VirtualClock(), SeededIds(1))

    await news.activated(REVISION, by="operator:ada")
    await news.applied(REVISION, trouble="no notes")

    name = revision_of("name: Acme")
    assert [event.data for _, event in published] == [
        ConfigRevisionActivated(company="Acme", revision_id=name, epoch=7, activated_by="operator:ada"),
        ConfigRevisionApplied(company="Acme", revision_id=name, epoch=7, trouble="no notes"),
    ]
    assert [topic for topic, _ in published] == [topics.event_topic(event.type) for _, event in published]
    assert {category_of(event.type) for _, event in published} == {Category.LIFECYCLE}


async def test_what_cannot_be_told_keeps_no_company_from_its_force() -> None:
    async def publish(topic: str, event: Event) -> Event:
        raise Unavailable("the broker is away")

    with capture_logs() as said:
        await CompanyNews(publish, VirtualClock(), SeededIds(1)).applied(REVISION, trouble="")

    assert [line["event"] for line in said] == ["company_news_lost"]
