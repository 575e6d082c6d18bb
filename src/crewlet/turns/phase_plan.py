"""Everything fixed about a phase before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.llm import Model
from crewlet.turns.toolbox import Toolbox

__all__ = ["PhasePlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """A phase's prompts, model and tools; the prompts stay as they are to its end. ``host`` is the path it runs in."""

    phase: str
    iteration: int
    model: Model
    system: str
    user: str
    toolbox: Toolbox
    max_rounds: int
    streams: bool = False
    reads_notes: bool = False
    host: str = ""

    @property
    def path(self) -> str:
        """What names it within its turn, for ever: ``execute/1``."""
        own = f"{self.phase}/{self.iteration}"
        return f"{self.host}/{own}" if self.host else own
