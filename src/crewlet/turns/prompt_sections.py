"""A prompt's parts and their sizes, read from its text, which a resumed turn has from its record. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from crewlet.events.types import PromptSection
from crewlet.llm import AssistantMessage, Message, ToolSpec

__all__ = ["SYSTEM_KEYS", "USER_KEYS", "conversation_bytes", "sections_of", "tool_bytes"]

SYSTEM_KEYS: Final[Mapping[str, str]] = {
    "Identity": "identity",
    "Company": "company_context",
    "Background": "background",
    "Responsibilities": "responsibilities",
    "How you behave": "behavioral_guidelines",
    "Your unit": "unit",
    "Policies": "policies",
    "Your team": "team",
    "Human colleagues": "human_colleagues",
    "Your turn": "your_turn",
    "Your onboarding": "onboarding_hint",
    "Workers": "workers",
    "Available tools": "available_tools",
    "Your task": "task",
    "Whose work": "identity",
}
"""The keys of a system prompt's parts by their headings."""
USER_KEYS: Final[Mapping[str, str]] = {
    "Task": "task",
    "The thread that it is in": "thread_context",
    "Your answer": "your_answer",
    "Work so far in this turn": "prior_work",
    "Owed to the asker (as the one who did the work was told)": "your_answer",
    "The work": "work",
    "The record": "record",
    "Earlier iterations": "prior_work",
}
"""The same of an opening message."""

_HEADING: Final = "## "
_PREAMBLE: Final = "preamble"


def sections_of(text: str, keys: Mapping[str, str]) -> tuple[PromptSection, ...]:
    """The parts of ``text`` from one known heading to the next; together they are all of it, byte for byte.

    What stands before the first is a part without a title. A heading that is not ours belongs to the part it is in.
    """
    starts = [(start, title) for start, title in _headings(text) if title in keys]
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, ""))
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return tuple(
        PromptSection(key=keys.get(title, _PREAMBLE), title=title, bytes=len(text[start:end].encode()))
        for (start, title), end in zip(starts, ends, strict=True)
        if end > start
    )


def _headings(text: str) -> Iterator[tuple[int, str]]:
    # By hand: a pattern that looks at each line of the prompts of a large company costs more than all else here.
    lines, mark = f"\n{text}", f"\n{_HEADING}"
    start = lines.find(mark)
    while start >= 0:
        end = lines.find("\n", start + len(mark))
        yield start, lines[start + len(mark) : len(lines) if end < 0 else end]
        start = lines.find(mark, start + 1)


def conversation_bytes(messages: tuple[Message, ...]) -> int:
    """The text of a conversation: what was said, each reply's reasoning once, and the arguments of its calls."""
    return sum(_message_bytes(message) for message in messages)


def tool_bytes(specs: tuple[ToolSpec, ...]) -> int:
    """The tools as a vendor is told of them, about."""
    return len(msgspec.json.encode([(spec.name, spec.description, spec.input_schema) for spec in specs]))


def _message_bytes(message: Message) -> int:
    if not isinstance(message, AssistantMessage):
        return len(getattr(message, "text", getattr(message, "content", "")).encode())
    arguments = sum(
        len(msgspec.json.encode(call.arguments)) if call.arguments else len(call.raw) for call in message.calls
    )
    return len(message.text.encode()) + len(message.reasoning.encode()) + arguments
