"""What follows a reply, and what follows a round's calls. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from crewlet.llm import ModelReply, StopReason

__all__ = ["PHASE_ENDING_STOPS", "RoundState", "Step", "after_calls", "after_reply"]

PHASE_ENDING_STOPS: Final = {
    StopReason.MAX_TOKENS: "the reply was cut off at the model's output limit",
    StopReason.REFUSAL: "the model declined",
    StopReason.CONTEXT_EXCEEDED: "the conversation no longer fits the model's context",
    StopReason.PAUSED: "the model paused its reply and did not come back to it",
}
"""The stop reasons that end a phase as they are: no call of that reply is run and nothing is asked again."""


class Step(Enum):
    """What a phase does next."""

    STOP = auto()
    CALL_TOOLS = auto()
    CORRECT = auto()
    RESCUE = auto()
    NEXT_ROUND = auto()
    SUBMITTED = auto()
    WAITING = auto()


@dataclass(frozen=True, slots=True)
class RoundState:
    """Where a phase stands: its round (from 1), and how many rounds in a row answered in prose and were corrected."""

    round_num: int
    max_rounds: int
    correctives_max: int
    corrected: int = 0

    @property
    def is_last(self) -> bool:
        """Whether no further round is allowed."""
        return self.round_num >= self.max_rounds

    def next(self, *, corrected: bool) -> RoundState:
        """The round after this one; a round with calls clears the count of correctives."""
        return replace(self, round_num=self.round_num + 1, corrected=self.corrected + 1 if corrected else 0)

    def extended(self, rounds: int) -> RoundState:
        """With so many rounds more."""
        return replace(self, max_rounds=self.max_rounds + rounds)


def after_reply(reply: ModelReply, state: RoundState) -> Step:
    """A stop reason that ends the phase comes first; then calls; prose is corrected a bounded number of times."""
    if reply.stop_reason in PHASE_ENDING_STOPS:
        return Step.STOP
    if reply.message.calls:
        return Step.CALL_TOOLS
    if state.is_last or state.corrected >= state.correctives_max:
        return Step.RESCUE
    return Step.CORRECT


def after_calls(state: RoundState, *, waiting: bool, submitted: bool) -> Step:
    """An ask that waits outranks a submission of the same round: its answer will wake the seat again anyway."""
    if waiting:
        return Step.WAITING
    if submitted:
        return Step.SUBMITTED
    return Step.RESCUE if state.is_last else Step.NEXT_ROUND
