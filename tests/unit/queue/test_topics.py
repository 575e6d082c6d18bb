"""The names of subjects, groups and dead letters, and what a pattern covers."""

from __future__ import annotations

import pytest

from crewlet import topics


@pytest.mark.spec("E-011", "E-012", "E-013", "S-003")
def test_a_seat_has_three_topics_with_one_group_each() -> None:
    """Its work, its detached runs and its reflections are kept apart, so that a held inbox holds no completion."""
    named = {
        topics.agent_inbox("ceo"): topics.inbox_group("ceo"),
        topics.agent_control("ceo"): topics.control_group("ceo"),
        topics.agent_reflect("ceo"): topics.reflect_group("ceo"),
    }

    assert named == {
        "crewlet.agent.ceo.inbox": "agent-ceo",
        "crewlet.agent.ceo.control": "agent-ceo-control",
        "crewlet.agent.ceo.reflect": "agent-ceo-reflect",
    }


@pytest.mark.spec("E-014", "E-016")
def test_the_fleets_own_topics_have_fixed_names() -> None:
    """Deliveries from outside are one work queue; configuration is nudged on two topics."""
    assert (topics.NOTIFICATIONS_INBOUND, topics.NOTIFY_INBOUND_GROUP) == (
        "crewlet.notifications.inbound",
        "notify-inbound",
    )
    assert topics.CONFIG_REVISION_ACTIVATED == "crewlet.config.revision_activated"
    assert topics.CONFIG_REVISION_APPLIED == "crewlet.config.revision_applied"


def test_a_seats_journal_is_a_subject_of_its_own_where_no_mailbox_is() -> None:
    """Nobody consumes it: what lists mailboxes has nothing to look for there."""
    subject = topics.journal("ada")

    assert subject == "crewlet.journal.ada"
    assert topics.namespace_stream(subject) == topics.STREAM_JOURNAL
    assert not topics.holds_mailboxes(topics.STREAM_JOURNAL)
    with pytest.raises(ValueError, match="token"):
        topics.journal("ada.b")


@pytest.mark.spec("E-015")
def test_an_event_type_is_its_topic_dots_included() -> None:
    """`turn.guard_breach` has two tokens, and the events' stream carries it like any other."""
    assert topics.event_topic("turn.guard_breach") == "crewlet.events.turn.guard_breach"
    assert topics.matches(topics.stream_subjects(topics.STREAM_EVENTS), topics.event_topic("turn.guard_breach"))


@pytest.mark.spec("E-018")
def test_dead_letters_lie_outside_the_engines_own_subjects() -> None:
    """Whoever follows the events never sees poison as live traffic."""
    letter = topics.dead_letter("crewlet.agent.ceo.inbox", "agent-ceo")

    assert letter.startswith("dlq.crewlet.agent.ceo.inbox.agent-ceo.")
    assert not topics.matches("crewlet.>", letter)
    assert topics.namespace_stream(letter) == topics.STREAM_DLQ


@pytest.mark.spec("E-018")
@pytest.mark.parametrize("name", [topics.dead_letter, topics.durable_name])
def test_pairs_that_join_alike_have_names_of_their_own(name: object) -> None:
    """The digest is the identity; the head is only for reading."""
    assert callable(name)

    assert name("a.b", "c") != name("a", "b.c")
    assert name("a", "b c") != name("a", "b-c")


@pytest.mark.parametrize("handle", ["", "a.b", "a b", "*", ">", "a\n"])
def test_a_handle_that_would_change_the_subject_is_refused(handle: str) -> None:
    """One token in, one token out: a mailbox must not be read under another's name."""
    with pytest.raises(ValueError, match="one token"):
        topics.agent_inbox(handle)


@pytest.mark.parametrize(
    ("pattern", "topic", "covers"),
    [
        ("crewlet.events.>", "crewlet.events.org_started", True),
        ("crewlet.events.>", "crewlet.events", False),
        ("crewlet.agent.*.inbox", "crewlet.agent.ceo.inbox", True),
        ("crewlet.agent.*.inbox", "crewlet.agent.a.b.inbox", False),
        ("crewlet.agent.*", "crewlet.agent.ceo.inbox", False),
    ],
)
def test_a_pattern_covers_what_the_broker_says_it_covers(pattern: str, topic: str, covers: bool) -> None:
    """`*` is one token and `>` one or more at the end."""
    assert topics.matches(pattern, topic) is covers


def test_a_pattern_over_several_namespaces_has_no_stream() -> None:
    """It is the caller's to refuse it."""
    assert [topics.namespace_stream(pattern) for pattern in (">", "*.agent.>", "crewlet.>", "crewlet.*.x")] == [
        None
    ] * 4
