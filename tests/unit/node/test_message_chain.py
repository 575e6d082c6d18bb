"""A trace may hold several messages; each has its own events."""

from __future__ import annotations

import pytest

from crewlet.a2a import answer_wake_id, request_wake_id
from crewlet.events import Event
from crewlet.events.types import AgentTurnCompleted, InboundDelivery, NotificationSkipped, TriggerSummary
from crewlet.node.message_chain import events_of_message
from crewlet.notify import wake_id
from tests.unit.node.chains import MESSAGE, WAKE, Chain

OTHER = wake_id("m-2", "ceo")


def message(source_event_id: str = MESSAGE, recipient: str = "ceo") -> InboundDelivery:
    return InboundDelivery(
        integration="operator", label="operator:message", recipient=recipient, source_event_id=source_event_id
    )


def kept(chain: Chain, of: InboundDelivery) -> list[Event]:
    return events_of_message(of, chain.events)


def turns(events: list[Event]) -> set[str]:
    return {event.data.turn_id for event in events if isinstance(event.data, AgentTurnCompleted)}


def asking(chain: Chain, wake: str, channel_id: str) -> set[str]:
    """The ceo asks the cto and goes on with the answer; the ids of the three turns."""
    before = chain.turns
    chain.asks_and_waits("ceo", wake, channel_id, "cto")
    chain.runs("cto", request_wake_id(channel_id))
    chain.runs("ceo", answer_wake_id(channel_id))
    return {f"t{number}" for number in range(before + 1, chain.turns + 1)}


def test_a_message_alone_in_its_trace_has_all_of_it_in_order() -> None:
    chain = Chain()
    asking(chain, WAKE, "c1")

    assert kept(chain, message()) == chain.events


def test_two_messages_of_one_trace_have_nothing_in_common() -> None:
    chain = Chain()
    first, second = asking(chain, WAKE, "c1"), asking(chain, OTHER, "c2")

    assert turns(kept(chain, message())) == first
    assert turns(kept(chain, message("m-2"))) == second
    assert len(kept(chain, message())) + len(kept(chain, message("m-2"))) == len(chain.events)


def test_a_run_again_belongs_to_the_message_too() -> None:
    chain = Chain()
    first = chain.begins("ceo", WAKE)
    chain.ends(first, redelivered=True)
    second = chain.runs("ceo", WAKE)

    assert turns(kept(chain, message())) == {first, second}


def test_an_ask_of_a_turn_that_still_runs_belongs_to_the_message() -> None:
    chain = Chain()
    turn_id = chain.begins("ceo", WAKE)
    chain.asked(turn_id, "c1", "ceo", "cto")
    asked = chain.runs("cto", request_wake_id("c1"))

    assert turns(kept(chain, message())) == {asked}
    assert kept(chain, message()) == chain.events


def test_a_turn_whose_beginning_was_lost_is_known_by_its_end() -> None:
    chain = Chain()
    chain.tells(AgentTurnCompleted(turn_id="t9", trigger=TriggerSummary(id=WAKE, type="any")))

    assert turns(kept(chain, message())) == {"t9"}


@pytest.mark.parametrize(("wake", "source"), [(WAKE, MESSAGE), (OTHER, "m-2")])
def test_word_that_nothing_came_of_it_goes_to_its_own_message(wake: str, source: str) -> None:
    chain = Chain()
    chain.gives_up("ceo", wake, "spent")
    chain.refused("no_seat", source_event_id=source)

    other = "m-2" if source == MESSAGE else MESSAGE
    assert kept(chain, message(source)) == chain.events
    assert kept(chain, message(other)) == []


def test_asks_that_lead_in_a_circle_are_followed_once() -> None:
    chain = Chain()
    turn_id = chain.begins("ceo", WAKE)
    chain.asked(turn_id, "c1", "ceo", "cto")
    again = chain.begins("cto", request_wake_id("c1"))
    chain.asked(again, "c1", "cto", "ceo")

    assert kept(chain, message()) == chain.events


def test_what_no_wake_leads_to_is_nobodys() -> None:
    chain = Chain()
    chain.runs("ceo", "some other wake")
    chain.tells(NotificationSkipped(integration="operator", reason="no_seat", source_event_id="m-3"))

    assert kept(chain, message()) == []
