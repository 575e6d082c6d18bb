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
from crewlet.tools.host import ToolHost
from crewlet.tools.lookup_colleague import Colleague, Directory, LookupColleague
from crewlet.tools.registry import SeatTools, ServerSummary, SharedTools
from crewlet.tools.server_spec import RESERVED_SERVER_NAME, HintOverrides, ToolServerSpec, parse_overrides
from crewlet.tools.server_status import ServerStatus

__all__ = [
    "RESERVED_SERVER_NAME",
    "Annotations",
    "CallContext",
    "Colleague",
    "Directory",
    "Hint",
    "HintOverrides",
    "LookupColleague",
    "SeatTools",
    "ServerStatus",
    "ServerSummary",
    "SharedTools",
    "Tool",
    "ToolHost",
    "ToolResult",
    "ToolRow",
    "ToolServerSpec",
    "parse_overrides",
    "reaches_outside",
]
