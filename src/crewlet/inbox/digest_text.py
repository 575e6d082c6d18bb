"""A burst of messages in words: the earlier ones shortened, oldest first, then the newest whole. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crewlet.notify import is_cut

__all__ = ["Said", "digest_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message: ``whole`` is what was said, ``digest`` what is left of it beside newer ones."""

    at: datetime
    sender: str
    whole: str
    digest: str

    @property
    def is_superseded(self) -> bool:
        """Whether its source has a rule that says it in fewer words."""
        return self.digest != self.whole


def digest_text(earlier: Sequence[Said], newest: Said, told: str) -> str:
    """The earlier messages by number, each indented so that no text in it can pass for the next, then ``told``."""
    everything = [*earlier, newest]
    lines = [f"{len(everything)} messages of one conversation, oldest first; the newest stands in full at the end."]
    lines += [
        _numbered(index, said, _left_of(said, everything[index:])) for index, said in enumerate(everything[:-1], 1)
    ]
    lines.append(f"{len(everything)}. {_head(newest)} (the newest, in full)")
    return "\n\n".join(["\n".join(lines), told])


def _left_of(said: Said, later: Sequence[Said]) -> str:
    """Supersede rules come first. Two people who say the same are two facts; one who repeats it is one (E-099)."""
    again = any(other.sender == said.sender and other.digest == said.digest for other in later)
    if again and said.sender and not said.is_superseded and not is_cut(said.digest):
        return "(said again later, word for word)"
    return said.digest + (" … (cut)" if is_cut(said.digest) else "")


def _numbered(number: int, said: Said, text: str) -> str:
    indented = "\n   ".join(text.splitlines())
    return f"{number}. {_head(said)}: {indented}"


def _head(said: Said) -> str:
    when = f"{said.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{when}, {said.sender}" if said.sender else when
