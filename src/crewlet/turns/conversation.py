"""What a phase's model is shown: a conversation that only ever grows."""

from __future__ import annotations

from collections.abc import Sequence

from crewlet.llm import AssistantMessage, Message, UserMessage

__all__ = ["Conversation"]


class Conversation:
    """The messages of one phase, and which of them no reply has answered yet."""

    def __init__(self, first: str) -> None:
        self._messages: list[Message] = [UserMessage(first)]
        self._answered = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them, as the next reply will answer them."""
        return tuple(self._messages)

    @property
    def first(self) -> str:
        """What the model was told first."""
        first = self._messages[0]
        return first.text if isinstance(first, UserMessage) else ""

    @property
    def news(self) -> tuple[Message, ...]:
        """What was added since the last reply."""
        return tuple(self._messages[self._answered :])

    def add(self, message: Message) -> None:
        """Append one."""
        self._messages.append(message)

    def was_shown(self, shown: Sequence[Message]) -> None:
        """Put what a predecessor's model was shown in the place of the news: a transcript stays as it was."""
        self._messages[self._answered :] = shown

    def answered(self, message: AssistantMessage) -> None:
        """Append a reply. An empty one is no message: some vendors refuse a conversation that holds one."""
        if message.text or message.calls:
            self._messages.append(message)
        self._answered = len(self._messages)
