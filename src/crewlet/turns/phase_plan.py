"""Everything fixed about a phase before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.llm import Model
from crewlet.turns.toolbox import Toolbox

__all__ = ["Extension", "Host", "PhasePlan"]


@dataclass(frozen=True, slots=True)
class Host:
    """The phase that another runs in, and the round of it that the other one began in."""

    path: str
    phase: str
    iteration: int
    round_num: int


@dataclass(frozen=True, slots=True)
class Extension:
    """How a phase may be granted more rounds: by ``judge``, at most ``step`` at once, never above ``ceiling``."""

    judge: Model
    ceiling: int
    step: int
    ask: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """A phase's prompts, model and tools; the prompts stay as they are to its end.

    ``host`` is the phase that it runs in, ``branch`` where it stands there, if not by its own name and number.
    ``task_id`` names a worker's task.
    """

    phase: str
    iteration: int
    model: Model
    system: str
    user: str
    toolbox: Toolbox
    max_rounds: int
    streams: bool = False
    reads_notes: bool = False
    extension: Extension | None = None
    host: Host | None = None
    branch: str = ""
    task_id: str = ""

    @property
    def path(self) -> str:
        """What names it within its turn, for ever: ``execute/1``, ``execute/1/judge/1``."""
        own = self.branch or f"{self.phase}/{self.iteration}"
        return own if self.host is None else f"{self.host.path}/{own}"

    @property
    def round_ceiling(self) -> int:
        """The most rounds that it may come to."""
        return self.max_rounds if self.extension is None else max(self.max_rounds, self.extension.ceiling)
