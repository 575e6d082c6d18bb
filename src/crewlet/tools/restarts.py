"""When a tool server that ended may be started again: with the next call, after a growing pause, not for ever."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.base import limits

__all__ = ["Restarts"]


@dataclass(frozen=True, slots=True)
class Restarts:
    """How a server's lives have gone. Times are seconds of the event loop's clock."""

    failed_lives: int = 0
    not_before_s: float = 0.0

    def after_life(self, *, lasted_s: float, now_s: float) -> Restarts:
        """A life has ended unasked. One that lasted counts as none: the server was well in between."""
        failed = 1 if lasted_s >= limits.TOOL_SERVER_SETTLED_AFTER_S else self.failed_lives + 1
        pause_s = limits.TOOL_SERVER_RESTART_BACKOFF_FIRST_S * 2.0 ** (failed - 1)
        # A first end is taken for an accident: the next call may start the server at once.
        pause_s = 0.0 if failed == 1 else min(pause_s, limits.TOOL_SERVER_RESTART_BACKOFF_MAX_S)
        return Restarts(failed, now_s + pause_s)

    def refusal(self, now_s: float) -> str:
        """Why it may not be started now; empty where it may."""
        if self.gave_up:
            return f"it ended {self.failed_lives} times in a row and is not started again"
        if now_s < self.not_before_s:
            return f"it is started again in {self.not_before_s - now_s:.1f} s at the earliest"
        return ""

    @property
    def gave_up(self) -> bool:
        """Whether only a person, or a new configuration, gets it started again."""
        return self.failed_lives >= limits.TOOL_SERVER_FAILED_LIVES_MAX
