"""Random companies at work: a message is never final while anything that it caused is still to be worked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.node.chains import WAKE, Chain, answer_of, request_of

FINAL = {"answered", "failed", "skipped"}
SEATS = ("ceo", "cto", "engineer")
STEPS_S = st.floats(min_value=-10, max_value=10, allow_nan=False)


class Company:
    """Plays the engine's part: inboxes with wakes, asks that are answered, deliveries that fail or are repeated."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.chain = Chain()
        self.waiting: dict[str, tuple[str, str]] = {WAKE: ("ceo", "")}
        self.worked: list[tuple[str, str, str]] = []
        self.asks = 0
        self.answers: set[str] = set()
        self._owed: dict[str, tuple[str, str]] = {}  # who asked on a channel, and which one the asker is to answer

    def step(self) -> None:
        """One delivery of a waiting wake, with whatever becomes of it, on a clock that may go back."""
        self.chain.step_s = self._data.draw(STEPS_S)
        wake = self._data.draw(st.sampled_from(sorted(self.waiting)))
        handle, answers = self.waiting[wake]
        what = self._data.draw(st.sampled_from(["answers", "asks", "breaks", "dies", "fails", "gives up"]))
        if what == "gives up":
            self.chain.gives_up(handle, wake, "its deliveries are spent")
            self._done(wake, handle, answers)
            return
        turn_id = self.chain.begins(handle, wake)
        match what:
            case "answers" | "fails":
                text = f"answer {turn_id}"
                self.chain.ends(turn_id, text, failed=what == "fails")
                if what == "answers" and not answers:
                    self.answers.add(text)
                self._done(wake, handle, answers)
            case "asks" if self.asks < 6:
                self._ask(turn_id, wake, handle, answers)
            case "breaks":
                self.chain.ends(turn_id, failed=True, redelivered=True)
            case _:
                pass

    def repeat(self) -> None:
        """A wake that was worked before comes once more, and is skipped."""
        if self.worked:
            wake, handle, _ = self._data.draw(st.sampled_from(self.worked))
            self.chain.gives_up(handle, wake, "worked already", abandoned=False)

    def _ask(self, turn_id: str, wake: str, handle: str, answers: str) -> None:
        self.asks += 1
        channel = f"c{self.asks}"
        target = self._data.draw(st.sampled_from([seat for seat in SEATS if seat != handle]))
        self.chain.asked(turn_id, channel, handle, target)
        self.waiting[request_of(channel)] = (target, channel)
        self.chain.ends(turn_id, "I have asked", asks=(channel,))
        del self.waiting[wake]
        self.worked.append((wake, handle, answers))
        self._owed[channel] = (handle, answers)

    def _done(self, wake: str, handle: str, answers: str) -> None:
        del self.waiting[wake]
        self.worked.append((wake, handle, answers))
        if answers:
            asker, owed = self._owed[answers]
            self.chain.closes(answers)
            self.waiting[answer_of(answers)] = (asker, owed)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_message_is_final_exactly_when_nothing_that_it_caused_waits(data: st.DataObject) -> None:
    company = Company(data)
    for _ in range(data.draw(st.integers(0, 25))):
        if company.waiting:
            company.step()
        if data.draw(st.booleans()):
            company.repeat()

        view = company.chain.view()

        assert (view.state in FINAL) == (not company.waiting)
        if view.state == "answered":
            assert view.answer in company.answers
        elif view.state == "failed":
            assert company.answers == set()
