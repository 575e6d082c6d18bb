"""The tools of one phase: what the model is told of, and what stands behind each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from crewlet.llm import ToolSpec
from crewlet.tools import Tool
from crewlet.turns.builtin_tool_discovery import ACTIVATE_TOOL
from crewlet.turns.setup import ToolSurface

__all__ = ["Finisher", "Toolbox"]


class Finisher(Tool, Protocol):
    """The tool whose accepted call ends its phase."""

    @property
    def ended(self) -> bool:
        """Whether such a call was accepted."""
        ...


class Toolbox:
    """A phase's fixed tools, and those that the turn activates while it runs. The first of a name wins."""

    def __init__(
        self,
        finisher: Finisher | None,
        others: Sequence[Tool] = (),
        *,
        surface: ToolSurface | None = None,
        activated: Mapping[str, Tool] | None = None,
    ) -> None:
        self._finisher = finisher
        fixed: list[Tool] = [*([] if finisher is None else [finisher]), *others]
        self._fixed = {tool.row.name: tool for tool in reversed(fixed)}
        self._surface = surface
        self._activated: Mapping[str, Tool] = {} if activated is None else activated
        self._specs: tuple[ToolSpec, ...] = ()
        self._specs_activated = -1

    @property
    def finisher(self) -> Finisher:
        """The tool that ends the phase; only one that is ended by its text has none, and makes no calls."""
        assert self._finisher is not None
        return self._finisher

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of now: the fixed tools in a steady order, then what was activated.

        The same object until something is activated, so a round costs nothing here.
        """
        if self._specs_activated != len(self._activated):
            fresh = [tool for name, tool in self._activated.items() if name not in self._fixed]
            self._specs = tuple(_spec(tool) for tool in (*reversed(self._fixed.values()), *fresh))
            self._specs_activated = len(self._activated)
        return self._specs

    def find(self, name: str) -> Tool | None:
        """The tool that a call of ``name`` reaches in this phase."""
        return self._fixed.get(name) or self._activated.get(name)

    def builds_state(self, name: str) -> bool:
        """Whether a call of ``name`` changes what the phase itself knows, so that a replay has to make it again."""
        return name in (self.finisher.row.name, ACTIVATE_TOOL)

    def why_unknown(self, name: str) -> str:
        """What to tell a model that called a name this phase does not offer."""
        served = None if self._surface is None else self._surface.find(name)
        if served is not None and served.row.is_mcp:
            return f"`{name}` is not active yet: call {ACTIVATE_TOOL} with its name first"
        offered = ", ".join(spec.name for spec in self.specs())
        return f"there is no tool `{name}` here (there are: {offered})"


def _spec(tool: Tool) -> ToolSpec:
    row = tool.row
    return ToolSpec(row.name, row.description, row.input_schema)
