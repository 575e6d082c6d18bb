"""Tool servers per seat and per node, the registry and discovery, annotations, and what reaches outside."""

from crewlet.tools.contract import (
    Annotations,
    CallContext,
    Hint,
    Tool,
    ToolResult,
    ToolRow,
    reaches_outside,
)

__all__ = [
    "Annotations",
    "CallContext",
    "Hint",
    "Tool",
    "ToolResult",
    "ToolRow",
    "reaches_outside",
]
