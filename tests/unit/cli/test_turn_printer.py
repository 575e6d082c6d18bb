"""Turns as they show in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.cli.plain_text import one_line, plain
from crewlet.cli.turn_printer import TurnPrinter


class Terminal(io.StringIO):
    """A text stream that says whether it is a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def text_so_far(text: str, *, turn: str = "t1", round_num: int = 0, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    frame = {"type": "agent_turn_progress", "agent_handle": "ceo", "turn_id": turn, "phase": "execute", "iteration": 1}
    return {**frame, "round_num": round_num, "partial_text": text, **more}


def printed(*events: dict[str, Any], tty: bool = False, quiet: bool = False) -> str:
    out = Terminal(tty=tty)
    printer = TurnPrinter(out, quiet=quiet)
    for event in events:
        printer.event(event)
    printer.end()
    return out.getvalue()


def test_streamed_text_goes_on_where_it_stopped() -> None:
    shown = printed(text_so_far("Let"), text_so_far("Let us"), text_so_far("Let us see."))

    assert shown == f"{'ceo':>10}  Let us see.\n"


def test_the_whole_reply_at_the_end_completes_the_text_and_repeats_nothing() -> None:
    shown = printed(text_so_far("Let us"), text_so_far("Let us see.", state="answered"))

    assert shown.count("Let us") == 1
    assert shown.endswith("Let us see.\n")


def test_calls_of_the_same_round_do_not_show_its_text_again() -> None:
    calls = [text_so_far("Let us see.", running_call={"name": name, "arguments": {"n": 1}}) for name in ("a", "b")]

    shown = printed(text_so_far("Let us see."), *calls)

    assert [line.strip() for line in shown.splitlines()] == [
        "ceo  Let us see.",
        'ceo  → a {"n": 1}',
        'ceo  → b {"n": 1}',
    ]


def test_the_next_round_begins_a_line_of_its_own() -> None:
    shown = printed(text_so_far("one"), text_so_far("two", round_num=1))

    assert [line.strip() for line in shown.splitlines()] == ["ceo  one", "ceo  two"]


def test_a_text_that_another_model_begins_anew_is_shown_whole() -> None:
    shown = printed(text_so_far("The first mod"), text_so_far("The"), text_so_far("The second model"))

    assert [line.strip() for line in shown.splitlines()] == ["ceo  The first mod", "ceo  The second model"]


def test_two_turns_that_stream_at_once_repeat_nothing() -> None:
    shown = printed(
        text_so_far("a1 "), text_so_far("b1 ", turn="t2"), text_so_far("a1 a2"), text_so_far("b1 b2", turn="t2")
    )

    assert [shown.count(word) for word in ("a1", "a2", "b1", "b2")] == [1, 1, 1, 1]


@given(st.text(), st.lists(st.integers(0, 200), max_size=6))
def test_however_a_text_is_cut_into_frames_it_shows_once(text: str, cuts: list[int]) -> None:
    frames = [text_so_far(text[:cut]) for cut in sorted(cuts)] + [text_so_far(text)]
    at_once = printed(text_so_far(text))

    assert "".join(printed(*frames).split()) == "".join(at_once.split())


def test_the_lines_of_a_text_stand_under_each_other() -> None:
    assert printed(text_so_far("one\ntwo")) == f"{'ceo':>10}  one\n{'':12}two\n"


def test_a_turn_that_is_resumed_goes_on_and_begins_no_other() -> None:
    shown = printed(
        {
            "type": "agent_turn_started",
            "agent_handle": "ceo",
            "trigger": {"summary": "operator: Hello"},
            "resumed": True,
        }
    )

    assert shown.strip() == "ceo  goes on with its turn: operator: Hello"


def test_a_line_for_each_step() -> None:
    shown = printed(
        {"type": "agent_turn_started", "agent_handle": "ceo", "trigger": {"summary": "operator: Hello"}},
        {"type": "agent_phase_started", "agent_handle": "ceo", "phase": "execute", "provider_key": "offline"},
        {"type": "a2a_channel_opened", "source": "ceo", "target": "cto"},
        {"type": "agent_turn_progress", "agent_handle": "ceo", "finished_call": {"name": "a", "result": "fine"}},
        {"type": "agent_turn_completed", "agent_handle": "ceo", "decision": "done", "asks": ["c1"]},
        {"type": "turn_trigger_skipped", "agent_handle": "cto", "reason": "worked already"},
    )

    assert [line.strip() for line in shown.splitlines()] == [
        "ceo  begins a turn: operator: Hello",
        "ceo  execute (1) with offline",
        "ceo  opened a channel to cto",
        "ceo  ← fine",
        "ceo  ended the turn: done, 0 tokens; waits for a colleague",
        "cto  skipped: worked already",
    ]


@pytest.mark.parametrize(
    ("spent", "says"),
    [
        ({"cost_usd": 0.03154, "execute_model": "m"}, "1200 tokens, $0.0315"),
        ({"cost_usd": 0.0, "execute_model": "m"}, "1200 tokens, $0.0000"),
        ({"execute_model": "m"}, "1200 tokens, cost unknown"),
        ({"execute_model": "scripted"}, "1200 tokens"),
    ],
)
def test_a_turn_says_what_it_cost_or_that_nobody_knows(spent: dict[str, Any], says: str) -> None:
    tokens = {"input_tokens": 1000, "output_tokens": 200}

    shown = printed({"type": "agent_turn_completed", "agent_handle": "ceo", "decision": "done", **tokens, **spent})

    assert shown.strip() == f"ceo  ended the turn: done, {says}"


@pytest.mark.parametrize(
    ("completed", "says"),
    [
        ({"failed": True, "redelivered": True, "error_kind": "llm_unavailable"}, "the trigger comes back"),
        ({"failed": True, "error": "sent back too often"}, "failed: sent back too often"),
    ],
)
def test_a_turn_that_did_not_end_well_says_what_becomes_of_it(completed: dict[str, Any], says: str) -> None:
    assert says in printed({"type": "agent_turn_completed", "agent_handle": "ceo", **completed})


def test_a_script_says_that_it_is_no_model() -> None:
    started = {"type": "agent_phase_started", "agent_handle": "ceo", "phase": "execute", "model": "scripted"}

    assert "not a real model" in printed(started)


def test_an_event_of_no_interest_shows_nothing() -> None:
    assert printed({"type": "org_started", "company": "Acme"}) == ""


def test_a_quiet_printer_shows_nothing() -> None:
    assert printed(text_so_far("Hello"), quiet=True) == ""


def test_colours_are_for_terminals() -> None:
    assert "\x1b[2m" in printed(text_so_far("Hello"), tty=True)
    assert "\x1b" not in printed(text_so_far("Hello"))


HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\re\x08f\x9b31mg\u202eh"


def test_a_models_text_cannot_steer_the_terminal() -> None:
    shown = printed(
        text_so_far(HOSTILE),
        text_so_far("", finished_call={"name": "x", "result": HOSTILE}),
        {"type": "agent_turn_started", "agent_handle": f"ceo{HOSTILE}", "trigger": {"summary": HOSTILE}},
        {"type": "llm_unavailable", "agent_handle": "ceo", "error": HOSTILE},
        {"type": "turn_trigger_skipped", "agent_handle": "ceo", "reason": f"one\n{HOSTILE}"},
    )

    assert {character for character in shown if not character.isprintable()} == {"\n"}
    assert len(shown.splitlines()) == 5


def test_a_sequence_that_arrives_in_two_frames_is_stripped_all_the_same() -> None:
    shown = printed(text_so_far("red \x1b[3"), text_so_far("red \x1b[31mtext"))

    assert shown.strip() == "ceo  red text"


@given(st.text(alphabet=st.sampled_from("ab\x1b[]0;m\x07\\\n\t\r\x9b\u202e\ud800")))
def test_plain_text_holds_nothing_but_what_can_be_seen(text: str) -> None:
    shown = plain(text)

    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert plain(shown) == shown
    assert "\n" not in one_line(text)


def test_plain_text_keeps_what_people_write() -> None:
    assert plain("Grüße 👩‍💻,\n\tא [31m") == "Grüße 👩‍💻,\n\tא [31m"


@pytest.mark.parametrize(
    ("to", "says"), [("gpt", "claude gave way to gpt: network"), ("", "claude did not answer: network")]
)
def test_a_model_that_gives_way_is_told_with_its_successor(to: str, says: str) -> None:
    moved = {"type": "provider_fallback", "agent_handle": "ceo", "from_provider_key": "claude", "reason": "network"}

    assert printed({**moved, "to_provider_key": to}) == f"{'ceo':>10}  {says}\n"
