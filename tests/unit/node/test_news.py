"""News of what a node did: told where it can be, and never in the way of what it tells of."""

from __future__ import annotations

import pytest

from crewlet.base.errors import CrewletError, PayloadTooLarge, Unavailable
from crewlet.events import Event
from crewlet.events.types import OrgStarted
from crewlet.node.news import News
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time


async def test_it_is_published_under_its_type_with_a_trace_of_its_own() -> None:
    told: list[tuple[str, Event]] = []

    async def publish(topic: str, event: Event) -> Event:
        told.append((topic, event))
        return event

    news = News(publish, VirtualClock(), SeededIds(1))
    for _ in range(2):
        await news.tell(OrgStarted(company="Acme", seats=1), source="ceo")

    assert [(topic, event.source) for topic, event in told] == [("crewlet.events.org_started", "ceo")] * 2
    assert len({event.trace_id for _, event in told}) == 2


@pytest.mark.parametrize("error", [Unavailable("nobody answers"), PayloadTooLarge("t", size=2, limit=1)])
async def test_what_cannot_be_told_is_logged_and_nothing_fails_for_it(
    capsys: pytest.CaptureFixture[str], error: CrewletError
) -> None:
    async def publish(topic: str, event: Event) -> Event:
        raise error

    await News(publish, VirtualClock(), SeededIds(1)).tell(OrgStarted(company="Acme", seats=1))

    assert "news_lost" in capsys.readouterr().out
